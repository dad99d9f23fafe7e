"""`ConstraintLogitsProcessor`: a Constraint inside `model.generate` of transformers, in any of its decoding modes.

The position of a row is a function of its tokens: those after its prompt are replayed through a Matcher. It is never
counted in calls, so it does not matter that beams are re-ordered, that assisted decoding goes back, or that the
processor is used again. What makes that cheap is a bounded cache from rows to Matchers: the row without its last token
is nearly always in it, and a fork and one `advance` give the new position.

    row of ids  =  prompt  +  text  [ + end token  + padding ]

Where the prompt ends cannot be seen in the ids. `prompt_length=` says so; without it, the rows of the first call are
taken to be the prompts, and so is any later batch of rows that does not begin with them. What transformers 5 does to a
processor, by its own code (`generation/utils.py`, `candidate_generator.py`): beam search hands over log-probabilities
of flattened beams, not logits; finished rows go on with padding; assisted decoding, with batch size 1, asks for each
position of a draft and goes back to before it; continuous batching hands over one token per row (refused here).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..batches import apply_mask, fill_masks
from ..errors import ConstrainError, TokenRefused, UnsupportedError, VocabularyError
from ..matcher import Matcher

if TYPE_CHECKING:
    import torch

    from ..compile import Constraint
    from .cuda import Ahead

__all__ = ["ConstraintLogitsProcessor"]

Ids = NDArray[np.int64]
CAPACITY = 1024
"""Rows remembered at least: far more than a draft is long. Eight per row of the batch, if that is more."""


class ConstraintLogitsProcessor:
    """A logits processor for `model.generate(..., logits_processor=[...])`.

    constraint: a Constraint for all rows, or a list with one for each prompt of the batch, in its order (with beams or
        num_return_sequences the rows of one prompt are neighbours, as transformers has them).
    prompt_length: number of ids of the prompt in every row, left padding included; of an encoder-decoder, number of
        ids that its decoder starts from. By default learnt from the first call. Give it where a new prompt may begin
        with an old one and its answer (a conversation), or where a text is to be continued by a new processor.
    on_refused: what to do with a row whose text holds a token that the constraint refuses. "raise": ConstrainError,
        since somebody changed the text. "end": allow end tokens only; for drafts that nobody constrained (assisted
        decoding with another tokenizer), which are thrown away afterwards.

    Use one in one `generate` at a time; any number after each other.
    """

    def __init__(
        self,
        constraint: Constraint | Sequence[Constraint],
        *,
        prompt_length: int | None = None,
        on_refused: Literal["raise", "end"] = "raise",
    ) -> None:
        self.constraints = list(constraint) if isinstance(constraint, Sequence) else [constraint]
        if not self.constraints:
            raise ConstrainError("the list of constraints is empty", hint="Give one for each prompt of the batch.")
        for one in self.constraints:
            if not hasattr(one, "matcher"):
                raise ConstrainError(
                    f"{one!r} is no Constraint",
                    hint="Give constrain.compile(vocabulary, schema=...), or a list of those.",
                )
        if prompt_length is not None and prompt_length < 0:
            raise ConstrainError(f"prompt_length is {prompt_length}; it counts ids")
        if on_refused not in ("raise", "end"):
            raise ConstrainError(f'on_refused is "raise" or "end", not {on_refused!r}')
        self.prompt_length, self.on_refused = prompt_length, on_refused
        self.prompts: Ids | None = None
        self.known: OrderedDict[tuple[int, bytes], Position] = OrderedDict()
        self.ahead: Ahead | None = None  # set by `cuda.Ahead`: who makes the masks while the model runs

    @property
    def supports_continuous_batching(self) -> bool:
        """Asked by continuous batching only, which would go on without a processor that says no: so this raises."""
        raise UnsupportedError(
            "continuous batching hands a processor one token of each row, from which no position can be told",
            hint="Use model.generate, which hands over whole rows.",
        )

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """scores [rows, V] with every token that is not allowed at -inf, as a new tensor of the same type.

        input_ids: int64 [rows, length], scores: logits or log-probabilities; allowed ones stay as they are.
        Raises ConstrainError for refused tokens, for rows that do not match the list of constraints, and where
        nothing allowed is left because another processor forbids it.
        """
        import torch

        if self.ahead is not None:
            out = self.ahead.masked(input_ids, scores)
        else:
            words = torch.from_numpy(self.masks(input_ids.detach().cpu().numpy(), scores.shape))
            out = masked(scores, words.to(scores.device))
        self.check_left(out)
        return out

    def masks(self, ids: Ids, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """int32 [rows, words]: what may follow rows of ids (int64 [rows, length]). shape: of the scores."""
        if ids.ndim != 2 or len(ids) != shape[0]:
            raise ConstrainError(f"input_ids {ids.shape} and scores {tuple(shape)} do not match")
        owners = self.owners(len(ids))
        start: int = self.starts(ids, owners)
        widest = max(self.check_width(constraint, shape[-1]) for constraint in self.constraints)
        out = np.zeros((len(ids), widest), np.int32)
        positions = [self.position(row, start, owner, len(ids)) for row, owner in zip(ids, owners)]
        going = [row for row, one in enumerate(positions) if isinstance(one.matcher, Matcher) and not one.ended]
        fill_masks([positions[row].matcher for row in going], out, rows=going)
        for row in set(range(len(positions))) - set(going):
            mask = positions[row].mask()
            out[row, : len(mask)] = mask
        return out

    def owners(self, rows: int) -> list[int]:
        """Which constraint each row belongs to."""
        count = len(self.constraints)
        if rows % count:
            raise ConstrainError(
                f"{rows} rows cannot be shared out among {count} constraints",
                hint="Give one Constraint for all rows, or one for each prompt of the batch.",
            )
        return [row * count // rows for row in range(rows)]

    def starts(self, ids: Ids, owners: list[int]) -> int:
        """How many ids of each row are its prompt; learns the prompts of a new batch."""
        if self.prompt_length is not None:
            if ids.shape[1] < self.prompt_length:
                raise ConstrainError(f"the rows have {ids.shape[1]} ids, fewer than prompt_length={self.prompt_length}")
            return self.prompt_length
        if self.prompts is not None and self.continues(ids, owners):
            return int(self.prompts.shape[1])
        self.prompts = ids.copy()
        self.known.clear()
        return int(ids.shape[1])

    def continues(self, ids: Ids, owners: list[int]) -> bool:
        """Whether every row begins with a known prompt of its own constraint."""
        assert self.prompts is not None
        length = self.prompts.shape[1]
        if ids.shape[1] < length:
            return False
        before = self.owners(len(self.prompts))
        known = {(owner, prompt.tobytes()) for owner, prompt in zip(before, self.prompts)}
        heads = [head.tobytes() for head in np.ascontiguousarray(ids[:, :length])]
        if all(pair in known for pair in zip(owners, heads)):
            return True
        if len(self.constraints) > 1 and ids.shape[1] > length and set(heads) <= {h for _, h in known}:
            raise ConstrainError(
                "the rows are in another order than their constraints",
                hint="Keep the order of the batch, or use one processor per row.",
            )
        return False

    def position(self, row: Ids, start: int, owner: int, rows: int) -> Position:
        """The position after a row: known, one token after a known one, or replayed from the prompt."""
        key = (owner, row.tobytes())
        found = self.known.get(key)
        if found is None:
            before = self.known.get((owner, row[:-1].tobytes())) if len(row) > start else None
            if before is None:
                before = Position(self.constraints[owner].matcher())
                fresh = row[start:]
            else:
                fresh = row[-1:]
            found = before
            for token in fresh:
                found = found.after(int(token), self.on_refused)
            self.known[key] = found
            while len(self.known) > max(CAPACITY, 8 * rows):
                self.known.popitem(last=False)
        self.known.move_to_end(key)
        return found

    def check_width(self, constraint: Constraint, width: int) -> int:
        """The words of a Mask; VocabularyError if the model cannot write some of the vocabulary's tokens."""
        tokens = constraint.vocabulary.tokens
        if width < len(tokens) and (
            any(token is not None for token in tokens[width:]) or constraint.vocabulary.eos_ids[-1] >= width
        ):
            raise VocabularyError(
                f"the model gives {width} logits, the vocabulary has {len(tokens)} tokens",
                hint="Make the Vocabulary from the tokenizer of this model.",
            )
        return (len(tokens) + 31) // 32

    def check_left(self, scores: torch.Tensor) -> None:
        """Every row has a token that can be chosen; a row of -inf would quietly become token 0."""
        best = scores.amax(dim=-1)
        if bool((best > -float("inf")).all()):  # false for NaN too
            return
        row = int((~(best > -float("inf"))).nonzero()[0])
        if bool(best[row].isnan()):
            raise ConstrainError(f"the scores of row {row} are not numbers (NaN)")
        raise ConstrainError(
            f"row {row}: the model or another processor forbids every token that the constraint allows",
            hint="min_length, min_new_tokens, bad_words_ids and suppress_tokens can do that: leave them out.",
        )


