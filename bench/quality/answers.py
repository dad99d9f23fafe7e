"""One answer to a prompt under a schema: by our sampler, without a constraint, or by a peer inside transformers.

Our samplers other than "masked" draw whole texts, so that they have no time to the first token.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

from ..decoding.peers import PEERS, Refused, compile_within

__all__ = ["ENGINES", "Answer", "Refused", "answer_prompt"]

ENGINES = ("constrain", "unconstrained", *PEERS)


class Answer(NamedTuple):
    """A text, its number of tokens, and seconds: to compile, to the first token from the start, and in all."""

    text: str
    tokens: int
    compiling: float | None
    first: float | None
    total: float


def answer_prompt(loaded: Any, engine: str, prompt: str, schema: str, *, sampler: str, most: int, seed: int) -> Answer:
    """Return an answer; raise Refused if the engine does not take the schema.

    loaded: a `LoadedModel`. engine: one of ENGINES. schema: JSON text. sampler: of our engine; "masked" and all other
    engines are greedy. most: most tokens.
    """
    if engine == "constrain":
        return answer_constrained(loaded, prompt, schema, sampler, most, seed)
    if engine == "unconstrained":
        return answer_freely(loaded, prompt, None, most, 0.0)
    peer = PEERS[engine](loaded.vocabulary)
    compiling = compile_within(peer, schema)
    return answer_freely(loaded, prompt, peer.processor(), most, compiling)


def answer_constrained(loaded: Any, prompt: str, schema: str, sampler: str, most: int, seed: int) -> Answer:
    """Return our answer."""
    import constrain
    from constrain.base.errors import ConstrainError

    times: list[float] = []
    start = perf_counter()
    try:
        constrain.compile(loaded.vocabulary, schema=schema).matcher().mask()
        compiled = perf_counter() - start
        if sampler == "masked":
            options: dict[str, Any] = {"temperature": 0, "stream": lambda piece: times.append(perf_counter() - start)}
        else:
            options = {"sampler": sampler}
        made = constrain.generate(
            loaded, loaded.prompt_ids(prompt), schema=schema, max_tokens=most, seed=seed, **options
        )
    except ConstrainError as error:
        raise Refused(str(error)) from error
    first = times[0] if times else None
    return Answer(made.text, made.stats.tokens, compiled, first, perf_counter() - start)


class FirstCall:
    """A logits processor that notes when its first call ended."""

    def __init__(self, processor: Any, start: float) -> None:
        self.processor, self.start = processor, start
        self.seconds: float | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores = self.processor(input_ids, scores) if self.processor is not None else scores
        if self.seconds is None:
            self.seconds = perf_counter() - self.start
        return scores


def answer_freely(loaded: Any, prompt: str, processor: Any, most: int, compiling: float) -> Answer:
    """Return the greedy answer of transformers' `model.generate`, with or without a processor."""
    import torch

    ids, ends = loaded.prompt_ids(prompt), list(loaded.vocabulary.eos_ids)
    inputs = torch.tensor([list(ids)], device=loaded.model.device)
    start = perf_counter()
    timer = FirstCall(processor, start)
    out = loaded.model.generate(
        inputs, attention_mask=torch.ones_like(inputs), eos_token_id=ends, pad_token_id=ends[0],
        max_new_tokens=most, do_sample=False, logits_processor=[timer],
    )  # fmt: skip
    total = perf_counter() - start
    written = out[0, len(ids) :].tolist()
    kept = [token for token in written if token not in ends]
    text = loaded.vocabulary.decode(kept)
    first = None if timer.seconds is None else compiling + timer.seconds
    return Answer(text, len(written), None if processor is None else compiling, first, compiling + total)
