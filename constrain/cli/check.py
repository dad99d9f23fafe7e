"""`constrain check`: is it a schema, can anything satisfy it, how is each keyword enforced, what does it cost."""

from __future__ import annotations

from collections import Counter
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UnsatisfiableError, UnsupportedError, VocabularyError
from ..style import Style
from . import show
from .kernels import ready
from .options import (
    Any_,
    JsonFlag,
    KeyOrder,
    SchemaArgument,
    Source,
    Spacing,
    VocabularyOption,
    about,
    read_schema,
    style_of,
    vocabulary_of,
)  # fmt: skip

if TYPE_CHECKING:
    from ..compile import Constraint
    from ..frontends.json_schema.describe import Row
    from ..tokens.vocabulary import Vocabulary

__all__ = ["check"]

HOW = {
    "mask": "in the mask",
    "counter": "by a counter",
    "guard": "by a guard",
    "annotation": "asserts nothing",
    "structure": "holds schemas",
    "refused": "not supported",
}
MOST_RULES = 20_000
"""Rules that are linked to see the size: all of them, for any schema that a person has written."""
LONGEST = 400
"""Characters of the shortest instance that are shown to people; --json has all."""


def check(
    schema: SchemaArgument,
    vocabulary: VocabularyOption = None,
    key_order: KeyOrder = None,
    whitespace: Spacing = None,
    anything: Any_ = False,
    as_json: JsonFlag = False,
) -> None:
    """Look at a schema: is it one, can it be satisfied, how is each keyword enforced, what does it cost.

    Where nothing satisfies it (exit code 1), the keywords that exclude each other are named by JSON pointer; where a
    keyword is not supported (3), the table says which and why.
    """
    from ..frontends.json_schema.describe import describe

    style = style_of(key_order, whitespace, anything)
    source = read_schema(schema)
    made: tuple[Constraint, dict[str, float]] | None = None
    refused: UnsupportedError | None = None
    ready()
    with about(source.name):
        known = vocabulary_of(vocabulary)
        try:
            made = compiled(source.text, style, known)
            again = compiled(source.text, style, known)[1]
        except UnsatisfiableError as error:
            unsatisfiable(source, error, as_json)
        except UnsupportedError as error:
            refused = error
        rows = describe(source.text, style=style)
        if not as_json:
            show.say((source.name, "bold"), ": ", ("a JSON Schema", "green"))
            tell_keywords(rows)
        answer: dict[str, Any] = {"schema": True, "keywords": [row._asdict() for row in rows], "supported": not refused}
        if made is None:
            unsupported(source, refused, answer, as_json)
        else:
            constraint, cost = made
            shortest = (constraint.matcher().shortest_completion() or b"").decode()
            answer |= {"satisfiable": True, "size": size_of(constraint), "shortest": shortest}
            answer["cost"] = {"first": cost, "again": again, "tokens": known.size}
            show.as_json(answer) if as_json else tell(answer)


def unsupported(source: Source, error: UnsupportedError | None, answer: dict[str, Any], as_json: bool) -> None:
    """Tells what is not supported, and leaves."""
    assert error is not None
    if not as_json:
        raise error
    show.as_json(answer | {"satisfiable": None, "error": show.error_json(error, source.name)})
    raise typer.Exit(show.TOO_MUCH)


def unsatisfiable(source: Source, error: UnsatisfiableError, as_json: bool) -> None:
    """Tells that nothing satisfies the schema, and leaves."""
    if as_json:
        show.as_json({"schema": True, "satisfiable": False, "error": show.error_json(error, source.name)})
    else:
        show.say((source.name, "bold"), ": ", ("a JSON Schema", "green"), ", but ", ("nothing satisfies it", "red"))
        show.say()
        show.say(error.render())
    raise typer.Exit(show.NO)


def compiled(text: str, style: Style, vocabulary: Vocabulary) -> tuple[Constraint, dict[str, float]]:
    """The Constraint, and what it cost in µs: to compile, to the first mask, and per mask along its shortest text."""
    from ..compile import compile

    warm = compile(vocabulary, schema=True)  # the vocabulary's own tables are no cost of this schema
    warm.matcher().mask()
    start = perf_counter_ns()
    constraint = compile(vocabulary, schema=text, style=style)
    done = perf_counter_ns()
    matcher = constraint.matcher()
    mask = matcher.mask()
    first = perf_counter_ns()
    try:
        shortest = vocabulary.fewest(matcher.shortest_completion() or b"")
    except VocabularyError:  # no tokens spell it; then only the first mask is measured
        shortest = []
    spent = 0
    for token in shortest:
        matcher.advance(token)
        before = perf_counter_ns()
        matcher.mask(mask)
        spent += perf_counter_ns() - before
    cost = {"compile_us": (done - start) / 1e3, "first_mask_us": (first - done) / 1e3}
    return constraint, cost | {"mask_us": spent / 1e3 / max(1, len(shortest))}


def size_of(constraint: Constraint) -> dict[str, int]:
    """How large the machine is, once all of it is linked."""
    program = constraint.program
    program.link_ahead(MOST_RULES)
    return {
        "rules": len(program._cells),
        "code_words": program.used,
        "leaves": len(program.leaves),
        "leaf_states": sum(len(dfa.delta) for dfa, _ in program.leaves),
    }


def tell_keywords(rows: list[Row]) -> None:
    """Prints the table of keywords, and how many are enforced how."""
    counts = Counter(HOW[row.how] for row in rows)
    summary = ", ".join(f"{n} {how}" for how, n in counts.most_common())
    show.say(
        f"{len(rows)} keyword{'s' * (len(rows) != 1)}: {summary}" if rows else "no keywords: every value satisfies it"
    )
    show.say()
    show.table(("where", "how", "note"), [(row.pointer, HOW[row.how], row.note) for row in rows])
    if rows:
        show.say()


def timed(cost: dict[str, float]) -> str:
    """A cost in words."""
    return (
        f"{cost['compile_us']:,.0f} µs to compile, {cost['first_mask_us']:,.0f} to the first mask, "
        f"{cost['mask_us']:.1f} a mask after it"
    )


def tell(answer: dict[str, Any]) -> None:
    """Prints size, cost and the shortest instance."""
    size, cost, shortest = answer["size"], answer["cost"], answer["shortest"]
    leaves = f"{size['leaf_states']} states in {size['leaves']} leaves"
    show.facts([
        ("size", f"{size['rules']} rules, {size['code_words']} words of code, {leaves}"),
        ("the first time", timed(cost["first"])),
        ("then", f"{timed(cost['again'])} ({cost['tokens']:,} tokens)"),
        ("shortest", shortest if len(shortest) <= LONGEST else shortest[: LONGEST - 1] + "…"),
    ])  # fmt: skip
