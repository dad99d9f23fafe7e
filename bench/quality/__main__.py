"""Are answers right, and what do they cost? The measures of JSONSchemaBench, and lm-evaluation-harness, on any model.

    python -m bench quality --model demo --sample 100 --engines constrain,unconstrained,llguidance,xgrammar
    python -m bench quality --parts tasks --sampler smc --questions 50
    python -m bench quality --parts harness --tasks gsm8k --model ./a-model --schema answer.json

schemas    one greedy answer for each schema: coverage, compliance, efficiency
tasks      the two tasks of JSONSchemaBench that need no data set, made with --seed: last letters, shuffled objects
harness    tasks of lm-evaluation-harness (`pip install lm-eval`); --include adds a folder of task files

Measures (Geng et al. 2025, "JSONSchemaBench"): declared coverage, the share of schemas that an engine takes;
empirical coverage, the share whose answer is valid, judged by `jsonschema`; compliance, the second over the first;
compile time, time to the first token (compile time included) and time for each further token, medians; accuracy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from ..options import build_parser, read_cases, split_names
from ..record import write_result
from ..tables import build_progress, print_rows
from .answers import ENGINES
from .schemas import measure_schemas
from .tasks import measure_tasks

PARTS = ("schemas", "tasks", "harness")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts. Return the exit code."""
    import torch

    import constrain
    from constrain.compilation.compile_caches import programs

    parser = build_parser("quality", __doc__, "data", "sample", "seed", "results", engines=ENGINES, sample=100,
                          engines_default=["constrain", "unconstrained"])  # fmt: skip
    parser.add_argument("--parts", type=split_names(PARTS), default=["schemas", "tasks"], metavar="A,B",
                        help=", ".join(PARTS))  # fmt: skip
    parser.add_argument("--model", default="demo", help="a folder or name of a transformers model, or demo")
    parser.add_argument("--sampler", default="masked", help="sampler of our engine; greedy if it is masked")
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of an answer")
    parser.add_argument("--questions", type=int, default=20, help="questions of each of the tasks")
    parser.add_argument("--tasks", default="", metavar="A,B", help="tasks of lm-evaluation-harness")
    parser.add_argument("--include", default=None, metavar="FOLDER", help="further tasks of lm-evaluation-harness")
    parser.add_argument("--schema", default=None, metavar="FILE", help="JSON Schema of the answers of these tasks")
    parser.add_argument("--limit", type=int, default=None, help="most documents of each of these tasks")
    options = parser.parse_args(arguments)
    programs.most = 0  # do not use constraints that an earlier run stored on disk
    warnings.simplefilter("ignore", constrain.SchemaWarning)  # of schemas of the data, which nobody can change here
    loaded = constrain.load_model(options.model)
    for part in options.parts:
        with torch.no_grad():
            rows = RUNNERS[part](loaded, options)
        print_rows(f"{part}, {options.model}", rows)
        write_result(options, {"rows": rows}, part)
    return 0


def run_schemas(loaded: Any, options: Any) -> list[dict[str, Any]]:
    cases = read_cases(options)
    with build_progress(Console(stderr=True)) as bar:
        task = bar.add_task("schemas", total=len(cases) * len(options.engines))
        return [
            measure_schemas(
                loaded, engine, cases, sampler=options.sampler, most=options.tokens, seed=options.seed,
                progress=lambda: bar.advance(task),
            )
            for engine in options.engines
        ]  # fmt: skip


def run_tasks(loaded: Any, options: Any) -> list[dict[str, Any]]:
    return [
        measure_tasks(
            loaded, engine, count=options.questions, sampler=options.sampler, most=options.tokens, seed=options.seed
        )
        for engine in options.engines
    ]


def run_harness(loaded: Any, options: Any) -> list[dict[str, Any]]:
    from .harness import evaluate_tasks  # needs lm-eval

    return evaluate_tasks(
        loaded, options.tasks.split(","), schema=options.schema, sampler=options.sampler, most=options.tokens,
        seed=options.seed, include=options.include, limit=options.limit,
    )  # fmt: skip


RUNNERS = {"schemas": run_schemas, "tasks": run_tasks, "harness": run_harness}

if __name__ == "__main__":
    sys.exit(main())
