"""Property-based testing from a schema: `constrain.testing.from_schema` beside the package `hypothesis-jsonschema`.

    python -m bench testing_strategies --sample 300

Each strategy draws 100 documents of every schema inside Hypothesis (generation only, no database, no health checks), in
a worker with limits (10 s to draw, 2 GiB). A schema is *served* if at least 5 documents were drawn in that time, or
fewer and Hypothesis reports that there are no more, and `jsonschema`, with formats asserted, accepts all of them.
Documents per second are over the schemas that both serve, with the time to build the strategy. A keyword is *exercised*
if it judged a value of a type that it applies to; pairs of schema and keyword are counted, and distinct documents.
Results are written to bench/results/ as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import track

from .corpus import Case
from .options import build_parser, read_cases
from .record import write_result
from .tables import build_table, print_table
from .workers import Failure, Guard, run_guarded

SERVED = 5
"""Minimum number of documents of a schema that counts as served."""


@dataclass(slots=True)
class Outcome:
    """The outcome of one schema with one strategy. error: why it stopped. invalid: an invalid document."""

    documents: int = 0
    distinct: int = 0
    seconds: float = 0.0
    invalid: int = 0
    example: str = ""
    error: str = ""
    keywords: list[str] = field(default_factory=list)

    @property
    def served(self) -> bool:
        """Whether all documents are valid, and there are enough of them or no more exist."""
        return (self.documents >= SERVED or (self.documents > 0 and not self.error)) and not self.invalid


def build_constrain_strategy(schema: Any) -> Any:
    """Return the strategy of constrain."""
    from constrain.testing import from_schema

    return from_schema(schema)


def build_peer_strategy(schema: Any) -> Any:
    """Return the strategy of hypothesis-jsonschema."""
    from hypothesis_jsonschema import from_schema

    return from_schema(schema)


STRATEGIES: dict[str, Callable[[Any], Any]] = {
    "constrain": build_constrain_strategy,
    "hypothesis-jsonschema": build_peer_strategy,
}


class TimeIsOver(BaseException):
    """The time to draw is over. Not an Exception, so that Hypothesis does not treat it as a failing test."""


def draw_documents(make: Callable[[Any], Any], case: Case, examples: int, seconds: float) -> Outcome:
    """Draw documents of one schema with one strategy."""
    from hypothesis import HealthCheck, Phase, given, settings

    warnings.simplefilter("ignore")
    schema, outcome, found = json.loads(case.schema), Outcome(), list[Any]()
    begin = perf_counter()

    def test(document: Any) -> None:
        found.append(document)
        if perf_counter() - begin > seconds:
            raise TimeIsOver

    chosen = settings(
        max_examples=examples, database=None, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    try:
        decorate: Any = given(make(schema))
        run: Any = chosen(decorate(test))
        run()
    except TimeIsOver:
        outcome.error = f"more than {seconds:g} s"
    except MemoryError:
        raise
    except BaseException as error:  # any exception of a strategy is part of its outcome
        outcome.error = f"{type(error).__name__}: {str(error)[:300]}"
    outcome.seconds = perf_counter() - begin
    judge_document(schema, found, outcome)
    return outcome


def judge_document(schema: Any, found: list[Any], outcome: Outcome) -> None:
    """Count the documents, the invalid ones, and the keywords that were exercised."""
    import jsonschema
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    exercised: set[str] = set()

    def watched(keyword: str, judged: Any) -> Any:
        def check(validator: Any, value: Any, instance: Any, parent: Any) -> Any:
            if applies_to(keyword, instance):
                exercised.add(keyword)
            yield from judged(validator, value, instance, parent) or ()

        return check

    watching = jsonschema.validators.extend(dialect, {name: watched(name, f) for name, f in dialect.VALIDATORS.items()})
    validator = watching(schema, format_checker=dialect.FORMAT_CHECKER, registry=REGISTRY)
    for document in found:
        error = next(iter(validator.iter_errors(document)), None)
        if error is not None:
            outcome.invalid += 1
            outcome.example = f"{error.json_path}: {error.message}"[:300]
    outcome.documents = len(found)
    outcome.distinct = len({json.dumps(document, sort_keys=True) for document in found})
    outcome.keywords = sorted(exercised)


TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), (str,)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems", "contains", "additionalItems", "prefixItems"), (list,)),
    "items": (list,),
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties", "propertyNames", "required"), (dict,)),
    **dict.fromkeys(("minProperties", "maxProperties", "dependencies", "dependentRequired"), (dict,)),
}
"""The types of values that a keyword applies to; other keywords apply to all."""


def applies_to(keyword: str, instance: Any) -> bool:
    """Return whether a keyword applies to a value; none applies to an empty array or object."""
    if (
        keyword in ("items", "properties", "patternProperties", "additionalProperties", "propertyNames")
        and not instance
    ):
        return False
    return keyword not in TYPES or (isinstance(instance, TYPES[keyword]) and not isinstance(instance, bool))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("data", "sample", "all", "ids", "seed", "seconds", "results")
    parser = build_parser("testing_strategies", __doc__, *shared, sample=300)
    parser.add_argument("--examples", type=int, default=100, help="documents drawn of each schema")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    cases = read_cases(options)
    guard = Guard(2 * options.seconds + 10, 2 << 30)
    runs: dict[str, list[Outcome]] = {}
    for name, make in STRATEGIES.items():
        draw_documents(make, Case("warm", '{"type": "object", "required": ["a"]}', ()), 5, options.seconds)
        work = partial(draw_documents, make, examples=options.examples, seconds=options.seconds)
        outcomes = run_guarded(work, cases, limits=guard, fresh=False)
        runs[name] = []
        for _, outcome in track(outcomes, name, len(cases), console=Console(stderr=True)):
            lost = isinstance(outcome, Failure)
            runs[name].append(Outcome(error=f"{outcome.kind}: {outcome.detail}") if lost else outcome)
    rows = {name: summarise_outcomes(outcomes, runs) for name, outcomes in runs.items()}
    table = build_table(f"{len(cases):,} schemas, up to {options.examples} documents of each", [""], rows)
    for key in next(iter(rows.values())):
        table.add_row(key, *(f"{row[key]:,.5g}" for row in rows.values()))
    print_table(table)
    facts = {
        "schemas": len(cases),
        "rows": rows,
        "reasons": {name: Counter(one.error.split(":")[0] for one in run if one.error) for name, run in runs.items()},
        "not served": {
            name: {case.id: asdict(one) for case, one in zip(cases, run) if not one.served}
            for name, run in runs.items()
        },
    }
    write_result(options, facts)
    return 0


def summarise_outcomes(outcomes: list[Outcome], runs: dict[str, list[Outcome]]) -> dict[str, float]:
    """Return one column of the table."""
    common = [index for index in range(len(outcomes)) if all(run[index].served for run in runs.values())]
    both = [outcomes[index] for index in common]
    served = [one for one in outcomes if one.served]
    return {
        "served": len(served),
        "served, %": 100 * len(served) / len(outcomes),
        "with an invalid document": sum(bool(one.invalid) for one in outcomes),
        f"fewer than {SERVED} documents": sum(one.documents < SERVED for one in outcomes),
        "distinct documents": sum(one.distinct for one in outcomes),
        "documents per second, where all serve": sum(o.documents for o in both)
        / max(sum(o.seconds for o in both), 1e-9),
        "keywords exercised": sum(len(one.keywords) for one in outcomes),
        "distinct keywords exercised": len({keyword for one in outcomes for keyword in one.keywords}),
    }


if __name__ == "__main__":
    sys.exit(main())
