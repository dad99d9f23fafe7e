"""Load a Lark grammar with lark's own loader, and convert it to numbered productions and terminals.

    text --lark: imports, templates, EBNF, terminal composition--> terminals and rules --here--> LoadedGrammar

So the semantics are lark's by construction, including the generated names of terminals and the order of rules. Syntax
that only shapes trees (`?rule`, `_rule`, `-> alias`, `!`) is dropped. lark's errors become GrammarErrors with a source
position, see `lark_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...base.errors import GrammarError
from ...base.options import Limits
from ...base.work import spend_work
from ...lalr.productions import Productions
from .expansion_budget import charge_options, charge_templates, charge_terminals, check_nesting
from .lark_errors import GrammarFaults
from .lark_imports import ImportReader, Module
from .rule_expansion import count_options
from .source_map import SourceMap

__all__ = ["LoadedGrammar", "LoadedTerminal", "load_grammar", "read_imported_modules", "source_rule"]

FLAGS = {"a": re.A, "i": re.I, "l": re.L, "m": re.M, "s": re.S, "u": re.U, "x": re.X}

MADE = re.compile(r"__(.+)_(plus|star|repeat_a\d+_b\d+(?:_opt)?)_\d+", re.S)
"""Names of the rules that lark generates for repetitions."""

MOST_OPTIONS = 10_000
"""Most alternatives of one rule after expansion of its optional parts: lark needs some seconds for as many."""

SIGNS = {"normal": 1, "invert": -1, "ignore": 0}
Priority = Literal["normal", "invert", "ignore"]


@dataclass(frozen=True, slots=True)
class LoadedTerminal:
    """A terminal after lark has composed it.

    Attributes
    ----------
    name : str
    kind : {"text", "pattern", "declared"}
        Whether `text` is a literal, a pattern for `re`, or empty (`%declare`: a post-lexer makes the terminal).
    text : str
    flags : str
        Letters of `re`, sorted, for all of `text`; flags of parts are inside `text`.
    priority : int
        Higher ones are tried first.
    least, most : int
        Numbers of characters that it matches; `most` is as lark computes it, a very large number if unbounded.
    written : str
        The literal in the grammar from which it was made, if it has no name there.
    source_map : SourceMap
    """

    name: str
    kind: Literal["text", "pattern", "declared"]
    text: str
    flags: str
    priority: int
    least: int
    most: int
    written: str
    source_map: SourceMap = field(repr=False, compare=False)

    @property
    def position(self) -> int | None:
        """Offset of its definition, or of the first such literal, in the grammar's text; None if it is imported."""
        return self.source_map.literal(self.written) if self.written else self.source_map.definition(self.name)

    def regexp(self) -> str:
        """Return its pattern for `re`, spelled as lark spells it: flags as groups around the text."""
        pattern = re.escape(self.text) if self.kind == "text" else self.text
        for flag in self.flags:
            pattern = f"(?{flag}:{pattern})"
        return pattern


@dataclass(frozen=True, slots=True)
class LoadedGrammar:
    """A grammar compiled by lark for one start rule.

    Attributes
    ----------
    text, source : str
        The grammar and its file name.
    terminals : tuple of LoadedTerminal
        Those of `productions`, in its order. Terminals that no rule uses are ignored ones or requested by `keep`.
    productions : Productions
    ignored : tuple of int
        Terminals that the parser never sees.
    flags : str
        Flags of all patterns (lark's g_regex_flags).
    imports : tuple of (str or None, str, str)
        What was imported: importing folder, requested path, text.
    source_map : SourceMap
    """

    text: str
    source: str
    terminals: tuple[LoadedTerminal, ...]
    productions: Productions
    ignored: tuple[int, ...]
    flags: str
    imports: tuple[tuple[str | None, str, str], ...]
    source_map: SourceMap = field(repr=False, compare=False)

    @property
    def declared(self) -> tuple[int, ...]:
        """Terminals without a text, which a post-lexer such as an Indenter must make from others."""
        return tuple(t for t, terminal in enumerate(self.terminals) if terminal.kind == "declared")

    def position(self, rule: int) -> int | None:
        """Return the offset in `text` of the definition of the left side of a rule of `productions`.

        Return None if it is imported.
        """
        return self.source_map.definition(source_rule(self.productions.nonterminals[self.productions.left[rule]]))