class Position:
    """A Matcher at one place, never moved once it is here. ended: an end token has been taken, or all is refused."""

    __slots__ = ("ended", "matcher")

    def __init__(self, matcher: Matcher, ended: bool = False) -> None:
        self.matcher, self.ended = matcher, ended

    def after(self, token: int, on_refused: Literal["raise", "end"]) -> Position:
        """The position one token further. After an end token only end tokens and padding follow."""
        vocabulary = self.matcher.constraint.vocabulary
        if self.ended:
            if on_refused == "raise" and token < vocabulary.size and vocabulary.tokens[token] is not None:
                raise ConstrainError(
                    f"the text of a row goes on, with token {token}, after its end token: this is no padding",
                    hint="If these ids are a new prompt, use a new ConstraintLogitsProcessor or give prompt_length=.",
                )
            return self
        if token in vocabulary.eos_ids and self.matcher.is_complete:
            return Position(self.matcher, ended=True)
        matcher = self.matcher.fork()
        try:
            matcher.advance(token)
        except TokenRefused as error:
            if on_refused == "end":
                return Position(self.matcher, ended=True)
            text = vocabulary.decode(self.matcher.tokens)
            raise ConstrainError(
                f"a row holds token {token} after {text[-40:]!r}, which its constraint refuses",
                hint="If somebody changed the text on purpose, or these ids are a new prompt, use a new "
                "ConstraintLogitsProcessor or give prompt_length=. If they are a draft that was made without this "
                'processor, give on_refused="end".',
            ) from error
        return Position(matcher)

    def mask(self) -> NDArray[np.int32]:
        """int32 [words]: what may come next; after the end only end tokens, which decoding loops turn into padding."""
        if not self.ended:
            return self.matcher.mask(None)
        vocabulary = self.matcher.constraint.vocabulary
        words = np.zeros((vocabulary.size + 31) // 32, np.uint32)
        for end in vocabulary.eos_ids:
            words[end // 32] |= np.uint32(1 << (end % 32))
        return words.view(np.int32)


def masked(scores: torch.Tensor, words: torch.Tensor) -> Any:
    """The scores with what is not allowed at -inf, as a new tensor: by a kernel on the CPU, else by torch."""
    import torch

    if scores.is_cpu and words.is_cpu and not scores.requires_grad:
        return apply_mask(scores.clone(memory_format=torch.contiguous_format), words)
    return scores.masked_fill(~unpacked(words, scores.shape[-1]), -torch.inf)


def unpacked(words: torch.Tensor, width: int) -> Any:
    """bool [rows, width] from bits: int32 [rows, words], bit i % 32 of word i // 32; what is beyond them is False.

    Each byte is looked up as eight booleans in one: ten times faster than shifting and comparing.
    """
    import torch

    eights = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view(np.int64)[:, 0]
    table = torch.from_numpy(eights).to(words.device)
    out = table[words.view(torch.uint8).flatten().int()].view(torch.bool).view(len(words), -1)
    if out.shape[1] < width:
        return torch.nn.functional.pad(out, (0, width - out.shape[1]))
    return out[:, :width]
