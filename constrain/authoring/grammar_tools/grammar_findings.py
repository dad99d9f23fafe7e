"""Findings about a valid grammar: errors, doubtful parts and notes.

wrong: it cannot be intended (a rule that derives no text, a terminal that never matches, a reduce/reduce conflict).
doubtful: it may be intended (an ambiguity that a shift resolves, an unused definition). note: no defect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...base.options import Limits
from ...frontends.gbnf.gbnf_parser import GbnfParser
from ...frontends.lark.lark_loader import source_rule
from ...lalr.productions import Productions
from .character_grammar import rule_of
from .lalr_conflicts import Conflict, ConflictFinder
from .rule_references import read_gbnf_references, read_lark_references
from .shadowed_terminals import find_inseparable, find_shadowed
from .unlexing import Speller
from .written_grammar import WrittenGrammar

__all__ = ["GrammarFinding", "find_problems", "rate_dead_ends", "show_example"]

MOST_SEARCHED = 6
"""Maximum number of conflicts for which an ambiguous text is searched."""
MOST_RULES = 4_000
"""Maximum number of rules of a GBNF grammar, rules for characters included, up to which ambiguous texts are
searched."""

Weight = Literal["wrong", "doubtful", "note"]


@dataclass(frozen=True, slots=True)
class GrammarFinding:
    """One finding about a grammar.

    kind: unproductive, unreachable, unused, clash, conflict, ambiguous, left recursion, ignored, never wins, cannot
    follow or declared. names: the rules or terminals concerned. position: offset in the source. examples: (what it
    shows, a text).
    """

    kind: str
    weight: Weight
    names: tuple[str, ...]
    position: int | None
    cause: str
    cure: str = ""
    examples: tuple[tuple[str, str], ...] = ()


def find_problems(written: WrittenGrammar) -> list[GrammarFinding]:
    """Return all findings, the worst first, then in the order of the text."""
    findings = [*_find_unproductive(written), *_find_unused(written)]
    empty = written.productions.start not in written.productions.productive()
    if not empty:
        findings += _find_conflicts(written)
        if written.has_lexer:
            findings += [*_find_ignored(written), *_find_terminal_problems(written)]
    findings += _find_left_recursion(written)
    order: tuple[Weight, ...] = ("wrong", "doubtful", "note")
    return sorted(
        findings, key=lambda finding: (order.index(finding.weight), finding.position is None, finding.position or 0)
    )


def rate_dead_ends(written: WrittenGrammar, findings: Sequence[GrammarFinding]) -> int:
    """Return the level of dead ends.

    1: every prefix that the engine accepts can be completed. 2: a rule that was overruled in a conflict, derives no
    text, or uses an ignored terminal may lead into a dead end. 3: two terminals that cannot be adjacent in any text may
    lead into one.
    """
    if any(finding.kind == "cannot follow" and finding.weight == "wrong" for finding in findings):
        return 3
    if not written.has_lexer:
        return 1
    uses_ignored = any(finding.kind == "ignored" for finding in findings)
    return 2 if uses_ignored or written.overruled or _list_unproductive(written.productions) else 1


def show_example(text: bytes) -> str:
    """Return a text as an example."""
    return text.decode("utf-8", "replace")


# ---- rules -------------------------------------------------------------------------------------------------------


def _is_written(productions: Productions, n: int) -> bool:
    """Return whether a nonterminal is defined in the source, and not generated."""
    name = productions.nonterminals[n]
    return not name.startswith("__") and "\0" not in name


def _list_unproductive(productions: Productions) -> list[int]:
    good = productions.productive()
    return [n for n in range(len(productions.nonterminals)) if n not in good]


def _find_unproductive(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    productions = written.productions
    for n in _list_unproductive(productions):
        if _is_written(productions, n):
            name = productions.name(~n)
            is_start = n == productions.start
            yield GrammarFinding(
                "unproductive",
                "wrong",
                (name,),
                written.position(n),
                f"rule `{name}` derives no text: every alternative contains a rule without a finite derivation"
                + ("; it is the start rule, so nothing is accepted" if is_start else ""),
                "Add an alternative without recursion to one of these rules.",
            )
    loaded = written.loaded
    if loaded is not None and (written.parser is None or written.parser.layout is None):
        for t in loaded.declared:
            name = loaded.terminals[t].name
            yield GrammarFinding(
                "declared",
                "doubtful",
                (name,),
                loaded.terminals[t].position,
                f"terminal `{name}` is declared, but nothing defines it",
                f"Define it, or supply a form: constrain.lark(text, grammars={{{name!r}: ...}}).",
            )


def _find_unused(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    if written.loaded is not None:
        references = read_lark_references(written.loaded.source_map)
        loaded = {terminal.name for terminal in written.loaded.terminals}
    else:
        reader = GbnfParser(written.text, Limits().nesting)
        reader.read()
        references, loaded = (
            read_gbnf_references(written.text, {str(name): body for name, body in reader.rules.items()}),
            set(),
        )
    for name in references.unused(written.start):
        if name in loaded:
            continue
        terminal = written.kind == "lark" and name.upper() == name
        origin = references.imported.get(name)
        subject = f"`{name}` is imported from {origin}" if origin else f"{'terminal' if terminal else 'rule'} `{name}`"
        yield GrammarFinding(
            "unused" if terminal else "unreachable",
            "doubtful",
            (name,),
            references.places[name],
            f"{subject}{' and' if origin else ''} is never used"
            if terminal or origin
            else f"{subject} is not reachable from `{written.start}`",
            "Remove it, or use it."
            + (f" To use it as the start rule: --start {name}." if not terminal and not origin else ""),
        )


def _find_left_recursion(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    productions = written.productions
    nullable = {~n for n in productions.nullable()}
    reach: list[set[int]] = [set() for _ in productions.nonterminals]
    for left, right in zip(productions.left, productions.right):
        for symbol in right:
            if symbol < 0:
                reach[left].add(~symbol)
            if symbol not in nullable:
                break
    changed = True
    while changed:
        changed = False
        for edges in reach:
            more = set().union(*(reach[n] for n in edges)) - edges
            if more:
                edges |= more
                changed = True
    recursive = [n for n in range(len(reach)) if n in reach[n] and _is_written(productions, n)]
    if recursive:
        names = tuple(rule_of(productions.name(~n)) for n in recursive)
        yield GrammarFinding(
            "left recursion",
            "note",
            names,
            written.position(recursive[0]),
            f"left recursion in {', '.join(f'`{name}`' for name in names)}: supported without extra cost",
        )


# ---- conflicts ---------------------------------------------------------------------------------------------------


def _find_conflicts(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    if (written.kind == "gbnf" and len(written.productions.left) > MOST_RULES) or not written.overruled:
        return
    speller = Speller(written)
    reported: set[tuple[int, ...]] = set()
    for conflict in ConflictFinder(written).find_conflicts(MOST_SEARCHED):
        if conflict.ambiguous is not None and conflict.ambiguous in reported:
            continue
        if conflict.ambiguous is not None:
            reported.add(conflict.ambiguous)
        elif not written.has_lexer:
            continue  # its parser has unbounded lookahead
        yield _describe_conflict(written, conflict, speller)


def _describe_conflict(written: WrittenGrammar, conflict: Conflict, speller: Speller) -> GrammarFinding:
    productions = written.productions

    def text(types: Sequence[int]) -> str:
        spelled = speller.text(types)
        return show_example(speller.spell_separately(types) if spelled is None else spelled)

    examples = []
    if conflict.ambiguous is not None:
        examples.append(("ambiguous text", text(conflict.ambiguous)))
    elif conflict.other is not None:
        examples.append(("derived by the rules, but rejected", text(conflict.other)))
    reduced = productions.text(conflict.rule)
    end = conflict.terminal == len(productions.terminals)
    before = "the end of the text" if end else productions.name(conflict.terminal)
    if conflict.taken < 0:
        other = f"shifting {before}"
        rival = f"before {before}, `{reduced}` can be reduced, or {before} can be shifted"
    else:
        other = f"`{productions.text(conflict.taken)}`"
        rival = f"before {before}, both `{reduced}` and {other} can be reduced"
    refused = written.clash is not None and conflict.taken >= 0
    position = written.position(productions.left[conflict.rule])
    names = tuple(
        dict.fromkeys(
            rule_of(productions.name(~productions.left[r])) for r in (conflict.rule, conflict.taken) if r >= 0
        )
    )
    if not written.has_lexer:
        cause = f"the grammar is ambiguous: {rival}"
        return GrammarFinding("ambiguous", "doubtful", names, position, cause, "", tuple(examples))
    if refused:
        cure = "Merge the rules, or give one of them a higher priority: `name.2: ...`."
        return GrammarFinding(
            "clash", "wrong", names, position, f"{rival}, and no priority decides", cure, tuple(examples)
        )
    if conflict.ambiguous is not None:
        cause = f"the grammar is ambiguous: {rival}; {other} is chosen"
        cure = "If this is not intended, write one rule for each precedence level, or add a closing delimiter."
        return GrammarFinding("ambiguous", "doubtful", names, position, cause, cure, tuple(examples))
    cause = f"{rival}, and one token of lookahead does not decide; {other} is chosen"
    cure = (
        "Texts that need the other action are rejected. Factor out the common prefix, or write one rule for each level."
    )
    return GrammarFinding("conflict", "doubtful", names, position, cause, cure, tuple(examples))


# ---- terminals ---------------------------------------------------------------------------------------------------


def _find_ignored(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    """Find the alternatives that contain a terminal which the lexer drops."""
    loaded, parser = written.loaded, written.parser
    assert loaded is not None and parser is not None
    if written.clash is not None:
        return  # the grammar is refused
    productions = parser.productions
    found: set[tuple[str, int]] = set()
    for left, right in zip(productions.left, productions.right):
        rule = source_rule(productions.nonterminals[left])
        found |= {(rule, symbol) for symbol in right if symbol in parser.ignored}
    for rule, t in sorted(found):
        name = loaded.terminals[t].written or productions.name(t)
        at, tokens = loaded.source_map.definition(rule), loaded.source_map.tokens
        uses = (token.position for token in tokens if at is not None and token.position > at and token.text == name)
        yield GrammarFinding(
            "ignored",
            "wrong",
            (name, rule),
            next(uses, at),
            f"rule `{rule}` uses {name}, which is ignored: the lexer drops it, so no text completes this alternative",
            "Leave it out of the rule or out of %ignore; or the lexer dynamic, with which it may be both.",
        )


def _find_terminal_problems(written: WrittenGrammar) -> Iterator[GrammarFinding]:
    loaded, parser = written.loaded, written.parser
    assert loaded is not None and parser is not None
    productions = written.productions

    def name(terminal: int) -> str:
        return parser.table.terminals[terminal] if terminal >= len(loaded.terminals) else productions.name(terminal)

    # A keyword that is ignored, and that a rule uses, has a second number beyond those of the terminals.
    written_at = {one: t for t, one in reversed(list(enumerate(parser.table.terminals)))}
    terminals = [
        loaded.terminals[t] for one in parser.table.terminals if (t := written_at[one]) < len(loaded.terminals)
    ]

    dead = find_shadowed(loaded, parser)
    for shadow in dead:
        examples: tuple[tuple[str, str], ...] = ()
        winner = ""
        if shadow.text is not None and shadow.by is not None:
            part = shadow.text.encode()[: shadow.length].decode("utf-8", "ignore")
            winner = ": other terminals match all its texts"
            examples = ((f"recognised as {name(shadow.by)}", part),)
        yield GrammarFinding(
            "never wins",
            "wrong",
            (loaded.terminals[shadow.terminal].name,),
            loaded.terminals[shadow.terminal].position,
            f"the lexer never produces the terminal {name(shadow.terminal)}{winner}",
            "Give it a priority (`NAME.1: ...`), or restrict the other one.",
            examples,
        )
    never = {shadow.terminal for shadow in dead}
    speller = Speller(written)
    for a, b, dead_end in find_inseparable(parser):
        if {a, b} & never:
            continue
        ends = ". No text continues after it" if dead_end else ", so this alternative is never used"
        yield GrammarFinding(
            "cannot follow",
            "wrong" if dead_end else "note" if a == b else "doubtful",
            (terminals[a].name, terminals[b].name),
            terminals[b].position,
            f"the rules allow {name(b)} directly after {name(a)}, but no text is tokenised so: "
            f"the lexer continues {name(a)} or finds a longer match{ends}",
            "Ignore white space between them, or make sure that no text of one is a prefix of a text of the other.",
            (("tokenised differently", show_example(speller.beside(a, b))),),
        )
