"""`constrain check GRAMMAR`: errors and doubtful parts of a grammar, with example texts; size and shortest text."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import typer

from ..authoring.grammar_tools import GrammarFinding, WrittenGrammar, find_problems
from ..authoring.grammar_tools.grammar_errors import collect_errors
from ..authoring.grammar_tools.grammar_findings import rate_dead_ends
from ..authoring.grammar_tools.written_grammar import kind_of, read_grammar
from ..base.errors import ConstrainError, LimitError, UnsatisfiableError, UnsupportedError, locate_position
from ..compilation.constraint_compiler import compile_grammar
from ..vocabulary.vocabulary import Vocabulary
from . import display
from .grammar_source import grammar_of, grammar_text
from .kernel_notice import load_kernels
from .source_options import attribute_errors

__all__ = ["check_grammar"]

STYLES = {"wrong": "bold red", "doubtful": "yellow", "note": "dim"}
LEVELS = {
    1: "none: every prefix can be completed",
    2: "possible where a conflict overrules a rule, or one derives no text or uses ignored text; masks exclude them",
    3: "possible after terminals that cannot be adjacent in any text",
}


def check_grammar(
    given: str, start: str | None, lexer: str | None, folders: list[str] | None, *, as_json: bool, strict: bool
) -> int:
    """Print the findings about a grammar and return the exit code."""
    name, text = grammar_text(given)
    try:
        written = grammar_of(given, start, lexer, folders)
    except LimitError:
        raise
    except ConstrainError as error:
        return report_errors(name, text, error, start, tuple(folders or ()), as_json)

    with attribute_errors(name):
        findings = find_problems(written)
        answer: dict[str, Any] = {
            "grammar": not is_refused(written),
            "findings": [finding_json(written, one) for one in findings],
        }
        answer["sizes"] = measure_sizes(written)
        empty = written.productions.start not in written.productions.productive()
        if not as_json:
            print_findings(written, findings)
        if is_refused(written) or empty:
            answer["satisfiable"] = None if not empty else False
            if as_json:
                display.as_json(answer)
            return display.NO if empty else display.WRONG
        answer["dead_ends"] = rate_dead_ends(written, findings)
        answer |= measure_grammar(written, as_json, answer)
    if as_json:
        display.as_json(answer)
    else:
        print_sizes(written, answer)
    if not answer["satisfiable"]:
        return display.NO
    return display.NO if strict and any(one.weight != "note" for one in findings) else display.FINE


def is_refused(written: WrittenGrammar) -> bool:
    """Return whether Lark's LALR parser rejects the grammar."""
    return written.has_lexer and written.clash is not None


def report_errors(
    name: str, text: str, first: ConstrainError, start: str | None, folders: tuple[str, ...], as_json: bool
) -> int:
    """Print all errors because of which the text is not a grammar, and return the exit code."""

    errors = [first]
    if kind_of(name, text) == "lark":
        errors = collect_errors(text, start=start or "start", name=name, import_paths=folders) or [first]
    if as_json:
        listed = [display.error_json(error, name) for error in errors]
        display.as_json({"grammar": False, "error": listed[0], "errors": listed})
    elif len(errors) == 1:
        display.print_error(errors[0], name)
    else:
        display.print_note((f"error: {name}: ", "bold red"), f"{len(errors)} errors")
        for error in errors:
            display.print_note()
            display.print_note(error.render())
    return max(map(display.code_of, errors))


def finding_json(written: WrittenGrammar, finding: GrammarFinding) -> dict[str, Any]:
    """Return a finding as JSON data."""
    line, column = (None, None)
    if finding.position is not None:
        line, column, *_ = locate_position(written.text, finding.position)
    return {
        "kind": finding.kind, "weight": finding.weight, "names": list(finding.names), "line": line, "column": column,
        "cause": finding.cause, "hint": finding.cure or None,
        "examples": [{"what": what, "text": text} for what, text in finding.examples],
    }  # fmt: skip


