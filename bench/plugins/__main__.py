"""Are answers and masks inside other engines what our Matcher says?

    python -m bench plugins --sample 500 --seed 1 --engines mlx,transformers

For each installed engine: an answer for each schema, with a budget of the tokens of its shortest answer and 60 more,
judged by jsonschema; then another one without a budget, in which up to --masks masks inside the engine are compared
with those of a new Matcher after the same tokens. llama-cpp-python, MLX and transformers run the embedded model; for
vLLM and SGLang, which need a GPU, their own classes run with a simulated scheduler and model. A schema that the plug-in
compiles and the engine refuses is counted separately with the engine's reason, and not as a fault. `make plugins`
installs each engine in an environment of its own and runs this bench there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

from rich.console import Console

from ..corpus import Case
from ..mask_errors.judge import build_judge
from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import build_progress, print_rows
from .class_engines import Sglang, VllmV1, VllmV2
from .local_engines import Llama, Mlx, Transformers
from .tally import EngineRefusal, MaskCheck, PluginEngine, Tally

ENGINES: dict[str, tuple[type[PluginEngine], ...]] = {
    "transformers": (Transformers,),
    "llama": (Llama,),
    "mlx": (Mlx,),
    "vllm": (VllmV1, VllmV2),
    "sglang": (Sglang,),
}
EXTRA = 60
"""Tokens of a budget in addition to those of the shortest answer."""
MOST = 900
"""Maximum number of tokens of a shortest answer: the embedded model has a context of 1,024."""
SHOWN = 20
"""Maximum number of faults that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code: 1 if an answer is invalid or a mask differs."""
    shared = ("data", "sample", "ids", "seed", "results")
    parser = build_parser("plugins", __doc__, *shared, engines=ENGINES, sample=500)
    parser.add_argument("--masks", type=int, default=24, help="most masks compared per schema")
    options = parser.parse_args(arguments)
    cases = read_cases(options)
    makers = [one for name in options.engines for one in ENGINES[name] if find_spec(one.package) is not None]
    absent = [name for name in options.engines if find_spec(ENGINES[name][0].package) is None]
    if absent:
        print(f"not installed here: {', '.join(absent)}", file=sys.stderr)
    if not makers:
        return 2
    console = Console(stderr=True)
    tallies = []
    with build_progress(console) as progress:
        for maker in makers:
            task = progress.add_task(maker.name, total=len(cases))
            advance = partial(progress.advance, task)
            tallies.append(measure_plugin(maker(), cases, masks=options.masks, seed=options.seed, progress=advance))
    rows = [{"engine": maker.name, "what runs": maker.where, **one.counts} for maker, one in zip(makers, tallies)]
    faults = [line for one in tallies for line in one.faults]
    refusals = [line for one in tallies for line in one.refusals]
    print_rows(f"{len(cases):,} schemas, seed {options.seed}", rows, 3)
    more = [f"and {len(faults) - SHOWN} more faults, in the file of results"] if len(faults) > SHOWN else []
    print("\n".join([*refusals, *faults[:SHOWN], *more]))
    part = "" if len(options.engines) == len(ENGINES) else " ".join(options.engines)  # of an environment of its own
    write_result(options, {"rows": rows, "faults": faults, "refusals": refusals}, part)
    return 1 if faults else 0


def measure_plugin(
    engine: PluginEngine, cases: Sequence[Case], *, masks: int, seed: int, progress: Callable[[], None]
) -> Tally:
    """Return the counts of an engine. Faults are invalid answers, texts that did not end, failures, other masks."""
    import constrain
    from constrain.base.errors import ConstrainError

    vocabulary = engine.load()
    tally = Tally()
    for number, case in enumerate(cases):
        progress()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                constraint = constrain.compile(vocabulary, schema=case.schema)
            closing = constraint.matcher().shortest_completion()
        except ConstrainError:
            tally.counts["refused"] += 1
            continue
        least = len(vocabulary.fewest(closing or b"")) + 1
        if closing is None or least > MOST:
            tally.counts["too long"] += 1
            continue
        check = MaskCheck(constraint)
        source = {"schema": case.schema}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = engine.answer(constraint, source, least + EXTRA, seed + number)
                engine.compare(constraint, source, masks, seed + number, check)
        except EngineRefusal as refusal:
            tally.counts["refused by engine"] += 1
            tally.refusals.append(f"{engine.name} refuses {case.id}: {refusal}")
            continue
        except Exception as error:
            tally.counts["failed"] += 1
            tally.faults.append(f"{engine.name}, {case.id}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if tally.add_answer(build_judge(case.schema), text) is False or text is None:
            tally.faults.append(f"{engine.name}, {case.id}: {'did not end' if text is None else text[:200]}")
        tally.counts["masks"] += check.compared
        tally.counts["masks different"] += check.different
        if check.different:
            tally.faults.append(f"{engine.name}, {case.id}: {check.different} of {check.compared} masks differ")
    return tally


if __name__ == "__main__":
    sys.exit(main())
