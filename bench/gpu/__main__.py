"""How near are the kernels for cards to what the card can do, and do masks cost anything beside a model?

    python -m bench gpu [--parts applying,drawing,stepping,waiting] [--vocabulary ../shared/data/llama3.tiktoken]
    python -m bench gpu --count                  without a card: what apply_mask reads and writes, in the simulator

applying   apply_mask beside XGrammar's Triton and CUDA kernels and llguidance's: µs, and times what it takes to read
           the bits and write the sectors of memory with masked logits (and read those that are masked in part) at the
           bandwidth that was measured on this card in the same run; µs of the host for a call
drawing    mask_softmax_sample beside torch's mask, softmax, sort, cumulative sum and multinomial
stepping   a step of constraints that live on the card, B = 64: µs of device time, inside a CUDA graph
waiting    how long the model's stream waits for masks made on the host, B = 1, 32, 256: events after the model and
           after the wait, with a model of 1.2 billion random weights, whose step is a CUDA graph

Times are of the device, by events around replays of a CUDA graph, medians of `--repeat`; logits of `applying` go round
over more memory than the L2 cache has.
Without a card this says so and measures nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..options import build_parser, split_names
from ..record import write_result
from ..tables import print_rows

PARTS = ("applying", "drawing", "stepping", "waiting")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts. Return the exit code."""
    parser = build_parser("gpu", __doc__, "vocabulary", "repeat", "results", repeat=20)
    parser.add_argument("--parts", type=split_names(PARTS), default=list(PARTS), metavar="A,B", help=", ".join(PARTS))
    parser.add_argument(
        "--count", action="store_true", help="count loads and stores in numba's simulator; needs no card"
    )
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    if options.count:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before numba is imported
        found["counting"] = import_module("bench.gpu.counting").measure_part()
        print_rows("counting", found["counting"])
        write_result(options, found, "simulator")
        return 0
    import torch

    if not torch.cuda.is_available():
        print("bench.gpu: there is no card here, nothing was measured (--count needs none)")
        return 0
    from .timing import describe_card

    found["card"] = describe_card()
    print(found["card"])
    for part in options.parts:
        found[part] = import_module(f"bench.gpu.{part}").measure_part(options)
        print_rows(part, found[part])
        write_result(options, found, found["card"]["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
