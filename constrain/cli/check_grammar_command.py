"""`constrain check GRAMMAR`: what is wrong or doubtful in a grammar, with texts that show it; size, shortest text."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import typer

from ..base.errors import ConstrainError, LimitError, UnsatisfiableError, UnsupportedError, locate_position
from . import display
from .check_command import LONGEST
from .grammar_source import grammar_of, grammar_text
from .kernel_notice import ready
from .source_options import about

if TYPE_CHECKING:
    from ..authoring.grammar_tools import Finding, Written

__all__ = ["check_grammar"]

STYLES = {"wrong": "bold red", "doubtful": "yellow", "note": "dim"}
LEVELS = {
    1: "none: whatever may be begun can be finished",
    2: "possible where a rule gave way or has no text; the machine sees them coming",
    3: "behind terminals that no text writes side by side",
}


def check_grammar(
    given: str, start: str | None, lexer: str | None, folders: list[str] | None, *, as_json: bool, strict: bool
) -> int:
    """Prints what there is to say of a grammar: the exit code."""
    name, text = grammar_text(given)
    try:
        written = grammar_of(given, start, lexer, folders)
    except LimitError:
        raise
    except ConstrainError as error:
        return wrong(name, text, error, start, tuple(folders or ()), as_json)
    from ..authoring.grammar_tools import findings
    from ..authoring.grammar_tools.grammar_findings import level

    with about(name):
        found = findings(written)
        answer: dict[str, Any] = {"grammar": not refused(written), "findings": [plain(written, one) for one in found]}
        answer["sizes"] = sizes(written)
        empty = written.productions.start not in written.productions.productive()
        if not as_json:
            tell(written, found)
        if refused(written) or empty:
            answer["satisfiable"] = None if not empty else False
            if as_json:
                display.as_json(answer)
            return display.NO if empty else display.WRONG
        answer["dead_ends"] = level(written, found)
        answer |= compiled(written, as_json, answer)
    if as_json:
        display.as_json(answer)
    else:
        tell_sizes(written, answer)
    if not answer["satisfiable"]:
        return display.NO
    return display.NO if strict and any(one.weight != "note" for one in found) else display.FINE


def refused(written: Written) -> bool:
    """Whether Lark's LALR parser refuses it."""
    return written.has_lexer and written.clash is not None


def wrong(
    name: str, text: str, first: ConstrainError, start: str | None, folders: tuple[str, ...], as_json: bool
) -> int:
    """Prints everything for which it is no grammar: the exit code."""
    from ..authoring.grammar_tools.grammar_errors import errors
    from ..authoring.grammar_tools.written_grammar import kind_of

    found = [first]
    if kind_of(name, text) == "lark":
        found = errors(text, start=start or "start", name=name, import_paths=folders) or [first]
    if as_json:
        listed = [display.error_json(error, name) for error in found]
        display.as_json({"grammar": False, "error": listed[0], "errors": listed})
    elif len(found) == 1:
        display.fail(found[0], name)
    else:
        display.note((f"error: {name}: ", "bold red"), f"{len(found)} things are wrong")
        for error in found:
            display.note()
            display.note(error.render())
    return max(map(display.code_of, found))


def plain(written: Written, finding: Finding) -> dict[str, Any]:
    """A finding for machines."""
    line, column = (None, None)
    if finding.position is not None:
        line, column, *_ = locate_position(written.text, finding.position)
    return {
        "kind": finding.kind, "weight": finding.weight, "names": list(finding.names), "line": line, "column": column,
        "cause": finding.cause, "hint": finding.cure or None,
        "examples": [{"what": what, "text": text} for what, text in finding.examples],
    }  # fmt: skip


def tell(written: Written, found: list[Finding]) -> None:
    """Prints the findings."""
    kind = "a Lark grammar" if written.kind == "lark" else "a GBNF grammar"
    how = f", {written.lexer} lexer" if written.kind == "lark" else ""
    display.say(
        (written.name, "bold"), ": ", (kind, "red" if refused(written) else "green"), f"{how}, start {written.start}"
    )
    for finding in found:
        display.say()
        place = ""
        if finding.position is not None:
            line, column, excerpt, caret = locate_position(written.text, finding.position)
            place = f"  (line {line}, column {column})"
        display.say((f"{finding.weight}: ", STYLES[finding.weight]), finding.cause, (place, "dim"))
        if finding.position is not None and finding.weight != "note":
            display.say(f"    {excerpt}")
            display.say("    ", " " * caret, ("^", "bold red"))
        for what, text in finding.examples:
            display.say(f"  {what}: ", (visible(text), "bold"))
        if finding.cure:
            display.say(f"  {finding.cure}")
    display.say()


def visible(text: str) -> str:
    """A text on one line; blanks at its ends, and what is not printed, can be seen."""
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return text if text.isprintable() and text == text.strip() and text else repr(text)


def sizes(written: Written) -> dict[str, int]:
    """How large it is, as written and as tables."""
    own = [n for n in written.productions.nonterminals if not n.startswith("__") and "\0" not in n]
    found = {
        "rules": len(own),
        "productions": len(written.productions.left),
        "terminals": len(written.productions.terminals),
    }
    if written.has_lexer:
        found["lalr_states"] = len(written.table.action)
        if not refused(written) and written.parser is not None:
            found["scanner_states"] = len(written.parser.scanner.delta)
    return found


def compiled(written: Written, as_json: bool, answer: dict[str, Any]) -> dict[str, Any]:
    """The shortest sentence, and what it costs to compile; leaves with a code where it cannot be compiled."""
    from ..authoring.grammar_tools.written_grammar import read
    from ..compilation.constraint_compiler import compile_grammar
    from ..vocabulary.vocabulary import Vocabulary

    ready()
    fresh = read(
        written.text, name=written.name, kind=written.kind, start=written.start, lexer=written.lexer,
        import_paths=written.import_paths,
    )  # fmt: skip
    start = perf_counter_ns()
    try:
        constraint = compile_grammar(fresh.grammar, Vocabulary.bytes())
        shortest = constraint.matcher().shortest_completion()
    except UnsatisfiableError as error:
        if not as_json:
            display.say(("nothing satisfies it", "red"), f": {error.cause}")
        return {"satisfiable": False, "shortest": None}
    except UnsupportedError as error:
        if not as_json:
            raise
        display.as_json(answer | {"satisfiable": None, "error": display.error_json(error, written.name)})
        raise typer.Exit(display.TOO_MUCH) from None
    cost = (perf_counter_ns() - start) / 1e6
    text = None if shortest is None else shortest.decode("utf-8", "replace")
    return {"satisfiable": text is not None, "shortest": text, "compile_ms": cost}


def tell_sizes(written: Written, answer: dict[str, Any]) -> None:
    """Prints size, dead ends and the shortest sentence."""
    size = answer["sizes"]
    named = {"lalr_states": "LALR states", "scanner_states": "scanner states"}
    tables = [f"{size[key]:,} {words}" for key, words in named.items() if key in size]
    of_rules = f"{size['rules']:,} rules ({size['productions']:,} productions), {size['terminals']:,} terminals"
    rows = [("size", ", ".join([of_rules, *tables]))]
    if written.has_lexer:
        rows.append(("dead ends", LEVELS[answer["dead_ends"]]))
    if not answer["satisfiable"]:
        rows.append(("shortest", "there is no text at all"))
    else:
        rows.append(("shortest", visible(answer["shortest"])))
        rows.append(("to compile", f"{answer['compile_ms']:,.0f} ms"))
    display.facts(rows)