def print_findings(written: WrittenGrammar, findings: list[GrammarFinding]) -> None:
    """Print the findings."""
    kind = "a Lark grammar" if written.kind == "lark" else "a GBNF grammar"
    how = f", {written.lexer} lexer" if written.kind == "lark" else ""
    display.print_answer(
        (written.name, "bold"), ": ", (kind, "red" if is_refused(written) else "green"), f"{how}, start {written.start}"
    )
    for finding in findings:
        display.print_answer()
        location = ""
        if finding.position is not None:
            line, column, excerpt, caret = locate_position(written.text, finding.position)
            location = f"  (line {line}, column {column})"
        display.print_answer((f"{finding.weight}: ", STYLES[finding.weight]), finding.cause, (location, "dim"))
        if finding.position is not None and finding.weight != "note":
            display.print_answer(f"    {excerpt}")
            display.print_answer("    ", " " * caret, ("^", "bold red"))
        for caption, text in finding.examples:
            display.print_answer(f"  {caption}: ", (show_text(text), "bold"))
        if finding.cure:
            display.print_answer(f"  {finding.cure}")
    display.print_answer()


def show_text(text: str) -> str:
    """Return a text on one line, with blanks at its ends and unprintable characters made visible."""
    text = text if len(text) <= display.LONGEST else text[: display.LONGEST - 1] + "…"
    return text if text.isprintable() and text == text.strip() and text else repr(text)


def measure_sizes(written: WrittenGrammar) -> dict[str, int]:
    """Return the size of the grammar, in its source and as tables."""
    written_rules = [n for n in written.productions.nonterminals if not n.startswith("__") and "\0" not in n]
    sizes = {
        "rules": len(written_rules),
        "productions": len(written.productions.left),
        "terminals": len(written.productions.terminals),
    }
    if written.has_lexer:
        sizes["lalr_states"] = len(written.table.action)
        if not is_refused(written) and written.parser is not None:
            sizes["scanner_states"] = len(written.parser.scanner.delta)
    return sizes


def measure_grammar(written: WrittenGrammar, as_json: bool, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the shortest sentence and the cost to compile; exit with a code where the grammar cannot be compiled."""

    load_kernels()
    fresh = read_grammar(
        written.text, name=written.name, kind=written.kind, start=written.start, lexer=written.lexer,
        import_paths=written.import_paths,
    )  # fmt: skip
    start = perf_counter_ns()
    try:
        constraint = compile_grammar(fresh.grammar, Vocabulary.bytes())
        shortest = constraint.matcher().shortest_completion()
    except UnsatisfiableError as error:
        if not as_json:
            display.print_answer(("nothing satisfies it", "red"), f": {error.cause}")
        return {"satisfiable": False, "shortest": None}
    except UnsupportedError as error:
        if not as_json:
            raise
        display.as_json(answer | {"satisfiable": None, "error": display.error_json(error, written.name)})
        raise typer.Exit(display.TOO_MUCH) from None
    cost = (perf_counter_ns() - start) / 1e6
    text = None if shortest is None else shortest.decode("utf-8", "replace")
    return {"satisfiable": text is not None, "shortest": text, "compile_ms": cost}


def print_sizes(written: WrittenGrammar, answer: dict[str, Any]) -> None:
    """Print sizes, dead ends and the shortest sentence."""
    size = answer["sizes"]
    named = {"lalr_states": "LALR states", "scanner_states": "scanner states"}
    tables = [f"{size[key]:,} {label}" for key, label in named.items() if key in size]
    of_rules = f"{size['rules']:,} rules ({size['productions']:,} productions), {size['terminals']:,} terminals"
    rows = [("size", ", ".join([of_rules, *tables]))]
    if written.has_lexer:
        rows.append(("dead ends", LEVELS[answer["dead_ends"]]))
    if not answer["satisfiable"]:
        rows.append(("shortest", "there is no text at all"))
    else:
        rows.append(("shortest", show_text(answer["shortest"])))
        rows.append(("to compile", f"{answer['compile_ms']:,.0f} ms"))
    display.print_facts(rows)
