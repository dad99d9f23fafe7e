"""`constrain check`: whether a schema is valid and satisfiable, how each keyword is enforced, and what it costs.

With --target it reports how other products would treat the schema (`target_output`). Grammars are checked by
`check_grammar_command`.
"""

from __future__ import annotations

import warnings
from time import perf_counter_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..automata.dfa import Dfa
from ..base.errors import (
    ConstrainError,
    LimitError,
    SchemaError,
    SchemaWarning,
    UnsatisfiableError,
    UnsupportedError,
    VocabularyError,
)
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..frontends.json_schema.reports.keyword_report import describe_keywords
from ..frontends.json_schema.reports.schema_faults import SchemaFault, find_faults
from ..frontends.json_schema.reports.unsatisfiable_parts import find_unsatisfiable_parts
from . import display
from .check_grammar_command import check_grammar
from .common_arguments import SchemaOptions, takes_style
from .grammar_source import ImportOption, LexerOption, StartOption, is_grammar
from .kernel_notice import load_kernels
from .keyword_output import collect_notes, print_keywords, print_notes
from .schema_positions import SchemaPositions, find_positions
from .source_options import (
    JsonFlag,
    SchemaArgument,
    SchemaSource,
    VocabularyOption,
    attribute_errors,
    read_schema,
    vocabulary_of,
)
from .target_output import print_targets

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["check_schema"]

MOST_RULES = 20_000
"""Maximum number of rules that are linked to measure the size: enough for all rules of any hand-written schema."""


