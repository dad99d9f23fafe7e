"""apply_mask by the kernel: bit for bit what one token after another gives, and nothing is touched that stays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from constrain.integrations.cuda import apply_mask
from constrain.kernels.cuda.cuda_device import SIMULATED

WHOLE = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}


def masks_of(rng: np.random.Generator, rows: int, words: int) -> np.ndarray:
    """Empty words, full ones, and any."""
    bits = rng.integers(-(2**31), 2**31, (rows, words)).astype(np.int32)
    kind = rng.integers(0, 3, (rows, words))
    bits[kind == 0] = 0
    bits[kind == 1] = -1
    return bits


def allowed_by(bits: np.ndarray, width: int) -> np.ndarray:
    flags = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little").astype(bool)[:, :width]
    return np.pad(flags, ((0, 0), (0, width - flags.shape[1])))


def logits_of(rng: np.random.Generator, shape: tuple[int, int], dtype: torch.dtype, device: str) -> torch.Tensor:
    out = torch.from_numpy(rng.normal(size=shape).astype(np.float32)).to(dtype)
    out[0, 0] = float("nan")  # what is allowed stays as it is, whatever it is
    return out.to(device)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize(
    ("width", "words", "gap", "offset"), [(70, 3, 0, 0), (2085, 66, 3, 1), (131, 4, 1, 5), (9, 1, 0, 0)]
)
def test_apply_mask_equals_a_plain_loop_over_rows(
    dtype: torch.dtype, width: int, words: int, gap: int, offset: int, device: str
) -> None:
    """Rows at any stride and offset in memory; more logits than bits are masked, more bits than logits ignored."""
    rng = np.random.default_rng(width)
    whole = logits_of(rng, (3, width + gap + offset), dtype, device)
    before = whole.clone()
    masks = masks_of(rng, 2, words)
    sources = torch.tensor([1, -1, 0], dtype=torch.int32)
    view = whole[:, offset : offset + width]
    assert apply_mask(view, torch.from_numpy(masks).to(device), sources=sources.to(device)) is view
    want = before.cpu().clone()
    allowed = torch.from_numpy(allowed_by(masks, width))
    for row, source in enumerate(sources.tolist()):
        if source >= 0:
            want[row, offset : offset + width][~allowed[source]] = -torch.inf
    assert torch.equal(whole.cpu().view(WHOLE[dtype]), want.view(WHOLE[dtype]))


def test_rows_are_those_of_the_masks(device: str) -> None:
    """As `constrain.apply_mask` has them; a single mask is everybody's."""
    masks = torch.tensor([[1], [2]], dtype=torch.int32, device=device)
    logits = torch.zeros((3, 4), device=device)
    apply_mask(logits, masks, rows=[2, 0])
    assert (logits == 0).tolist() == [[False, True, False, False], [True] * 4, [True, False, False, False]]
    logits = torch.zeros((2, 4), device=device)
    apply_mask(logits, masks[1])
    assert (logits == 0).tolist() == [[False, True, False, False]] * 2
    assert apply_mask(torch.zeros(0, 4, device=device), masks[:0]).shape == (0, 4)


def test_a_prepared_launch_is_for_any_tensors_of_its_shapes(device: str) -> None:
    """Other logits, masks and sources than those of the first call."""
    rng = np.random.default_rng(2)
    for _ in range(3):
        masks, sources = masks_of(rng, 2, 3), rng.integers(-1, 2, 4).astype(np.int32)
        for given in ({}, {"sources": torch.from_numpy(sources).to(device)}):
            rows = 4 if given else 2
            logits = torch.zeros((rows, 90), device=device)
            apply_mask(logits, torch.from_numpy(masks).to(device), **given)
            allowed = allowed_by(masks, 90)
            want = [allowed[one] if one >= 0 else np.ones(90, bool) for one in (sources if given else range(2))]
            assert ((logits == 0).cpu().numpy() == np.array(want)).all()


@pytest.mark.parametrize(
    ("logits", "masks", "given", "message"),
    [
        (torch.zeros(2, 4, dtype=torch.float64), torch.zeros(2, 1, dtype=torch.int32), {}, "float32, bfloat16"),
        (torch.zeros(4, 2).T, torch.zeros(2, 1, dtype=torch.int32), {}, "side by side"),
        (torch.zeros(1, 4).expand(2, 4), torch.zeros(2, 1, dtype=torch.int32), {}, "overlap"),
        (torch.zeros(2, 4), torch.zeros(2, 1, dtype=torch.int64), {}, "int32"),
        (torch.zeros(3, 4), torch.zeros(2, 1, dtype=torch.int32), {}, "sources="),
        (torch.zeros(3, 4), torch.zeros(2, 1, dtype=torch.int32), {"rows": [0, 0]}, "different"),
        (
            torch.zeros(3, 4),
            torch.zeros(2, 1, dtype=torch.int32),
            {"sources": torch.zeros(2, dtype=torch.int32)},
            "give int32",
        ),
        (torch.zeros(2, 4, requires_grad=True), torch.zeros(2, 1, dtype=torch.int32), {}, "gradients"),
    ],
)
def test_bad_input(logits: torch.Tensor, masks: torch.Tensor, given: dict, message: str) -> None:
    if not SIMULATED:
        logits, masks = logits.detach().cuda().requires_grad_(logits.requires_grad), masks.cuda()
        if message == "side by side":
            logits = torch.zeros(4, 2, device="cuda").T
        if message == "overlap":
            logits = torch.zeros(1, 4, device="cuda").expand(2, 4)
        given = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    with pytest.raises(ValueError, match=message):
        apply_mask(logits, masks, **given)


@pytest.mark.skipif(not SIMULATED, reason="counts what the simulator reads and writes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["all", "none", "every other word", "one token", "mixed"])
def test_bits_are_read_once_and_only_what_is_masked_is_written(
    dtype: torch.dtype, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each word is loaded once, no logit is loaded; exactly the masked logits are written, each once."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray as Array

    rng = np.random.default_rng(5)
    width, words = 2200, 69
    bits = {
        "all": np.full(words, -1),
        "none": np.zeros(words),
        "every other word": np.where(np.arange(words) % 2, -1, 0),
        "one token": np.where(np.arange(words) == 66, 8, 0),
        "mixed": masks_of(rng, 1, words)[0],
    }[kind].astype(np.int32)
    loads: list[int] = []
    stores: list[int] = []
    get, put = Array.__getitem__, Array.__setitem__

    def read(self: Array, index: object) -> object:
        if self.dtype == np.int32 and self.size == words:
            loads.append(int(index))  # type: ignore[call-overload]
        assert self.size != width, "a logit was read"
        return get(self, index)

    def write(self: Array, index: object, value: object) -> None:
        if self.size == width:
            stores.append(int(index))  # type: ignore[call-overload]
        put(self, index, value)

    monkeypatch.setattr(Array, "__getitem__", read)
    monkeypatch.setattr(Array, "__setitem__", write)
    logits = torch.zeros((1, width), dtype=dtype)
    apply_mask(logits, torch.from_numpy(bits))
    masked = int((logits == -torch.inf).sum())
    assert masked == width - int(allowed_by(bits[None], width).sum())
    assert sorted(loads) == list(range(words))
    assert sorted(stores) == torch.nonzero(logits[0] == -torch.inf).flatten().tolist()
