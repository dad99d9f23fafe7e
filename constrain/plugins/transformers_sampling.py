"""transformers: our samplers inside `model.generate`, as its `custom_generate=`.

    sampling = ConstrainedSampling(constraint, sampler="awrs")
    ids = model.generate(**inputs, do_sample=True, max_new_tokens=100, num_return_sequences=8, custom_generate=sampling)
    sampling.draws[0].log_weights       of the texts of the first prompt

Masking token by token, which a logits processor does, distorts the model's distribution. The samplers of
`constrain.sampling` correct that; see docs/how-to/sample-faithfully.md. The model that they sample from is the one that
the generation config describes: temperature, top_k and other logits processors belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError, UnsupportedError, check_type
from ..engine.constraint import Constraint
from ..integrations.row_positions import RowEndings
from ..integrations.transformers_language_model import TransformersModel
from ..sampling import Draws, draw

if TYPE_CHECKING:
    import torch

__all__ = ["ConstrainedSampling"]

STOPPING = ("MaxLengthCriteria", "EosTokenCriteria")
"""Stopping criteria that `generate` always has."""


class ConstrainedSampling:
    """A `custom_generate=` of `model.generate` that draws texts of a constraint by one of our samplers.

    Parameters
    ----------
    constraint : Constraint
        For all prompts. Its Vocabulary must be the model's.
    sampler : str
        A name in `constrain.sampling.SAMPLERS`, or "auto".
    rng : numpy.random.Generator, optional
        Source of randomness. By default one seeded by torch's generator, so that `torch.manual_seed` repeats a call.
    **options
        Options of the sampler, as for `constrain.sampling.draw`.

    Attributes
    ----------
    draws : list of Draws
        The draws of the last call, one Draws per prompt, with their weights. The rows of a prompt are its draws, in
        order; `num_return_sequences` is their number.

    Raises
    ------
    TypeError
        If the constraint is not a Constraint.
    """

    def __init__(
        self, constraint: Constraint, *, sampler: str = "awrs", rng: np.random.Generator | None = None, **options: Any
    ) -> None:
        check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
        self.constraint, self.sampler, self.rng, self.options = constraint, sampler, rng, options
        self.draws: list[Draws] = []

    def __call__(
        self,
        model: Any,
        input_ids: torch.LongTensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        **model_kwargs: Any,
    ) -> torch.Tensor:
        """Return int64 [rows, length]: the prompts, the draws, their end tokens, and padding. Called by `generate`.

        Raises
        ------
        UnsupportedError
            For beams, greedy search, encoder-decoders, embeddings as input, streamers, and stopping criteria.
        LimitError
            If some draws did not end within max_new_tokens, or have no probability.
        VocabularyError
            If the Vocabulary is not the model's, or `generate` stops at other tokens.
        """
        import torch

        check_mode(model, input_ids, stopping_criteria, generation_config, model_kwargs)
        endings = RowEndings(self.constraint.vocabulary, generation_config)
        max_tokens = int(generation_config.max_length) - input_ids.shape[1]
        rng = self.rng
        if rng is None:
            rng = np.random.default_rng(int(torch.randint(2**62, (1,))))
        copies = int(generation_config.num_return_sequences or 1)
        mask = model_kwargs.get("attention_mask")
        self.draws, texts = [], []
        for first in range(0, len(input_ids), copies):
            row = input_ids[first]
            prompt = row if mask is None else row[mask[first].bool()]
            lm = ProcessedModel(TransformersModel(model, self.constraint.vocabulary, prompt.tolist()), logits_processor)
            drawn = draw(
                lm, self.constraint, sampler=self.sampler, n=copies, rng=rng, max_tokens=max_tokens, **self.options
            )
            if len(drawn) < copies:
                raise LimitError(
                    f"{copies - len(drawn)} of {copies} draws did not end within {max_tokens} tokens",
                    hint="Give a larger max_new_tokens, or a constraint whose texts are shorter.",
                )
            self.draws.append(drawn)
            texts += [[*one.tokens, endings.stops[0]] for one in drawn]
        pad = generation_config.pad_token_id
        pad = endings.stops[0] if pad is None else int(pad)
        most = max(len(text) for text in texts)
        rows = torch.tensor([[*text, *[pad] * (most - len(text))] for text in texts], device=input_ids.device)
        return torch.cat([input_ids, rows], dim=1)


class ProcessedModel:
    """A LanguageModel whose logits went through the logits processors of `generate`."""

    def __init__(self, inner: TransformersModel, processors: Any) -> None:
        self.inner, self.processors = inner, list(processors or ())
        self.vocabulary, self.max_new_tokens = inner.vocabulary, inner.max_new_tokens
        self.prompt_ids = inner.prompt_ids

    def next_logits(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the logits of the next token after each prefix, float64 [n, V]."""
        rows = self.inner.next_logits(prefixes)
        if not self.processors:
            return rows
        import torch

        out = np.empty_like(rows)
        for number, prefix in enumerate(prefixes):
            ids = torch.tensor([[*self.prompt_ids, *prefix]])
            scores = torch.from_numpy(rows[number : number + 1]).clone()
            for processor in self.processors:
                scores = processor(ids, scores)
            out[number] = scores[0].numpy()
        return out

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return the log-probabilities (nats) of the next token after each prefix, float64 [n, V]."""
        if not self.processors:
            return self.inner.next_logprobs(prefixes)
        rows = self.next_logits(prefixes)
        rows = rows - rows.max(axis=1, keepdims=True)
        normalised: NDArray[np.float64] = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
        return normalised


def check_mode(model: Any, input_ids: Any, stopping_criteria: Any, config: Any, more: dict[str, Any]) -> None:
    """Raise UnsupportedError for what `generate` was told and the samplers cannot follow."""
    faults = {
        "an encoder-decoder": bool(getattr(model.config, "is_encoder_decoder", False)),
        "inputs_embeds": more.get("inputs_embeds") is not None or input_ids.shape[1] == 0,
        "num_beams": (config.num_beams or 1) > 1,
        "do_sample=False": not config.do_sample,
        "streamer": more.get("streamer") is not None,
        "return_dict_in_generate": bool(config.return_dict_in_generate),
    }
    faults.update({type(one).__name__: True for one in stopping_criteria or () if type(one).__name__ not in STOPPING})
    for name, is_fault in faults.items():
        if is_fault:
            raise UnsupportedError(
                f"ConstrainedSampling does not support {name}",
                hint="Give do_sample=True and leave it out, or use constrain.ConstraintLogitsProcessor, which masks in "
                "any mode of generate.",
            )
