"""Masks applied to logits: minus infinity where a bit is not set, every other bit as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import Vocabulary, apply_mask, compile, fill_masks
from constrain.engine.batches import logit_masking as module

BITS = {"float16": (np.uint16, 0xFC00), "bfloat16": (np.uint16, 0xFF80), "float32": (np.uint32, 0xFF800000),
        "float64": (np.uint64, 0xFFF0000000000000)}  # fmt: skip


def apply_slowly(patterns: np.ndarray, masks: np.ndarray, rows: list[int], infinity: int) -> np.ndarray:
    """The obvious way, token by token, on the bit patterns of logits."""
    out = patterns.copy()
    for mask, row in zip(masks.tolist(), rows):
        for token in range(out.shape[1]):
            if token >= 32 * len(mask) or not mask[token // 32] >> (token % 32) & 1:
                out[row, token] = infinity
    return out


def make_random_masks(rng: np.random.Generator, count: int, size: int, words: int) -> np.ndarray:
    """int32 [count, words] of tokens below `size`: none, few, half, most, all or all but runs, row by row."""
    bits = np.zeros((count, 32 * words), bool)
    for row in bits:
        row[:size] = rng.random(size) < rng.choice([0, 0.01, 0.5, 0.97, 1])
        if rng.random() < 0.5:
            begin, end = sorted(rng.integers(0, size + 1, 2))
            row[begin:end] = rng.random() < 0.5
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32)


@settings(max_examples=200)
@given(
    kind=st.sampled_from(["float16", "float32", "float64"]),
    count=st.integers(1, 5),
    size=st.integers(1, 1100),
    padding=st.sampled_from([0, 0, 1, 31, 32, 33, 700]),
    seed=st.integers(0, 2**32),
    threads=st.sampled_from([None, 1, 3]),
)
def test_as_token_by_token(kind: str, count: int, size: int, padding: int, seed: int, threads: int | None) -> None:
    """Every dtype and size, padded logits, rows with gaps between, some rows only: bit for bit, NaN and all."""
    rng = np.random.default_rng(seed)
    whole, infinity = BITS[kind]
    gap = int(rng.integers(0, 40))
    around = rng.integers(0, np.iinfo(whole).max, (count + 2, size + padding + gap), dtype=whole, endpoint=True)
    before = around.copy()
    masks = make_random_masks(rng, count, size, (size + 31) // 32)
    rows = rng.permutation(count + 2)[:count].tolist() if rng.random() < 0.5 else None
    logits = around[:, : size + padding].view(np.dtype(kind))
    assert apply_mask(logits, masks, rows=rows, threads=threads) is logits
    wanted = before.copy()
    columns = slice(0, size + padding)
    wanted[:, columns] = apply_slowly(before[:, columns], masks, rows or list(range(count)), infinity)
    assert (around == wanted).all()


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_tensors(kind: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    masks = make_random_masks(rng, 6, 1000, 32)
    wide = torch.randn(6, 2000).to(getattr(torch, kind))
    logits = wide[:, 400:1424]
    allowed = torch.from_numpy(np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little").astype(bool))
    wanted = wide.clone()
    wanted[:, 400:1424] = wanted[:, 400:1424].masked_fill(~allowed, -torch.inf)
    assert apply_mask(logits, torch.from_numpy(masks)) is logits
    assert torch.equal(wide, wanted)
    one = torch.zeros(1024, dtype=getattr(torch, kind))
    assert torch.equal(apply_mask(one, masks[0]) == 0, allowed[0])


def test_large_batches_go_over_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_SHARE", 1 << 10)
    monkeypatch.setattr(module, "count_cores", lambda: 4)
    masks = make_random_masks(np.random.default_rng(1), 9, 3000, 94)
    logits = np.zeros((9, 3010), np.float32)
    wanted = apply_slowly(logits.view(np.uint32), masks, list(range(9)), BITS["float32"][1])
    assert (apply_mask(logits, masks).view(np.uint32) == wanted).all()


def test_masks_of_matchers() -> None:
    """From text to logits: what is left is what the matchers allow."""
    constraint = compile(Vocabulary.bytes(), regex="[a-f]+|[0-9]")
    matchers = [constraint.matcher() for _ in range(3)]
    matchers[1].advance_bytes(b"a")
    matchers[2].advance_bytes(b"7")
    logits = np.zeros((3, 260), np.float32)
    apply_mask(logits, fill_masks(matchers, np.zeros((3, 9), np.int32)))
    left = [{int(token) for token in np.flatnonzero(row == 0)} for row in logits]
    assert left == [{*b"abcdef0123456789"}, {*b"abcdef", 256}, {256}]


def test_invalid_arrays_raise_and_logits_stay_unchanged() -> None:
    masks = np.zeros((2, 3), np.int32)
    masks[:, 2] = 1 << 5
    logits = np.zeros((2, 90), np.float32)
    for wrong in (
        logits.astype(np.int32),
        logits[:, ::2],
        np.zeros((2, 2, 90), np.float32),
        np.zeros((2, 64), np.float32),
        logits.astype(">f4"),
    ):
        with pytest.raises(ValueError, match="give"):
            apply_mask(wrong, masks)
    with pytest.raises(ValueError, match="size=69"):
        apply_mask(logits[:, :69], masks)
    assert not logits.any()
    apply_mask(logits[:, :70].copy(), masks)
    for bits in (masks.astype(np.int64), masks[:, ::2], masks.astype(np.uint32), masks.astype(">i4")):
        with pytest.raises(ValueError, match="masks are"):
            apply_mask(logits, bits)
    for rows in ([0], [0, 0], [0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="row"):
            apply_mask(logits, masks, rows=rows)
    with pytest.raises(ValueError, match="rows"):
        apply_mask(logits[:1], masks)
    frozen = logits.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        apply_mask(frozen, masks)
    with pytest.raises(TypeError, match="numpy array or a torch tensor"):
        apply_mask(logits.tolist(), masks)
    with pytest.raises(ValueError, match="threads"):
        apply_mask(logits, masks, threads=0)
    assert not logits.any()
    masks.flags.writeable = False
    apply_mask(logits, masks)


def test_tensors_that_cannot_be_written_are_refused() -> None:
    torch = pytest.importorskip("torch")
    masks = np.zeros((1, 2), np.int32)
    with pytest.raises(ValueError, match="detach"):
        apply_mask(torch.zeros(1, 64, requires_grad=True), masks)
    with pytest.raises(ValueError, match="is on meta"):
        apply_mask(torch.zeros(1, 64, device="meta"), masks)
    with pytest.raises(ValueError, match="side by side"):
        apply_mask(torch.zeros(64, 1).T[:, ::2], masks)
    with pytest.raises(ValueError, match="give"):
        apply_mask(torch.zeros(1, 64, dtype=torch.int8), masks)
