"""Does any input of a stranger crash the process, run without end, exceed its memory, or give a wrong answer?

    python -m bench hostile [--only WORD] [--engines constrain,llguidance,xgrammar]

Each cell of the table runs in a process of its own, forked after the engine is prepared, with limits of 10 s of CPU
time and 1 GiB of additional memory. Verdicts: answered; refused, by a typed error; error, an exception of another type;
hang; memory; crash, by a signal; wrong, a wrong answer (checked for constrain only); - where the engine does not
support the input. Rows that start processes have a limit of their own, see `scenarios.py`. The exit code is 1 if
constrain neither answers nor refuses a row. Results are written to bench/results/ as JSON.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from ..options import build_parser
from ..process_figures import read_resident_memory
from ..record import write_result
from ..workers import Failure, Guard, run_guarded
from .answers import BYTES, WrongAnswer
from .peers import ENGINES, REFUSALS
from .rows import ROWS, Row

OURS = "constrain"
ACCEPTED = ("answered", "refused", "-")
MEMORY = 1 << 30
"""Limit of a row: bytes of additional resident memory."""
ADDRESSES = 4 << 30
"""Limit of a row: bytes of additional address space, of which thread stacks and state caches use only a part."""
LINE = "{:<34} {:<14} {:<8} {:>4}" + " {:<8}" * len(ENGINES)
DETAIL = "    {}"
COLUMNS = dict(zip(ENGINES, ("llguid.", "xgrammar", "outlines", "lm-form.")))
"""Column headers."""
KINDS = {"timeout": "hang", "memory": "memory", "crash": "crash"}


@dataclass(frozen=True)
class Cell:
    """The outcome of one row with one engine. detail: the type of an error, or what is wrong. seconds: CPU time.
    mebibytes: additional memory at the peak.
    """

    verdict: str
    detail: str = ""
    seconds: float = 0.0
    mebibytes: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rows. Return the exit code: 1 if a row fails with constrain."""
    parser = build_parser("hostile", __doc__, "only", "results", engines=[OURS, *ENGINES])
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if options.only.lower() in f"{row.name} {row.origin}".lower()]
    prepared = prepare_engines(options.engines)
    print(LINE.format("input", "from", OURS, "s", *COLUMNS.values()))
    table = {}
    for row in rows:
        cells = {name: judge_row(row, name, use) for name, use in prepared.items()}
        table[row.name] = {name: asdict(one) for name, one in cells.items()}
        print(format_row(row, cells), flush=True)
    failed = [name for name, cells in table.items() if cells.get(OURS, {"verdict": "-"})["verdict"] not in ACCEPTED]
    print(summarise_table(table, failed))
    if not options.only:
        write_result(options, {"rows": table, "failed": failed})
    return 1 if failed else 0


def prepare_engines(names: Sequence[str]) -> dict[str, Mapping[str, Callable[[str], Any]]]:
    """Prepare the chosen engines that are installed."""
    ready: dict[str, Mapping[str, Callable[[str], Any]]] = {}
    for name in names:
        if name == OURS:
            warm_constrain()
            ready[name] = {}
        elif importlib.util.find_spec(name.replace("-", "_").replace("lm_format_enforcer", "lmformatenforcer")):
            ready[name] = ENGINES[name]()
    return ready


def warm_constrain() -> None:
    """Load kernels and modules, which are not part of the cost of a row."""
    import constrain
    from constrain.compilation.compile_caches import programs, recent

    recent.most = programs.most = 0
    for source in (
        {"schema": {"type": "object", "properties": {"a": {"type": "number"}}}},
        {"regex": "a+(?=b)b"},
        {"grammar": 'start: "a"'},
        {"grammar": 'root ::= "a"'},
    ):
        matcher = constrain.compile(BYTES, **source).matcher()  # type: ignore[arg-type]
        matcher.mask()
        matcher.shortest_completion()
    if importlib.util.find_spec("jsonschema"):
        import jsonschema  # noqa: F401
    if importlib.util.find_spec("torch"):
        import torch  # noqa: F401
    if importlib.util.find_spec("transformers"):
        import transformers.tokenization_utils_fast  # noqa: F401
    import constrain.cli.app
    import constrain.integrations.logits_processor