@takes_style(Style())
def check_schema(
    schema: SchemaArgument,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Report what openai, anthropic, gemini, vllm or llamacpp would refuse, ignore or change, or all; "
            "may be repeated.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar=" ", help="List every subschema and location.")] = False,
    start: StartOption = None,
    lexer: LexerOption = None,
    folders: ImportOption = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", metavar=" ", help="For a grammar: exit with code 1 if anything is wrong or doubtful."),
    ] = False,
    vocabulary: VocabularyOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Check a schema: is it valid and satisfiable, how is each keyword enforced, and what does it cost?

    All errors are reported at once (exit code 2). If nothing satisfies the schema (1), the conflicting keywords are
    named by JSON pointer; if a keyword is unsupported (3), the table names it and the reason.

    With --target, the schema is checked against the subsets of other products: exit code 0 if all of them accept it
    unchanged, 1 if one refuses, ignores or changes a part of it. Nothing is sent anywhere.

    For a grammar (.lark, .gbnf): unreachable and unproductive rules, ambiguities with an example, terminals that never
    match or cannot be adjacent, a shortest sentence, sizes.
    """
    if is_grammar(schema):
        raise typer.Exit(check_grammar(schema, start, lexer, folders, as_json=as_json, strict=strict))
    source = read_schema(schema)
    options = options.relative_to(source)
    with attribute_errors(source.name):
        faults = check_faults(source, options, as_json)
        where = find_positions(source.text)
        if target:
            raise typer.Exit(
                print_targets(source, options.registry, target, where, as_json=as_json, everything=everything)
            )
        report_schema(source, options, where, faults, vocabulary, as_json=as_json, everything=everything)


def check_faults(source: SchemaSource, options: SchemaOptions, as_json: bool) -> list[SchemaFault]:
    """Return the faults that are harmless or only unsupported. If there are others, report them and exit."""

    try:
        faults = find_faults(source.text, style=options.style, registry=options.registry)
    except RecursionError:
        raise LimitError("the schema is nested too deeply", pointer="", hint="Use fewer levels.") from None
    wrong = [fault.error for fault in faults if fault.reached and isinstance(fault.error, SchemaError)]
    if len(wrong) == 1:
        raise wrong[0]
    if not wrong:
        return faults
    if as_json:
        listed = [display.error_json(error, source.name) for error in wrong]
        display.as_json({"schema": False, "error": listed[0], "errors": listed})
    else:
        display.print_note((f"error: {source.name}: ", "bold red"), f"{len(wrong)} errors")
        lines = find_positions(source.text).lines
        for error in wrong:
            line = lines.get(error.pointer or "")
            display.print_note((f"line {line}  " if line else "", "dim"), error.render())
    raise typer.Exit(display.WRONG)


def report_schema(
    source: SchemaSource,
    options: SchemaOptions,
    where: SchemaPositions,
    faults: list[SchemaFault],
    vocabulary: str | None,
    *,
    as_json: bool,
    everything: bool,
) -> None:
    """Report how the schema is enforced and what it costs; exit with a code if it is unsupported or unsatisfiable."""

    compiled: tuple[Constraint, dict[str, float]] | None = None
    refused: UnsupportedError | None = None
    load_kernels()
    known = vocabulary_of(vocabulary)
    try:
        compiled = measure_compile(source.text, options, known)
        warm_cost = measure_compile(source.text, options, known)[1]
    except UnsatisfiableError as error:
        report_unsatisfiable(source, error, where, as_json)
    except UnsupportedError as error:
        refused = error
    beyond = {fault.error.pointer: fault.error.cause for fault in faults if fault.reached}
    rows = [
        row._replace(how="refused", note=beyond[row.pointer]) if row.pointer in beyond else row
        for row in describe_keywords(source.text, style=options.style, registry=options.registry)
    ]
    empty = [] if refused else find_unsatisfiable_parts(source.text, style=options.style, registry=options.registry)
    notes = collect_notes(rows, where, empty, faults)
    if not as_json:
        print_keywords(source.name, rows, where, satisfiable=None if refused else True, everything=everything)
        print_notes(notes, everything=everything)
    answer: dict[str, Any] = {
        "schema": True,
        "supported": not refused,
        "keywords": [row._asdict() | {"line": where.lines.get(row.pointer)} for row in rows],
        "notes": [note._asdict() for note in notes],
    }
    if compiled is None:
        report_unsupported(source, refused, answer, as_json)
    else:
        constraint, cost = compiled
        shortest = (constraint.matcher().shortest_completion() or b"").decode()
        answer |= {"satisfiable": True, "size": measure_size(constraint), "shortest": shortest}
        answer["cost"] = {"first": cost, "again": warm_cost, "tokens": known.size}
        display.as_json(answer) if as_json else print_summary(answer)


def report_unsupported(
    source: SchemaSource, error: ConstrainError | None, answer: dict[str, Any], as_json: bool
) -> None:
    """Report what is not supported, and exit."""
    assert error is not None
    if not as_json:
        raise error
    display.as_json(answer | {"satisfiable": None, "error": display.error_json(error, source.name)})
    raise typer.Exit(display.TOO_MUCH)


def report_unsatisfiable(
    source: SchemaSource, error: UnsatisfiableError, where: SchemaPositions, as_json: bool
) -> None:
    """Report that the schema is unsatisfiable, and exit."""
    if as_json:
        notes = [note._asdict() for note in collect_notes([], where, [], [])]
        report = {"schema": True, "satisfiable": False, "error": display.error_json(error, source.name), "notes": notes}
        display.as_json(report)
    else:
        display.print_answer(
            (source.name, "bold"), ": ", ("a JSON Schema", "green"), ", but ", ("nothing satisfies it", "red")
        )
        display.print_answer()
        for text in error.render().split("\n"):
            line = where.lines.get(text.strip()) if text.startswith("    ") else None
            display.print_answer(text, (f"  (line {line})" if line else "", "dim"))
        if where.twice:
            display.print_answer()
            print_notes(collect_notes([], where, [], []), everything=True)
    raise typer.Exit(display.NO)


def measure_compile(text: str, options: SchemaOptions, vocabulary: Vocabulary) -> tuple[Constraint, dict[str, float]]:
    """Compile a schema and return the Constraint with its cost in µs.

    The cost is that of compiling, of the first mask, and of each mask along the shortest text.
    """

    warm = compile(vocabulary, schema=True)  # the vocabulary's own tables are not part of the cost of this schema
    warm.matcher().mask()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # `collect_notes` reports the same
        start = perf_counter_ns()
        constraint = compile(vocabulary, schema=text, style=options.style, registry=options.registry)
    compiled = perf_counter_ns()
    matcher = constraint.matcher()
    mask = matcher.mask()
    first = perf_counter_ns()
    try:
        shortest = vocabulary.fewest(matcher.shortest_completion() or b"")
    except VocabularyError:  # no tokens spell the text; then only the first mask is measured
        shortest = []
    mask_ns = 0
    for token in shortest:
        matcher.advance(token)
        before = perf_counter_ns()
        matcher.mask(mask)
        mask_ns += perf_counter_ns() - before
    cost = {"compile_us": (compiled - start) / 1e3, "first_mask_us": (first - compiled) / 1e3}
    return constraint, cost | {"mask_us": mask_ns / 1e3 / max(1, len(shortest))}


def measure_size(constraint: Constraint) -> dict[str, int]:
    """Return the size of the tables, after all rules have been linked."""
    program = constraint.program
    program.link_ahead(MOST_RULES)
    return {
        "rules": len(program._cells),
        "code_words": program.used,
        "leaves": len(program.leaves),
        "leaf_states": sum(len(one.delta) for one, _ in program.leaves if isinstance(one, Dfa)),
    }


def format_cost(cost: dict[str, float]) -> str:
    """Describe a cost in words."""
    return (
        f"{cost['compile_us']:,.0f} µs to compile, {cost['first_mask_us']:,.0f} to the first mask, "
        f"{cost['mask_us']:.1f} a mask after it"
    )


def print_summary(answer: dict[str, Any]) -> None:
    """Print size, cost and the shortest instance."""
    size, cost, shortest = answer["size"], answer["cost"], answer["shortest"]
    leaves = f"{size['leaf_states']} states in {size['leaves']} leaves"
    display.print_facts([
        ("size", f"{size['rules']} rules, {size['code_words']} words of code, {leaves}"),
        ("the first time", format_cost(cost["first"])),
        ("then", f"{format_cost(cost['again'])} ({cost['tokens']:,} tokens)"),
        ("shortest", shortest if len(shortest) <= display.LONGEST else shortest[: display.LONGEST - 1] + "…"),
    ])  # fmt: skip