def load_grammar(
    text: str,
    *,
    start: str = "start",
    source: str = "<grammar>",
    import_paths: Sequence[str] = (),
    modules: Sequence[Module] = (),
    keep: Iterable[str] = (),
    flags: str = "",
    priority: Priority = "normal",
    nesting: int = Limits().nesting,
) -> LoadedGrammar:
    """Load a Lark grammar.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        The start rule.
    source : str
        File name of the grammar, for messages.
    import_paths : sequence of str
        Folders for `%import`, searched before lark's own grammars.
    modules : sequence of Module
        Modules that were read before, see `lark_imports.ImportReader`.
    keep : iterable of str
        Terminals that a post-lexer needs although no rule uses them, such as an Indenter's line ends.
    flags : str
        Letters of `re` for all patterns.
    priority : {"normal", "invert", "ignore"}
        Interpretation of priorities such as `.2`: "invert" negates them, "ignore" takes them for 0.
    nesting : int
        Most levels of brackets.

    Returns
    -------
    LoadedGrammar

    Raises
    ------
    GrammarError
        If the grammar is wrong; with a position and a hint.
    LimitError
        If a limit is exceeded.
    """
    from lark import load_grammar as lark

    for flag in flags:
        if flag not in FLAGS:
            raise GrammarError(f"flag {flag!r} is none of {', '.join(FLAGS)}", hint="These are the flags of `re`.")
    reader = ImportReader(import_paths, modules)
    faults = GrammarFaults(text, source, reader)
    spend_work(20 * len(text) + 100, "the text of a grammar")
    check_nesting(faults.source_map, nesting)
    charge_terminals(faults.source_map)
    with faults.explained():
        grammar, _ = lark.load_grammar(text, source, [reader], False)
        for name, _, tree, _ in grammar.rule_defs:
            if tree is not None:
                if (count := count_options(tree)) > MOST_OPTIONS:
                    raise faults.too_many(str(name), count, MOST_OPTIONS)
                charge_options(count)
        charge_templates(grammar.rule_defs)
        definitions, rules, ignored = grammar.compile([start], set(keep))
    own = {name for name, _ in grammar.term_defs}
    terminals = [_terminal(definition, own, SIGNS[priority], flags, faults) for definition in definitions]
    known = {terminal.name for terminal in terminals}
    for symbol in (symbol for rule in rules for symbol in rule.expansion if symbol.is_term):
        if symbol.name not in known:  # Since lark has checked that it is defined, it is declared.
            known.add(symbol.name)
            terminals.append(LoadedTerminal(str(symbol.name), "declared", "", "", 0, 0, 0, "", faults.source_map))
    numbers = {terminal.name: number for number, terminal in enumerate(terminals)}
    display_names = {numbers[d.name]: d.pattern.raw for d in definitions if d.name not in own and d.pattern.raw}
    productions = _productions(rules, numbers, display_names, start, SIGNS[priority], faults)
    for name in ignored:
        if name not in numbers or terminals[numbers[name]].kind == "declared":
            raise faults.ignored_without_text(name)
    return LoadedGrammar(
        text=text,
        source=source,
        terminals=tuple(terminals),
        productions=productions,
        ignored=tuple(dict.fromkeys(numbers[name] for name in ignored)),
        flags=flags,
        imports=tuple((base, path, found) for (base, path), found in reader.read.items()),
        source_map=faults.source_map,
    )


def read_imported_modules(text: str, import_paths: Sequence[str], modules: Sequence[Module] = ()) -> tuple[Module, ...]:
    """Return the modules that a grammar imports from folders, for `lark_imports.ImportReader`."""
    from lark import load_grammar as lark

    reader = ImportReader(import_paths, modules)
    faults = GrammarFaults(text, "<grammar>", reader)
    with faults.explained():
        lark.load_grammar(text, "<grammar>", [reader], False)
    return reader.modules


def _terminal(definition: Any, own: set[str], sign: int, flags: str, faults: GrammarFaults) -> LoadedTerminal:
    """Convert a terminal, after the checks that lark leaves to its lexers: a valid pattern that is never empty."""
    pattern = definition.pattern
    written = (pattern.raw or "") if definition.name not in own or definition.name.startswith("__") else ""
    try:
        re.compile(pattern.to_regexp(), sum(FLAGS[flag] for flag in flags))
        least, most = pattern.min_width, pattern.max_width
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise faults.bad_pattern(definition.name, pattern.to_regexp(), error) from error
    if least == 0:
        raise faults.empty_terminal(definition.name, pattern.to_regexp(), written)
    return LoadedTerminal(
        name=str(definition.name),
        kind="text" if pattern.type == "str" else "pattern",
        text=pattern.value,
        flags="".join(sorted(pattern.flags)),
        priority=sign * definition.priority,
        least=least,
        most=most,
        written=written,
        source_map=faults.source_map,
    )


def _productions(
    rules: Sequence[Any],
    number: dict[str, int],
    display_names: dict[int, str],
    start: str,
    sign: int,
    faults: GrammarFaults,
) -> Productions:
    """Convert the rules to numbers; raise GrammarError for a nonterminal without productions."""
    nonterminal: dict[str, int] = {}
    for rule in rules:
        nonterminal.setdefault(str(rule.origin.name), len(nonterminal))
    if start not in nonterminal:
        raise faults.no_start(start)
    for symbol in (symbol for rule in rules for symbol in rule.expansion if not symbol.is_term):
        if symbol.name not in nonterminal:
            raise faults.no_rule(str(symbol.name))
    names = {t: name for name, t in number.items()} | {~n: name for name, n in nonterminal.items()}
    right = tuple(
        tuple(number[s.name] if s.is_term else ~nonterminal[s.name] for s in rule.expansion) for rule in rules
    )
    for made, n in nonterminal.items():
        if generated := MADE.fullmatch(made):
            inner = [r for rule, r in zip(rules, right) if rule.origin.name == made and r[:1] != (~n,)]
            spelled = " | ".join(" ".join(display_names.get(s) or names[s] for s in option) for option in inner)
            display_names[~n] = (
                f"({spelled})+" if generated[2] in ("plus", "star") else f"(a repetition in {generated[1]})"
            )
    return Productions(
        terminals=tuple(number),
        nonterminals=tuple(nonterminal),
        left=tuple(nonterminal[rule.origin.name] for rule in rules),
        right=right,
        priority=tuple(sign * (rule.options.priority or 0) for rule in rules),
        start=nonterminal[start],
        display_names=display_names,
    )


def source_rule(name: str) -> str:
    """Return the rule in the text from which lark generated a rule.

    For instance `__list_star_0` is generated from `list`, and `sep{A}` from `sep`.
    """
    if made := MADE.fullmatch(name):
        name = made[1]
    return name.partition("{")[0]
