"""How near are the kernels for cards to what the card can do, and do masks cost anything beside a model?

    python -m bench.gpu [--parts applying,drawing,stepping,waiting] [--vocabulary ../shared/data/llama3.tiktoken]
    python -m bench.gpu --count                  without a card: what apply_mask reads and writes, in the simulator

applying   apply_mask beside XGrammar's Triton and CUDA kernels and llguidance's: µs, and times what it takes to read
           the bits and write what is masked at the bandwidth that was measured on this card in the same run
drawing    mask_softmax_sample beside torch's mask, softmax, sort, cumulative sum and multinomial
stepping   a step of constraints that live on the card, B = 64: µs of device time, inside a CUDA graph
waiting    how long the model's stream waits for masks made on the host, B = 1, 32, 256: events behind the model and
           behind the wait, with a model of 1.2 billion random weights

Times are of the device, by events around replays of a CUDA graph, medians of `--repeat`; logits of `applying` go round
over more memory than the L2 cache has. Results: bench/results/gpu-<card>-<date>.json, or gpu-simulator-<date>.json.
Without a card this says so and measures nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..report import commit, machine, versions

PARTS = ("applying", "drawing", "stepping", "waiting")
Found = dict[str, list[dict[str, Any]]]


def show(name: str, rows: list[dict[str, Any]], console: Console) -> None:
    """One table."""
    table = Table(title=name, title_justify="left", box=SIMPLE_HEAD)
    columns = list(rows[0]) if rows else []
    for column in columns:
        table.add_column(column, justify="right" if isinstance(rows[0][column], (int, float)) else "left")
    for row in rows:
        table.add_row(
            *(
                "-" if row[one] is None else f"{row[one]:,.3g}" if isinstance(row[one], float) else str(row[one])
                for one in columns
            )
        )
    console.print(table)


def save(found: Found, where: str, options: argparse.Namespace, about: dict[str, Any]) -> Path:
    """bench/results/gpu-<where>-<date>.json."""
    now = datetime.datetime.now(datetime.timezone.utc)
    place = Path("bench/results") / f"gpu-{re.sub(r'[^a-z0-9]+', '-', where.lower())}-{now:%Y-%m-%d-%H%M}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "date": now.isoformat(timespec="seconds"), "commit": commit(), "machine": machine(), "card": about,
        "versions": versions(), "options": {key: str(value) for key, value in vars(options).items()}, **found,
    }  # fmt: skip
    place.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--vocabulary", type=Path, default=Path("../shared/data/llama3.tiktoken"))
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument(
        "--count", action="store_true", help="count loads and stores in numba's simulator; needs no card"
    )
    options = parser.parse_args()
    console = Console(width=118)
    found: Found = {}
    if options.count:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before numba is imported
        found["counting"] = import_module("bench.gpu.counting").measure()
        show("counting", found["counting"], console)
        console.print(f"saved {save(found, 'simulator', options, {'name': 'none: the simulator of numba'})}")
        return
    import torch

    if not torch.cuda.is_available():
        console.print("bench.gpu: there is no card here, nothing was measured (--count needs none)")
        return
    from .timing import card

    about = card()
    console.print(about)
    for part in options.parts.split(","):
        if part not in PARTS:
            parser.error(f"{part!r} is none of {', '.join(PARTS)}")
        found[part] = import_module(f"bench.gpu.{part}").measure(options)
        show(part, found[part], console)
        console.print(f"saved {save(found, about['name'], options, about)}")


if __name__ == "__main__":
    main()
