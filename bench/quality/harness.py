"""lm-evaluation-harness with any local model and any of our samplers: an `lm_eval.api.model.LM`.

    model = ConstrainedModel(loaded, constraint={"schema": S}, sampler="smc")
    lm_eval.simple_evaluate(model=model, tasks=["gsm8k"])

Texts are generated under the constraint, if there is one, up to the first stop string of the task; log-likelihoods are
those of the model itself, by the tokenizer's own tokens. Needs `pip install lm-eval`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lm_eval.api.model import LM

import constrain
from constrain.integrations.transformers_language_model import TransformersModel

__all__ = ["ConstrainedModel", "evaluate_tasks"]


class ConstrainedModel(LM):  # type: ignore[misc]
    """A local model under a constraint.

    Parameters
    ----------
    loaded : LoadedModel
        From `constrain.load_model`.
    constraint : dict, optional
        One of `schema`, `regex`, `grammar`, `choices` and `type`, as for `constrain.generate`. None: no constraint.
    sampler : str
        A sampler of `constrain.generate`; without a constraint it must be "masked".
    most : int
        Most tokens of a text, where the task does not say it.
    seed : int
        Of everything that is drawn.
    """

    def __init__(
        self, loaded: Any, constraint: dict[str, Any] | None = None, *, sampler: str = "masked", most: int = 256,
        seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if constraint is None and sampler != "masked":
            raise ValueError(f"the sampler {sampler!r} needs a constraint")
        self.loaded, self.constraint, self.sampler, self.most, self.seed = loaded, constraint, sampler, most, seed

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Return a text for each request, whose arguments are a context and options of the generation."""
        return [self.generate_text(*request.args, seed=self.seed + k) for k, request in enumerate(requests)]

    def generate_text(self, context: str, options: dict[str, Any], *, seed: int) -> str:
        """Return one text. Greedy unless the task samples; samplers other than "masked" draw."""
        until = options.get("until") or []
        stop = [until] if isinstance(until, str) else list(until)
        most = int(options.get("max_gen_toks") or self.most)
        prompt = self.loaded.prompt_ids(context)
        if self.constraint is not None and self.sampler != "masked":
            made = constrain.generate(
                self.loaded, prompt, sampler=self.sampler, max_tokens=most, seed=seed, **self.constraint
            )
            return cut_text(made.text, stop)
        sampled = bool(options.get("do_sample"))
        temperature = float(options.get("temperature") or 1.0) if sampled else 0.0
        given: dict[str, Any] = {"temperature": temperature, "max_tokens": most, "seed": seed}
        if sampled and options.get("top_p") is not None:
            given["top_p"] = float(options["top_p"])
        if sampled and options.get("top_k"):
            given["top_k"] = int(options["top_k"])
        if self.constraint is not None:
            return cut_text(constrain.generate(self.loaded, prompt, **given, **self.constraint).text, stop)
        with constrain.Engine(self.loaded) as engine:
            return str(engine.generate(prompt, stop=stop or None, **given).text)

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """Return the log-probability of each continuation (nats), and whether it is the greedy one."""
        return [self.score_text(*request.args) for request in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
        """Return the log-probability of each text after an empty prompt (nats)."""
        return [self.score_text("", request.args[0])[0] for request in requests]

    def score_text(self, context: str, continuation: str) -> tuple[float, bool]:
        """Return the log-probability of a continuation, and whether each of its tokens is the likeliest."""
        model = TransformersModel(self.loaded, prompt=self.loaded.prompt_ids(context))
        ids = model.vocabulary.tokenize(continuation.encode())
        if not ids:
            return 0.0, True
        rows = model.next_logprobs([ids[:k] for k in range(len(ids))])
        chosen = [float(row[token]) for row, token in zip(rows, ids)]
        return sum(chosen), all(int(row.argmax()) == token for row, token in zip(rows, ids))


def cut_text(text: str, stop: list[str]) -> str:
    """Return a text up to the first of the stop strings."""
    ends = [at for one in stop if one and (at := text.find(one)) >= 0]
    return text[: min(ends)] if ends else text


def evaluate_tasks(
    loaded: Any, tasks: list[str], *, schema: str | None, sampler: str, most: int, seed: int, include: str | None,
    limit: int | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each task and metric. schema: a file. include: a folder of further task files."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    constraint = None if schema is None else {"schema": Path(schema).read_text("utf-8")}
    model = ConstrainedModel(loaded, constraint, sampler=sampler, most=most, seed=seed)
    found = lm_eval.simple_evaluate(
        model=model, tasks=tasks, task_manager=TaskManager(include_path=include), limit=limit,
        random_seed=seed, numpy_random_seed=seed, torch_random_seed=seed, fewshot_random_seed=seed, bootstrap_iters=0,
    )  # fmt: skip
    rows = []
    for task, metrics in found["results"].items():
        for name, value in metrics.items():
            metric, comma, kind = name.partition(",")
            if comma and isinstance(value, (int, float)) and "stderr" not in metric:
                rows.append({"task": task, "metric": f"{metric} ({kind})", "value": float(value), "sampler": sampler})
    return rows
