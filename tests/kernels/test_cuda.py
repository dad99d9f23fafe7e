"""The CUDA kernels without a GPU: run in numba's simulator, and compiled.

numba reads NUMBA_ENABLE_CUDASIM when it is imported, so tests/gpu runs in a process of its own. Compiling needs
NVIDIA's compiler, which comes with the extra `cuda`, and no card: types, registers and widths are looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
from numba import types

from constrain.integrations.cuda import device_masks, device_race, resident_constraints
from constrain.kernels.cuda import (
    cuda_apply,
    cuda_arguments,
    cuda_automaton,
    cuda_cut,
    cuda_race as race_kernel,
    cuda_sample,
)  # fmt: skip

F, W = types.float32[::1], types.int32[::1]
f, w = types.float32, types.int32
D, Q, N = types.float64[::1], types.int64[::1], types.int64
REALS = types.float32[:, ::1]
TABLE, LONGS, DOUBLES = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
REGISTERS = 65536
"""Of a multiprocessor, of which a block must not ask for more (CUDA C++ Programming Guide, compute capabilities)."""


def signatures() -> dict[str, tuple[object, tuple[object, ...], int]]:
    """Each kernel, the types that it is launched with, and threads of a block."""
    out: dict[str, tuple[object, tuple[object, ...], int]] = {
        "advance": (cuda_automaton.advance, (TABLE, W, TABLE, N, W, W, W), resident_constraints.THREADS)
    }
    for name, one in (("32", types.int32), ("16", types.int16)):
        row = one[::1]
        out[f"apply_masks {name}"] = (
            cuda_apply.apply_masks,
            (row, N, N, W, N, N, W, one),
            device_masks.THREADS,
        )
        sampling = (
            types.NamedTuple((row, N, N, N, N, W, N, N, W, N), cuda_arguments.Rows),
            types.NamedTuple((F, W, F, F, Q, Q, f, w, f, f, N, N), cuda_arguments.Parameters),
            types.NamedTuple(
                (REALS, REALS, LONGS, LONGS, LONGS, TABLE, LONGS, LONGS, W, Q, Q, REALS), cuda_arguments.Workspace
            ),
            types.NamedTuple((W, D, D), cuda_arguments.Results),
        )
        for kernel in (
            cuda_sample.measure_tiles, cuda_sample.draw,
            cuda_cut.bound_rows, cuda_cut.count_bins, cuda_cut.gather, cuda_cut.cut,
        ):  # fmt: skip
            out[f"{kernel.py_func.__name__} {name}"] = (kernel, sampling, cuda_arguments.THREADS)
        out[f"arrivals {name}"] = (
            race_kernel.find_arrivals, (row, N, N, N, W, N, N, W, W, N, Q, Q, Q, TABLE, DOUBLES, D),
            device_race.THREADS,
        )  # fmt: skip
    return out


def assembler() -> Path | None:
    """NVIDIA's, as a wheel ships it."""
    return next((path for place in sys.path for path in Path(place).glob("nvidia/*/bin/ptxas")), None)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids=str)
@pytest.mark.parametrize("name", signatures())
def test_kernels_compile_for_cards(
    name: str, capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To code that a block of theirs can be launched with, nothing of it spilled."""
    from numba import cuda
    from numba.cuda import dispatcher

    if assembler() is None:
        pytest.skip("needs NVIDIA's compiler: pip install 'constrain-lm[cuda]'")
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability))
    kernel, signature, threads = signatures()[name]
    text, _ = cuda.compile_ptx(kernel.py_func, signature, cc=capability)  # type: ignore[attr-defined]
    path = tmp_path / "kernel.ptx"
    path.write_text(text)
    report = subprocess.run(
        [str(assembler()), "-v", f"-arch=sm_{capability[0]}{capability[1]}", str(path), "-o", str(tmp_path / "out")],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    registers = int(re.search(r"Used (\d+) registers", report)[1])  # type: ignore[index]
    assert "0 bytes spill stores, 0 bytes spill loads" in report
    assert -(-registers // 8) * 8 * threads <= REGISTERS, report


@pytest.mark.slow
def test_the_simulator_runs_the_tests_of_cards(root: Path) -> None:
    """tests/gpu, all of it; what needs a real card is skipped there."""
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=root, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]
    counted = re.search(r"(\d+) passed", answer.stdout)
    assert counted and int(counted[1]) > 60, answer.stdout[-1000:]
