"""MLX (mlx-lm): texts that satisfy a constraint, one by one, with a draft model, or in batches.

    model, tokenizer = mlx_lm.load(...)
    constraint = constrain.compile(read_mlx_vocabulary(model, tokenizer), schema=...)
    text = generate_with_mlx(model, tokenizer, prompt, constraint, max_tokens=200)

    generator.insert(prompts, max_tokens=[200] * n, logits_processors=make_mlx_processors(constraints, max_tokens=200))

mlx-lm (0.32) calls a processor with all tokens of a text, prompt included, and is one step ahead of what it returns:
the processor is called once more after the end token and after the last token of the budget. With a draft model it
goes back after rejected drafts, and the first call shows the last token of the prompt alone. In a `BatchGenerator` each
sequence has processors of its own; one processor for all of them is refused, because it could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import ArgumentError, ConstrainError, VocabularyError, check_count, check_type
from ..engine.constraint import Constraint
from ..vocabulary.vocabulary import Vocabulary
from .engine_versions import check_engine_version
from .request_matcher import RequestMatcher

if TYPE_CHECKING:
    import mlx.core as mx

__all__ = ["MlxConstraintProcessor", "generate_with_mlx", "make_mlx_processors", "read_mlx_vocabulary"]


class MlxConstraintProcessor:
    """A logits processor of mlx-lm for one text, for `generate_step`, `stream_generate` and `BatchGenerator`.

    Parameters
    ----------
    constraint : Constraint
        Compiled for the Vocabulary of the model, see `read_mlx_vocabulary`.
    max_tokens : int, optional
        As given to the generator. Every text is then complete within this number of tokens, its end token included.

    Raises
    ------
    LimitError
        If the shortest text does not fit in max_tokens.
    TypeError, ArgumentError
        If an argument is not valid.
    """

    def __init__(self, constraint: Constraint, *, max_tokens: int | None = None) -> None:
        check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
        self.request = RequestMatcher(
            constraint, None if max_tokens is None else check_count("max_tokens", max_tokens, 1)
        )
        self._prompt: list[int] | None = None

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """Return the logits with every token that is not allowed at -inf.

        Parameters
        ----------
        tokens : mx.array, int [length]
            The tokens so far. Those of the first call are the prompt.
        logits : mx.array, floating point [1, V]
            Logits of the next token.

        Raises
        ------
        ConstrainError
            If the tokens do not begin with the prompt, or hold one that the constraint refuses.
        """
        import mlx.core as mx

        ids = np.array(tokens).tolist()
        if self._prompt is None:
            self._prompt = ids
        start = len(self._prompt)
        if ids[:start] != self._prompt:
            raise ConstrainError(
                "a processor was called with the tokens of another text",
                hint="Make one MlxConstraintProcessor for each text; in a batch, make_mlx_processors(constraints).",
            )
        self.request.follow(ids[start:])
        mask = self.request.mask()
        if self.request.error is not None:
            raise self.request.error
        return mx.where(mx.array(self._unpack(mask, logits.shape[-1])), logits, -mx.inf)

    def _unpack(self, mask: Any, width: int) -> Any:
        """Return bool [width] of a packed mask. Raise VocabularyError if the logits are fewer than the tokens."""
        size = self.request.vocabulary.size
        if width < size:
            raise VocabularyError(
                f"the model has {width:,} logits, the vocabulary {size:,} tokens",
                hint="Compile the constraint for read_mlx_vocabulary(model, tokenizer).",
            )
        allowed = np.zeros(width, np.bool_)
        allowed[:size] = np.unpackbits(mask.view(np.uint8), bitorder="little", count=size)
        return allowed


def make_mlx_processors(
    constraints: Iterable[Constraint | None], *, max_tokens: int | Iterable[int] | None = None
) -> list[list[MlxConstraintProcessor]]:
    """Return the `logits_processors` of `BatchGenerator.insert`, one list for each sequence.

    Parameters
    ----------
    constraints : iterable of Constraint or None
        One for each sequence; None leaves a sequence unconstrained.
    max_tokens : int or iterable of int, optional
        As given to `insert`: one number for all sequences, or one for each.

    Raises
    ------
    ArgumentError
        If there are not as many numbers as constraints.
    """
    listed = list(constraints)
    counts: list[int | None]
    if max_tokens is None or isinstance(max_tokens, int):
        counts = [max_tokens] * len(listed)
    else:
        counts = list(max_tokens)
    if len(counts) != len(listed):
        raise ArgumentError(f"there are {len(listed)} constraints and {len(counts)} numbers of tokens")
    return [
        [] if one is None else [MlxConstraintProcessor(one, max_tokens=count)] for one, count in zip(listed, counts)
    ]


def generate_with_mlx(
    model: Any, tokenizer: Any, prompt: Any, constraint: Constraint, *, max_tokens: int = 256, **options: Any
) -> str:
    """Return a text that satisfies the constraint, by `mlx_lm.stream_generate`.

    Parameters
    ----------
    model, tokenizer
        What `mlx_lm.load` returned.
    prompt : str, list of int or mx.array
        The prompt, or its token ids.
    constraint : Constraint
        Compiled for `read_mlx_vocabulary(model, tokenizer)`.
    max_tokens : int
        Most tokens of the text, its end token included; the text is complete within it.
    **options
        Other options of `stream_generate`, such as sampler and draft_model.

    Raises
    ------
    LimitError
        If the shortest text does not fit in max_tokens.
    ArgumentError
        If options hold `logits_processors`, which might forbid every token that the constraint allows.
    UnsupportedError
        If this version of mlx-lm has not been tested.
    """
    check_engine_version("mlx-lm")
    if "logits_processors" in options:
        raise ArgumentError("give logits_processors= to stream_generate yourself, with a MlxConstraintProcessor last")
    from mlx_lm import stream_generate

    processor = MlxConstraintProcessor(constraint, max_tokens=max_tokens)
    ends = set(getattr(tokenizer, "eos_token_ids", ()))
    if not ends.intersection(constraint.vocabulary.eos_ids):
        raise VocabularyError(
            f"mlx-lm stops at {sorted(ends)}, the vocabulary ends at {list(constraint.vocabulary.eos_ids)}",
            hint="Compile the constraint for read_mlx_vocabulary(model, tokenizer).",
        )
    ids = []
    for step in stream_generate(
        model, tokenizer, prompt, max_tokens=max_tokens, logits_processors=[processor], **options
    ):
        ids.append(int(step.token))
    return constraint.vocabulary.decode(ids)


def read_mlx_vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """Return the Vocabulary of what `mlx_lm.load` returned, as wide as the logits of the model.

    Raises
    ------
    VocabularyError
        If the bytes of the tokens cannot be derived, or there is no end token.
    UnsupportedError
        If this version of mlx-lm has not been tested.
    """
    check_engine_version("mlx-lm")
    inner = getattr(tokenizer, "_tokenizer", tokenizer)  # mlx_lm wraps a tokenizer of transformers
    size = getattr(getattr(model, "args", None), "vocab_size", None)
    return Vocabulary.from_tokenizer(inner, size=size, eos_ids=getattr(tokenizer, "eos_token_ids", None))
