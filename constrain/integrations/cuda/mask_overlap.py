"""Masks made on the host while the model runs on the card, and copied beside it: two buffers, a side stream, events.

    current stream   sample(n) . forward(n+1) ............................ . sample(n+1)
    side stream            tokens to the host .          . masks to the card ^ waits for these, and nothing else does
    host             launches forward(n+1) . advance, mask ^

The host waits for one small copy, that of the tokens; it does so after the forward pass was launched, and that copy
waits for the sampling only. The current stream waits for the masks where it needs them. So as long as launching,
advancing and masking take less than the model, they cost nothing. `Overlap` has the buffers; `decode_batch` is the
loop. On the CPU all of this is plain copies, so that what is computed can be tested anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...sampling.core.token_masses import mask_of
from .device_sampling import mask_softmax_sample

if TYPE_CHECKING:
    from ...engine.matcher import Matcher

__all__ = ["Decoded", "Overlap", "decode_batch"]

Ints = NDArray[np.int32]


class Overlap:
    """Masks [rows, words] on their way to a device, and tokens [rows] on their way back.

    One step: `fetch`, launch the model, `fetched`, write to `buffer`, `send`, and `masks` where they are needed.
    """

    def __init__(self, rows: int, words: int, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.is_beside = self.device.type == "cuda"
        pin = {"pin_memory": self.is_beside}
        self._host = [torch.zeros((rows, words), dtype=torch.int32, **pin) for _ in range(2)]
        self._there = [torch.zeros((rows, words), dtype=torch.int32, device=device) for _ in range(2)]
        self._tokens = torch.zeros(rows, dtype=torch.int32, **pin)
        self._turn = 0
        if self.is_beside:
            self._stream = torch.cuda.Stream(self.device)
            self._sent = [torch.cuda.Event() for _ in range(2)]
            self._used = [torch.cuda.Event() for _ in range(2)]
            self._drawn, self._fetched = torch.cuda.Event(), torch.cuda.Event()

    def buffer(self) -> Ints:
        """int32 [rows, words] on the host, to write the next masks to; waits for the copy from it two steps ago."""
        if self.is_beside:
            self._sent[self._turn].synchronize()
        out: Ints = self._host[self._turn].numpy()
        return out

    def send(self) -> None:
        """Starts copying the buffer to the device, as soon as what used that place two steps ago is done."""
        turn = self._turn
        if not self.is_beside:
            self._there[turn].copy_(self._host[turn])
            return
        self._stream.wait_event(self._used[turn])
        with torch.cuda.stream(self._stream):
            self._there[turn].copy_(self._host[turn], non_blocking=True)
            self._sent[turn].record(self._stream)

    def masks(self) -> torch.Tensor:
        """int32 [rows, words] on the device, until the next call; the current stream waits for it, not the host."""
        turn, self._turn = self._turn, 1 - self._turn
        if self.is_beside:
            here = torch.cuda.current_stream(self.device)
            self._used[1 - turn].record(here)
            here.wait_event(self._sent[turn])
        return self._there[turn]

    def fetch(self, tokens: torch.Tensor) -> None:
        """Starts copying tokens [rows] to the host, as soon as the current stream has made them."""
        if not self.is_beside:
            self._tokens.copy_(tokens)
            return
        self._drawn.record(torch.cuda.current_stream(self.device))
        self._stream.wait_event(self._drawn)
        with torch.cuda.stream(self._stream):
            self._tokens.copy_(tokens, non_blocking=True)
            self._fetched.record(self._stream)
        tokens.record_stream(self._stream)

    def fetched(self) -> Ints:
        """int32 [rows]: the tokens; waits for their copy alone."""
        if self.is_beside:
            self._fetched.synchronize()
        out: Ints = self._tokens.numpy()
        return out


@dataclass
class Decoded:
    """What `decode_batch` wrote. tokens: of each row, without its end token; logprobs, logmasses: sums over its
    steps, its end token's included (nats); ended: whether it came to an end token in time."""

    tokens: list[list[int]]
    logprobs: NDArray[np.float64]
    logmasses: NDArray[np.float64]
    ended: list[bool] = field(default_factory=list)


Forward = Callable[[Any], torch.Tensor]
"""int32 [B] tokens on the device, None before the first -> logits [B, V]; it launches, and waits for nothing."""


def decode_batch(
    forward: Forward,
    matchers: Sequence[Matcher],
    device: torch.device | str,
    *,
    max_tokens: int,
    seeds: torch.Tensor,
    sample: Callable[..., Any] | None = None,
    overlap: Overlap | None = None,
    **cut: Any,
) -> Decoded:
    """One text for each Matcher, all written side by side, their masks made while `forward` runs.

    seeds: int64 [B] on the device. cut: temperature, top_k, top_p, min_p. sample: by default `mask_softmax_sample`,
    and called like it: (logits, masks, seeds=, steps=, **cut) -> tokens, logprobs, logmasses. Rows that have ended go
    on with end tokens until all have. overlap: the buffers, by default new ones.
    Raises ArgumentError where a row finds no token.
    """
    draw = mask_softmax_sample if sample is None else sample
    vocabulary = matchers[0].constraint.vocabulary
    ends = mask_of(vocabulary.eos_ids, vocabulary.size)
    overlap = overlap or Overlap(len(matchers), len(ends), device)
    out = Decoded([[] for _ in matchers], np.zeros(0), np.zeros(0), [False] * len(matchers))
    made: list[Any] = []
    last = torch.tensor(vocabulary.eos_ids, dtype=torch.int32, device=device)
    over = torch.zeros(len(matchers), dtype=torch.bool, device=device)
    logits = forward(None)
    for step in range(max_tokens):
        buffer = overlap.buffer()
        for row, matcher in enumerate(matchers):
            if out.ended[row]:
                buffer[row] = ends
            else:
                matcher.mask(buffer[row])
        overlap.send()
        drawn = draw(logits, overlap.masks(), seeds=seeds, steps=step, **cut)
        overlap.fetch(drawn.tokens)
        # What is added up stays on the device until the end; rows that have ended draw on, and it does not count.
        made.append([torch.where(over, 0.0, one) for one in (drawn.logprobs, drawn.logmasses)])
        over = over | torch.isin(drawn.tokens, last)
        if step + 1 < max_tokens:
            logits = forward(drawn.tokens)
        for row, token in enumerate(overlap.fetched().tolist()):
            if out.ended[row]:
                continue
            if token < 0:
                raise ArgumentError(f"row {row}: the model gives nothing that is allowed any mass, or NaN")
            if token in vocabulary.eos_ids:
                out.ended[row] = True
            else:
                matchers[row].advance(token)
                out.tokens[row].append(token)
        if all(out.ended):
            break
    sums = [torch.stack(one).sum(dim=0).cpu().numpy() for one in zip(*made)]
    out.logprobs, out.logmasses = sums
    return out
