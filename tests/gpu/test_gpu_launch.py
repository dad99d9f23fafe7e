"""Launches: by the driver as by numba's dispatcher, and from any thread."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from constrain.integrations.cuda import apply_mask, device_sampling, mask_softmax_sample, tensor_launch
from constrain.kernels.cuda import cuda_launch
from constrain.kernels.cuda.cuda_device import SIMULATED

needs_card = pytest.mark.skipif(SIMULATED, reason="the simulator has no driver")


def drawn() -> list[list[float]]:
    logits = torch.from_numpy(np.random.default_rng(3).normal(size=(5, 70)).astype(np.float32)).cuda()
    masks = torch.tensor([[0x5A5A5A5A, -1, 3], [-1, 0, 0]], dtype=torch.int32, device="cuda")
    sources = torch.tensor([0, 1, -1, 0, 1], dtype=torch.int32, device="cuda")
    heat = torch.tensor([0.5, 1, 2, 0, 1], device="cuda")
    found = mask_softmax_sample(logits, masks, sources=sources, seeds=7, steps=2, temperature=heat, top_p=0.9)
    return [one.tolist() for one in found]


@needs_card
def test_a_launch_by_the_driver_is_one_by_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba's dispatcher is the fallback, and gets the same arguments."""
    want = drawn()
    monkeypatch.setattr(tensor_launch, "find_function", lambda *given: None)
    monkeypatch.setattr(device_sampling, "PLANS", tensor_launch.Plans())
    assert drawn() == want


@needs_card
def test_numba_that_keeps_its_code_elsewhere_is_not_asked_for_it() -> None:
    assert cuda_launch.load(SimpleNamespace(compile=lambda signature: object()), (), 0) is None


@needs_card
def test_a_thread_that_has_not_used_the_card_can_launch() -> None:
    """The driver's context is that of a thread, and torch sets it where it needs it only."""
    want, got = drawn(), []
    logits = torch.zeros((2, 40), device="cuda")
    masks = torch.tensor([1, 0], dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()

    def run() -> None:
        rows = tensor_launch.rows_of(logits)
        packed = tensor_launch.flatten_masks(masks, None, rows)
        from constrain.integrations.cuda.device_masks import INFINITIES, apply_masks, count_tiles

        tensor_launch.launch_kernel(
            apply_masks, (2, count_tiles(40, 32)), 32, rows.bits, rows.stride, rows.width, *packed,
            INFINITIES[logits.dtype],
        )  # fmt: skip
        torch.cuda.synchronize()
        got.append(drawn())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert got == [want]
    assert torch.isinf(logits).sum(dim=1).tolist() == [39, 39]


@needs_card
def test_a_prepared_launch_is_captured_in_a_graph() -> None:
    """And replayed for what its tensors hold then: the memory of a draw belongs to the graph."""
    logits = torch.zeros((3, 70), device="cuda")
    masks = torch.tensor([0x11111111, -1, 3], dtype=torch.int32, device="cuda")
    steps = torch.zeros(3, dtype=torch.int64, device="cuda")
    for cut in ({}, {"top_p": 0.8}):
        for _ in range(2):
            mask_softmax_sample(logits, masks, seeds=7, steps=steps, **cut)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = mask_softmax_sample(logits, masks, seeds=7, steps=steps, **cut)
            masked = apply_mask(logits.clone(), masks)
        for step in range(3):
            logits.copy_(torch.from_numpy(np.random.default_rng(step).normal(size=(3, 70)).astype(np.float32)))
            steps.fill_(step)
            graph.replay()
            want = mask_softmax_sample(logits, masks, seeds=7, steps=steps, **cut)
            assert found.tokens.tolist() == want.tokens.tolist() and found.logprobs.tolist() == want.logprobs.tolist()
            assert torch.equal(masked, apply_mask(logits.clone(), masks))


def test_threads_do_not_share_prepared_launches(device: str) -> None:
    """Many calls from several threads, with tensors of the same shapes: each gets its own results."""
    wrong: list[int] = []
    count = 2 if SIMULATED else 200

    def run(own: int) -> None:
        masks = torch.tensor([1 << own], dtype=torch.int32, device=device)
        for step in range(count):
            logits = torch.zeros((1, 20), device=device)
            if mask_softmax_sample(logits, masks, seeds=own, steps=step).tokens.item() != own:
                wrong.append(own)
            if (apply_mask(logits, masks) == 0).nonzero().tolist() != [[0, own]]:
                wrong.append(own)

    if SIMULATED:  # which runs one kernel at a time
        for own in range(4):
            run(own)
    else:
        threads = [threading.Thread(target=run, args=(own,)) for own in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


@needs_card
def test_an_error_of_the_driver_is_raised() -> None:
    """Blocks of more threads than a card has."""
    logits = torch.zeros((1, 40), device="cuda")
    rows = tensor_launch.rows_of(logits)
    from constrain.integrations.cuda.device_masks import INFINITIES, apply_masks

    packed = tensor_launch.flatten_masks(torch.zeros(2, dtype=torch.int32, device="cuda"), None, rows)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        tensor_launch.launch_kernel(
            apply_masks, 1, 4096, rows.bits, rows.stride, rows.width, *packed, INFINITIES[logits.dtype]
        )
    assert drawn()