def judge_row(row: Row, name: str, use: Mapping[str, Callable[[str], Any]]) -> Cell:
    """Run one row with one engine in a child process and return its cell."""
    if name != OURS and row.kind not in use:
        return Cell("-")
    work = partial(run_constrain, row) if name == OURS else partial(run_peer, use[row.kind], row.text)
    outcome = next(
        run_guarded(lambda _: run_measured(work), [row], limits=Guard(row.seconds, ADDRESSES, "cpu"), fresh=True)
    )[1]
    if isinstance(outcome, Failure):
        return Cell(KINDS[outcome.kind], outcome.detail)
    found = Cell(*outcome)
    if found.mebibytes * (1 << 20) > MEMORY:
        return replace(found, verdict="memory", detail=f"{found.mebibytes:,.0f} MiB")
    return found


def run_measured(work: Callable[[], tuple[str, str]]) -> tuple[str, str, float, float]:
    """Run in the child: return verdict, detail, CPU seconds and MiB."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    held, begin = read_resident_memory("VmRSS"), time.process_time()
    verdict, detail = work()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return verdict, detail[:300], time.process_time() - begin + children.ru_utime, read_resident_memory("VmHWM") - held


def run_constrain(row: Row) -> tuple[str, str]:
    """Run a row through constrain: anything but a ConstrainError is an error of the wrong type."""
    import constrain

    warnings.simplefilter("ignore")
    try:
        if row.kind == "ours":
            row.check()
        else:
            row.check(compile_row(row))
    except WrongAnswer as wrong:
        return "wrong", str(wrong)
    except constrain.ConstrainError as error:
        if len(str(error)) > 5_000:
            return "wrong", f"a message of {len(str(error)):,} characters"
        return (
            ("refused", type(error).__name__)
            if row.refusal == "right"
            else ("wrong", f"refused: {type(error).__name__}: {error}")
        )
    except MemoryError:
        raise
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "answered", ""


def compile_row(row: Row) -> Any:
    """Return the Constraint of a row."""
    import constrain

    if row.kind == "schema":
        return constrain.compile(BYTES, schema=row.text, style=row.style)
    if row.kind == "regex":
        return constrain.compile(BYTES, regex=row.text)
    return constrain.compile(BYTES, constrain.gbnf(row.text) if row.kind == "gbnf" else constrain.lark(row.text))


def run_peer(use: Callable[[str], Any], text: str) -> tuple[str, str]:
    """Run a row through a peer."""
    try:
        use(text)
    except MemoryError:
        raise
    except RecursionError as error:
        return "error", f"RecursionError: {error}"
    except REFUSALS as error:
        return "refused", f"{type(error).__name__}: {error}"
    except BaseException as error:  # a panic in Rust is not an Exception; a bare Exception is a deliberate refusal
        return "refused" if type(error) is Exception else "error", f"{type(error).__name__}: {error}"
    return "answered", ""


def format_row(row: Row, cells: Mapping[str, Cell]) -> str:
    """Return a line of the table, with a second line if constrain fails."""
    mine = cells.get(OURS, Cell("-"))
    theirs = (cells[name].verdict if name in cells else "" for name in ENGINES)
    line = LINE.format(row.name[:34], row.origin[:14], mine.verdict, f"{mine.seconds:.1f}", *theirs).rstrip()
    return line if mine.verdict in ACCEPTED else f"{line}\n{DETAIL.format(mine.detail[:95])}"


def summarise_table(table: Mapping[str, Mapping[str, Any]], failed: Sequence[str]) -> str:
    """Return counts for each engine, and the verdict."""
    lines = []
    for name in (OURS, *ENGINES):
        counts = Counter(cells[name]["verdict"] for cells in table.values() if name in cells)
        if counts:
            lines.append(
                f"{name}: "
                + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common() if verdict != "-")
            )
    worst = max((cells[OURS]["seconds"] for cells in table.values() if OURS in cells), default=0.0)
    lines.append(f"{len(table)} rows, {len(failed)} of ours failed; the slowest took {worst:.1f} s of CPU time")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
