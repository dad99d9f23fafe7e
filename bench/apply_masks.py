"""What does it cost to apply masks to logits on the CPU, beside the peers and the limit of memory?

    python -m bench apply_masks

[rows, 128256] logits and three masks: `narrow`, after the `{` of an object (some 20 tokens); `wide`, inside a string
(123,000); `half`, a random half of the tokens. One thread; the fastest of many repeats counts, in CPU time. The limit
is the time of torch for less work: for `narrow`, to fill the logits with minus infinity; for the others, to read and
write them once (`neg_`), as nearly every cache line has a token that is not allowed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np

from .corpus import ENDS, SIZE, SPECIAL, Llama3
from .curves import draw_plot
from .options import build_parser
from .record import write_result
from .tables import build_table, print_table

ROWS = (1, 4, 32)
DTYPES = ("float32", "bfloat16", "float16")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
PREFIXES = {"narrow": b"{", "wide": b'{"name": "A'}
BUDGET = 0.25
"""Seconds of CPU time for one figure; at least LEAST repeats."""
LEAST = 12

Implementation = Callable[[Any, Any], object]


def list_implementations() -> dict[str, Implementation]:
    """Return functions of logits [rows, SIZE] and masks, int32 [rows, words], torch tensors, that apply
    the masks in place.
    """
    import torch
    import xgrammar
    from llguidance import numpy as llg_numpy, torch as llg_torch

    from constrain import apply_mask
    from constrain.integrations.logits_processor import unpack_masks

    def apply_with_xgrammar(logits: Any, masks: Any) -> None:
        xgrammar.apply_token_bitmask_inplace(logits, masks, backend="cpu")

    def apply_with_llguidance(logits: Any, masks: Any) -> None:
        llg_numpy.apply_token_bitmask_inplace(logits.numpy(), masks.numpy())

    def apply_with_torch(logits: Any, masks: Any) -> None:
        logits.masked_fill_(~unpack_masks(masks, SIZE), -torch.inf)

    def apply_with_numpy(logits: Any, masks: Any) -> None:
        bits = np.unpackbits(masks.numpy().view(np.uint8), axis=1, count=SIZE, bitorder="little")
        logits.numpy()[bits == 0] = -np.inf

    return {
        "constrain": lambda logits, masks: apply_mask(logits, masks, threads=1),
        "xgrammar": apply_with_xgrammar,
        "llguidance, torch compiled": llg_torch.apply_token_bitmask_inplace,
        "llguidance, numpy": apply_with_llguidance,
        "bits unpacked, torch": apply_with_torch,
        "bits unpacked, numpy": apply_with_numpy,
    }


def build_masks(vocabulary: Llama3, rows: int) -> dict[str, Any]:
    """Return int32 [rows, words] of each kind."""
    import torch

    import constrain

    ours = constrain.Vocabulary.from_tiktoken(vocabulary.path, special=SPECIAL, eos_ids=ENDS, size=SIZE)
    constraint = constrain.compile(ours, schema=SCHEMA)
    out = {}
    for name, prefix in PREFIXES.items():
        matcher = constraint.matcher()
        matcher.advance_bytes(prefix)
        out[name] = torch.from_numpy(np.tile(matcher.mask(), (rows, 1)))
    half = np.random.default_rng(0).integers(0, 1 << 32, (rows, (SIZE + 31) // 32), np.uint32)
    out["half"] = torch.from_numpy(half.view(np.int32))
    return out


def time_fastest(task: Callable[[], object]) -> float:
    """Return µs of CPU time of the fastest of many runs."""
    task()
    best, spent, repeats = 1 << 62, 0, 0
    while repeats < LEAST or spent < BUDGET * 1e9:
        start = thread_time_ns()
        task()
        taken = thread_time_ns() - start
        best, spent, repeats = min(best, taken), spent + taken, repeats + 1
    return best / 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    import torch

    options = build_parser("apply_masks", __doc__, "vocabulary", "results").parse_args(arguments)
    torch.set_num_threads(1)
    vocabulary = Llama3(options.vocabulary)
    runs = []
    for rows in ROWS:
        masks = build_masks(vocabulary, rows)
        for dtype in DTYPES:
            logits = torch.ones(rows, SIZE).to(getattr(torch, dtype))
            limits = {"narrow": time_fastest(lambda x=logits: x.fill_(-torch.inf)), "wide": time_fastest(logits.neg_)}  # type: ignore[misc]
            limits["half"] = limits["wide"]
            for kind, mask in masks.items():
                runs.append({"rows": rows, "dtype": dtype, "mask": kind, "implementation": "limit", "µs": limits[kind]})
                wanted = None
                for name, implementation in list_implementations().items():
                    fresh = torch.arange(rows * SIZE).view(rows, SIZE).remainder(97).to(logits.dtype)
                    try:
                        implementation(fresh, mask)
                    except (RuntimeError, TypeError, ValueError) as error:
                        print(f"{name} does not take {dtype}: {str(error).splitlines()[0][:90]}")
                        continue
                    wanted = fresh if wanted is None else wanted
                    assert torch.equal(fresh, wanted), f"{name}: other logits"
                    taken = time_fastest(partial(implementation, fresh, mask))
                    runs.append({"rows": rows, "dtype": dtype, "mask": kind, "implementation": name, "µs": taken})
    print_times(runs)
    facts = {"vocabulary": SIZE, "clock": "CPU of one thread, fastest repeat", "runs": runs}
    plot_times(write_result(options, facts).with_suffix(".svg"), runs)
    return 0


def print_times(runs: list[dict[str, Any]]) -> None:
    """Print a table for each number of rows: µs, and ours as a multiple of the limit."""
    for rows in ROWS:
        chosen = {(run["implementation"], run["dtype"], run["mask"]): run["µs"] for run in runs if run["rows"] == rows}
        cells = [(dtype, mask) for dtype in DTYPES for mask in ("narrow", "half", "wide")]
        table = build_table(f"µs for [{rows}, {SIZE}]", [""], [f"{dtype}\n{mask}" for dtype, mask in cells])
        for implementation in dict.fromkeys(key[0] for key in chosen):
            found = [chosen.get((implementation, dtype, mask)) for dtype, mask in cells]
            table.add_row(implementation, *(f"{taken:,.1f}" if taken is not None else "-" for taken in found))
        ratios = (chosen["constrain", dtype, mask] / chosen["limit", dtype, mask] for dtype, mask in cells)
        table.add_row("constrain / limit", *(f"{ratio:.2f}" for ratio in ratios))
        print_table(table)


def plot_times(path: Path, runs: list[dict[str, Any]]) -> None:
    """Plot µs against rows, for float32."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {"narrow": {}, "half": {}, "wide": {}}
    for run in runs:
        if run["dtype"] == "float32":
            panels[run["mask"]].setdefault(run["implementation"], []).append((run["rows"], run["µs"]))
    draw_plot(path, f"masks applied to float32 logits [rows, {SIZE}]", "rows", "µs", panels)


if __name__ == "__main__":
    sys.exit(main())
