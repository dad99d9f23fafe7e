"""Masks computed on the host while the model runs on the GPU: two buffers, a side stream and events.

    current stream   sample(n) . forward(n+1) ............................ . sample(n+1)
    side stream            copy tokens to host .       . copy masks to device ^ waits for this copy only
    host             launches forward(n+1) . advance, mask ^

The host waits for one small copy, that of the tokens. It does so after launching the forward pass, and the copy itself
depends on the sampling only; while it would wait, it prepares for the next masks (`engine.preparation`). The current
stream waits for the masks where it needs them. So launching, advancing and masking add no time as long as together they
take less time than the model. `Overlap` holds the buffers; `decode_batch` is the loop. On the CPU all transfers are
plain copies, so that results can be tested without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...engine.batches import advance_all, fill_masks
from ...engine.preparation import prepare_matchers
from ...sampling.core.token_masses import mask_of
from .device_sampling import mask_softmax_sample

if TYPE_CHECKING:
    from ...engine.matcher import Matcher

__all__ = ["Decoded", "Overlap", "decode_batch"]

Ints = NDArray[np.int32]


class Overlap:
    """Double buffers that copy masks int32 [rows, words] to a device, and tokens int32 [rows] back to the host.

    In one step, call `fetch`, launch the model, call `fetched`, write to `buffer`, call `send`, and call `masks` where
    the masks are needed.
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
        """Return the host buffer for the next masks, int32 [rows, words].

        Waits for the copy made from it two steps ago.
        """
        if self.is_beside:
            self._sent[self._turn].synchronize()
        out: Ints = self._host[self._turn].numpy()
        return out

    def send(self) -> None:
        """Start copying the buffer to the device, after the use of its device copy two steps ago has finished."""
        turn = self._turn
        if not self.is_beside:
            self._there[turn].copy_(self._host[turn])
            return
        self._stream.wait_event(self._used[turn])
        with torch.cuda.stream(self._stream):
            self._there[turn].copy_(self._host[turn], non_blocking=True)
            self._sent[turn].record(self._stream)

    def masks(self) -> torch.Tensor:
        """Return the masks on the device, int32 [rows, words], valid until the next call.

        The current stream waits for their copy; the host does not.
        """
        turn, self._turn = self._turn, 1 - self._turn
        if self.is_beside:
            current = torch.cuda.current_stream(self.device)
            self._used[1 - turn].record(current)
            current.wait_event(self._sent[turn])
        return self._there[turn]

    def fetch(self, tokens: torch.Tensor) -> None:
        """Start copying tokens [rows] to the host, after the work queued so far on the current stream."""
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
        """Return the fetched tokens, int32 [rows]. Waits for their copy only."""
        if self.is_beside:
            self._fetched.synchronize()
        out: Ints = self._tokens.numpy()
        return out

    def is_fetched(self) -> bool:
        """Return whether `fetched` would return at once."""
        return not self.is_beside or bool(self._fetched.query())


@dataclass
class Decoded:
    """The result of `decode_batch`.

    tokens: of each row, without its end token. logprobs, logmasses: float64 [B], in nats, sums over the steps of a row,
    its end token included. ended: whether the row reached an end token within max_tokens.
    """

    tokens: list[list[int]]
    logprobs: NDArray[np.float64]
    logmasses: NDArray[np.float64]
    ended: list[bool] = field(default_factory=list)


Forward = Callable[[Any], torch.Tensor]
"""Maps int32 [B] tokens on the device (None before the first step) to logits [B, V]. It must not synchronise."""


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
    """Decode one text for each Matcher as one batch, computing masks while `forward` runs.

    Rows that have ended continue with end tokens until all rows have.

    Parameters
    ----------
    forward : callable
        Maps int32 [B] tokens on the device, or None before the first step, to logits [B, V].
    matchers : sequence of Matcher
        One Matcher for each row. They are advanced.
    device : torch.device or str
        The device of the model.
    max_tokens : int
        Most steps.
    seeds : Tensor, int64 [B]
        Seeds of the rows, on the device.
    sample : callable, optional
        Called as (logits, masks, seeds=, steps=, **cut); returns an object with tokens, logprobs and logmasses. By
        default `mask_softmax_sample`.
    overlap : Overlap, optional
        Buffers to use, new ones by default.
    **cut
        temperature, top_k, top_p and min_p, passed to `sample`.

    Returns
    -------
    Decoded
        Texts as tokens, with sums of log-probabilities.

    Raises
    ------
    ArgumentError
        If no token of a row has any mass, or its logits hold NaN.
    """
    draw = mask_softmax_sample if sample is None else sample
    vocabulary = matchers[0].constraint.vocabulary
    ends = mask_of(vocabulary.eos_ids, vocabulary.size)
    overlap = overlap or Overlap(len(matchers), len(ends), device)
    out = Decoded([[] for _ in matchers], np.zeros(0), np.zeros(0), [False] * len(matchers))
    scores: list[torch.Tensor] = []
    logits = forward(None)
    for step in range(max_tokens):
        buffer = overlap.buffer()
        going = [row for row, ended in enumerate(out.ended) if not ended]
        if len(going) < len(matchers):
            buffer[out.ended] = ends
        fill_masks([matchers[row] for row in going], buffer, rows=going if len(going) < len(matchers) else None)
        overlap.send()
        drawn = draw(logits, overlap.masks(), seeds=seeds, steps=step, **cut)
        overlap.fetch(drawn.tokens)
        scores.append(torch.stack((drawn.logprobs, drawn.logmasses)))  # stay on the device until the end
        if step + 1 < max_tokens:
            logits = forward(drawn.tokens)
            prepare_matchers([matchers[row] for row in going], overlap.is_fetched)
        tokens = overlap.fetched().tolist()
        for row in going:
            if tokens[row] < 0:
                raise ArgumentError(f"row {row}: the model assigns no probability to any allowed token, or NaN")
            if tokens[row] in vocabulary.eos_ids:
                out.ended[row] = True
            else:
                out.tokens[row].append(tokens[row])
        going = [row for row in going if not out.ended[row]]
        advance_all([matchers[row] for row in going], [tokens[row] for row in going])
        if all(out.ended):
            break
    # Rows that have ended are sampled until all have; what they drew then does not count.
    steps = np.array([len(tokens) + ended for tokens, ended in zip(out.tokens, out.ended)])
    terms = torch.stack(scores).cpu().numpy()
    counts = np.arange(len(terms))[:, None, None] < steps
    out.logprobs, out.logmasses = np.where(counts, terms, 0.0).sum(axis=0)
    return out
