"""From the definitions of a grammar in llguidance's variant of Lark to a Grammar."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...automata.dfa import Dfa
from ...base.errors import ConstrainError, GrammarError, LimitError, UnsatisfiableError, UnsupportedError
from ...base.options import Limits
from ...grammar.grammar_dfa import to_dfa
from ...grammar.intersection import rewrite_rules
from ...grammar.leading_characters import find_first_characters
from ...grammar.merged_rules import MergedRules, RuleUnion
from ...grammar.nodes import EMPTY, Chars, Choice, Grammar, Mark, Node, Repeat, Rule, Sequence, Token
from ...grammar.simplification import simplify_grammar
from ...grammar.smart_constructors import make_choice, make_sequence
from ...grammar.visitor import NodeRebuilder, fold_node
from .captured_lexemes import CapturedLexemes, RuleCapture, find_inner_grammar, make_inner_token
from .lexeme_products import SKIP_AT_END, LexemeTransitions
from .lexeme_rows import LexemeRows
from .lexeme_scanning import NUMBER_BYTES, Bytes, Lexeme, LexemeOverlaps, lead_bytes, ranges_from, text_before
from .llguidance_lexer import fail_at
from .llguidance_parser import Definition, Step, parse_items
from .llguidance_terminals import TerminalReader

__all__ = ["capture_lexemes", "to_grammar"]

SchemaReader = Callable[[Any, Limits], Grammar]
OPTIONS = ("no_forcing", "allow_initial_skip", "skip_repetition", "allow_invalid_utf8")
SKIP = "skip"
NESTED = 32
"""What a nested grammar takes of `Limits.nesting`."""
CURES = {
    "max_tokens": "It counts tokens, which the texts of a grammar do not say: bound the characters, as in "
    "/(?s:.){0,100}/, or write this part with constrain.session, as s.write(name, regex=..., max_tokens=...).",
    "temperature": "Give temperature= to generate for the whole text, or write this part with constrain.session, as "
    "s.write(name, regex=..., temperature=...).",
}


def to_grammar(
    text: str, read_schema: SchemaReader, grammars: Mapping[str, Grammar] = {}, *, limits: Limits = Limits()
) -> Grammar:
    """Return the Grammar of the texts that llguidance accepts for a grammar.

    Parameters
    ----------
    text : str
        The grammar. Its start rule is `start`.
    read_schema : callable
        Called with a JSON Schema and the limits; returns its Grammar.
    grammars : Mapping of str to Grammar
        What `@name` refers to.
    limits : Limits
        Budgets of the automata.

    Returns
    -------
    Grammar

    Raises
    ------
    GrammarError
        If the text is not a grammar; the error has line and column.
    UnsupportedError
        If it uses a feature that is not enforced, or a lexing decision that cannot be made from the rules.
    UnsatisfiableError
        If no text is accepted.
    """
    return _Compiler(text, read_schema, grammars, limits).compile()


def capture_lexemes(
    text: str,
    read_schema: SchemaReader,
    grammars: Mapping[str, Grammar] = {},
    captures: Iterable[str] = (),
    *,
    limits: Limits = Limits(),
) -> CapturedLexemes:
    """Return what finds the captures of a grammar: those of its attributes, and of the rules named in `captures`.

    Further parameters and errors are those of `to_grammar`; a GrammarError also for a name that is not that of a rule.
    """
    compiler = _Compiler(text, read_schema, grammars, limits)
    for name in captures:
        definition = compiler.items.definitions.get(name)
        if definition is None or name.lstrip("_")[:1].isupper():
            fail_at(text, 0, f"captures: there is no rule {name}", "Terminals are captured by a rule around them.")
        definition.attributes.setdefault("capture", name)
    compiler.compile()
    return compiler.captured_lexemes()


class _Compiler:
    """The lexemes and rules of one grammar."""

    def __init__(self, text: str, read_schema: SchemaReader, grammars: Mapping[str, Grammar], limits: Limits) -> None:
        self.text, self.read_schema, self.grammars, self.limits = text, read_schema, grammars, limits
        self.items = parse_items(text, limits)
        self.terminals = TerminalReader(self.items, limits)
        self.lexemes: list[Lexeme] = []
        self.numbers: dict[str, int] = {}
        self.inner: list[Grammar] = []
        self.rules: dict[Hashable, Node] = {}
        self.pending: list[Definition] = []
        self.start: Node = Rule("start")
        self.skipped: Dfa | None = None
        self.lexing: Grammar | None = None
        self.captures: dict[Hashable, RuleCapture] = {}
        self.nested: dict[int, _Compiler] = {}  # by the number of the inner grammar

    def compile(self) -> Grammar:
        made = self.rewrite_lexemes()
        simplified = None if made is None else simplify_grammar(made.start, made.rules)
        if simplified is None:
            raise UnsatisfiableError(
                "the rule start derives no text", source=self.text, position=self.items.definitions["start"].at,
                hint="A lexeme takes as much as it can: what follows it must begin with something else.",
            )  # fmt: skip
        return self.embed(simplified)

    def rewrite_lexemes(self) -> Grammar | None:
        """Return the rules with each lexeme rewritten to what the scanner takes for it; None if they derive no text."""
        if "start" not in self.items.definitions:
            raise GrammarError("there is no rule start", source=self.text, position=0, hint="Write `start: ...`.")
        options = self.read_options()
        self.call("start", 0)
        while self.pending:
            definition = self.pending.pop()
            self.rules[definition.name] = self.read_rule(definition)
        skip = self.ignored()
        rows = LexemeRows(self.start, self.rules, self.numbers, LexemeOverlaps(self.lexemes))
        first = rows.first
        if skip is not None:
            inserter = _SkipInserter(self.has_own_skip)
            self.rules = {name: fold_node(body, inserter.visit) for name, body in self.rules.items()}
            self.start = Sequence((self.start, Repeat(Mark(SKIP_AT_END), 0, None)))
            if options.get("allow_initial_skip"):
                first = frozenset(row | {skip} for row in first)
        repetition = str(options.get("skip_repetition"))
        unspaced = frozenset(number for mark, number in self.numbers.items() if self.has_own_skip(mark))
        leaves = LexemeTransitions(
            self.lexemes, self.numbers, rows, skip, first, self.text, self.limits, repetition, unspaced
        )
        self.lexing = rewrite_rules(Grammar(self.start, self.rules), leaves, lambda state: True, self.limits)
        return self.lexing

    def captured_lexemes(self) -> CapturedLexemes:
        """Return what finds the captures, after `compile`."""
        assert self.lexing is not None
        return CapturedLexemes(
            self.lexing, self.start, self.rules, self.lexemes, self.numbers, self.captures,
            dict(enumerate(self.inner)), {k: one.captured_lexemes() for k, one in self.nested.items()},
        )  # fmt: skip

    def read_options(self) -> dict[str, Any]:
        """Return the merged `%llguidance` options."""
        merged: dict[str, Any] = {}
        for body, at in self.items.options:
            if not isinstance(body, dict):
                fail_at(self.text, at, "the options of %llguidance are an object")
            for name, value in body.items():
                if name not in OPTIONS:
                    fail_at(self.text, at, f"%llguidance has no option {name}", f"There are {', '.join(OPTIONS)}.")
                if (name, value) == ("allow_invalid_utf8", True):
                    raise UnsupportedError(
                        f"the option {name} is not supported", source=self.text, position=at, hint="Leave it out."
                    )
            merged |= body
        return merged

    def ignored(self) -> int | None:
        """Return the number of the lexeme of all `%ignore`s; None if there are none."""
        if not self.items.ignored:
            return None
        self.skipped = dfa = Dfa.union_of([self.terminals.read(step) for step in self.items.ignored])
        self.numbers[SKIP] = self.numbers[SKIP_AT_END] = len(self.lexemes)
        self.lexemes.append(Lexeme(self.items.ignored[0].at, dfa))
        return self.numbers[SKIP]

    def has_own_skip(self, mark: str) -> bool:
        """Return whether a lexeme is a grammar that other text may be ignored in, and so none directly before it."""
        token = self.lexemes[self.numbers[mark]].node
        number = find_inner_grammar(token) if isinstance(token, Token) else None
        if number is None:
            return False
        nested = self.nested.get(number)
        return nested is None or nested.skipped != self.skipped

    def embed(self, made: Grammar) -> Grammar:
        """Return a Grammar with the inner grammars in place of their tokens."""
        if not self.inner:
            return made
        inner = MergedRules(self.inner)
        filler = _InnerFiller(inner)
        rules = {name: fold_node(body, filler.visit) for name, body in made.rules.items()}
        return Grammar(fold_node(made.start, filler.visit), RuleUnion(rules, inner))

    # ---- rules

    def call(self, name: str, at: int) -> Node:
        """Return a reference to a rule, which is read when it is first referenced."""
        definition = self.items.definitions.get(name)
        if definition is None:
            fail_at(self.text, at, f"{name} is not defined", f"Write `{name}: ...`.")
        if name not in self.rules:
            self.rules[name] = EMPTY  # A placeholder: the body is read later.
            self.pending.append(definition)
        return Rule(name)

    def read_rule(self, definition: Definition) -> Node:
        for refused, cure in CURES.items():
            if refused in definition.attributes:
                raise UnsupportedError(
                    f"the attribute {refused} of the rule {definition.name} is not supported", source=self.text,
                    position=definition.attributes[refused].at, hint=cure,
                )  # fmt: skip
        attributes, body = definition.attributes, definition.body
        ending = attributes.get("stop") or attributes.get("suffix")
        stop_name = self.capture_name(definition, "stop_capture")
        name = self.capture_name(definition, "capture")
        if ending is None:
            self.capture(definition, RuleCapture(name, stop_name))
            if "lazy" in attributes:
                return self.lexeme(self.terminals.read(body), definition.at, is_lazy="lazy")
            return self.read(body)
        dfa = self.terminals.read(body)
        if ending.kind == "string" and not ending.value[0]:  # The end of the text, which is hidden, stops the rule.
            self.capture(definition, RuleCapture(name, stop_name))
            return self.stopped(dfa, definition.at)
        suffix = self.terminals.read(ending)
        whole = dfa.concatenate(suffix, max_states=self.limits.dfa_states)
        if "suffix" in attributes:
            self.capture(definition, RuleCapture(name, stop_name, dfa, suffix))
            return self.lexeme(whole, definition.at, is_lazy="lazy")
        self.capture(definition, RuleCapture(name, stop_name))
        return self.stopped(text_before(whole, dfa, suffix, self.limits), definition.at)

    def capture_name(self, definition: Definition, attribute: str) -> str | None:
        """Return the name of the capture that an attribute of a rule asks for."""
        word = definition.attributes.get(attribute)
        if word is None or isinstance(word, str):
            return word
        if word.kind == "string":
            return str(json.loads(word.text))
        if attribute == "stop_capture":
            fail_at(self.text, word.at, "stop_capture has no name", 'Write stop_capture="name".')
        return definition.name

    def capture(self, definition: Definition, found: RuleCapture) -> None:
        """Record the captures of a rule."""
        if found.name is not None or found.stop_name is not None:
            self.captures[definition.name] = found

    def stopped(self, dfa: Dfa, at: int) -> Node:
        """Return the leaf of a rule that a hidden text stops: its text may end wherever one of `dfa` does.

        To the scanner it is never empty, as the hidden text is part of it.
        """
        return self.leaf(Lexeme(at, node=Chars(dfa), first=dfa))

    def read(self, step: Step) -> Node:
        """Return the node of a step in a rule."""
        if step.kind == "options":
            return make_choice([self.read(part) for part in step.parts])
        if step.kind == "sequence":
            return make_sequence([self.read(part) for part in step.parts])
        if step.kind == "repeat":
            return Repeat(self.read(step.parts[0]), *step.value)
        if step.kind == "name" and not step.value.lstrip("_")[:1].isupper():
            return self.call(step.value, step.at)
        if step.kind == "special":
            return self.token(step)
        if step.kind in ("%json", "%lark", "reference"):
            return self.subgrammar(step)
        if step.kind == "string" and not step.value[0]:
            return EMPTY
        return self.lexeme(self.terminals.read(step), step.at)

    def lexeme(self, dfa: Dfa, at: int, is_lazy: str = "") -> Node:
        """Return the leaf of a lexeme with a text; one that may be empty is optional."""
        leaf = self.leaf(Lexeme(at, dfa, bool(is_lazy)))
        return Choice((leaf, EMPTY)) if dfa.accepts("") else leaf

    def leaf(self, lexeme: Lexeme) -> Mark:
        """Return the leaf of a lexeme. Each place has its own, since what follows depends on the place."""
        name = str(len(self.lexemes))
        self.numbers[name] = len(self.lexemes)
        self.lexemes.append(lexeme)
        return Mark(name)

    def token(self, step: Step) -> Node:
        """Return the leaf of a special token: `<name>`, `<[1,5-7]>`, `<[^1]>` or `<[*]>`."""
        name = step.value
        node = Token((name,))
        if name.startswith("<["):
            body = name[2:-2].replace(" ", "")
            negated = body.startswith("^")
            ids: list[str | int] = []
            for part in [] if body == "*" else body.lstrip("^").split(","):
                low, _, high = part.partition("-")
                is_range = all(one.isascii() and one.isdigit() and len(one) < 10 for one in (low, high or low))
                if not is_range or int(high or low) - int(low) not in range(10_000):
                    fail_at(self.text, step.at, f"{name} is not a set of tokens", "Write <[5]>, <[5-7,9]> or <[^5]>.")
                ids += range(int(low), int(high or low) + 1)
            node = Token(tuple(ids), negated or body == "*")
        return self.leaf(Lexeme(step.at, node=node))

    def subgrammar(self, step: Step) -> Node:
        """Return the leaf of a JSON Schema, a nested grammar or a reference to a given grammar."""
        try:
            grammar, tail = self.read_subgrammar(step)
        except ConstrainError as error:
            if error.source is None:
                where = f" (at {error.pointer} of the schema)" if error.pointer else ""
                error.cause, error.pointer = f"{error.cause}{where}", None
                error.source, error.position = self.text, step.at
                error.args = (error.render(),)
            raise
        self.inner.append(grammar)
        node = make_inner_token(len(self.inner) - 1)
        first = find_first_characters(grammar)
        return self.leaf(Lexeme(step.at, node=node, first=first, tail=tail))

    def read_subgrammar(self, step: Step) -> tuple[Grammar, Bytes]:
        """Return the Grammar of such a step, and the bytes that could continue a text of it."""
        if step.kind == "%json":
            grammar = self.read_schema(step.value, self.limits)
            begins = lead_bytes(ranges_from(find_first_characters(grammar).table, 0))
            return grammar, NUMBER_BYTES if begins & NUMBER_BYTES else frozenset()
        if step.kind == "%lark":
            begin, end = step.value
            if self.limits.nesting <= NESTED:
                raise LimitError(
                    "Grammars are nested too deeply in each other.", source=self.text, position=step.at,
                    hint="Give the inner ones with grammars=, or raise Limits(nesting=...).",
                )  # fmt: skip
            inner = replace(self.limits, nesting=self.limits.nesting - NESTED)
            # Blanks keep the positions of the nested text those of the whole.
            blank = "".join(char if char == "\n" else " " for char in self.text[:begin])
            nested = _Compiler(blank + self.text[begin:end], self.read_schema, self.grammars, inner)
            grammar = nested.compile()
            self.nested[len(self.inner)] = nested
        else:
            given = self.grammars.get(step.value[1:])
            if given is None:
                fail_at(self.text, step.at, f"there is no grammar {step.value}", "Give it with grammars={name: form}.")
            grammar = given
        try:
            dfa = to_dfa(grammar, "a nested grammar", self.limits)
        except UnsupportedError:
            return grammar, NUMBER_BYTES
        table = dfa.table
        ends = [state for state in range(len(table.rows)) if table.accepting[state]]
        return grammar, frozenset().union(*(lead_bytes(ranges_from(table, state)) for state in ends))


class _SkipInserter(NodeRebuilder):
    """A fold that puts optional ignored text before each lexeme, but for grammars that decide it themselves."""

    def __init__(self, has_own_skip: Callable[[str], bool]) -> None:
        self.has_own_skip = has_own_skip

    def visit_mark(self, node: Mark, parts: list[Node]) -> Node:
        return node if self.has_own_skip(node.text) else Sequence((Repeat(Mark(SKIP), 0, None), node))


class _InnerFiller(NodeRebuilder):
    """A fold that replaces the tokens that stand for inner grammars."""

    def __init__(self, inner: MergedRules) -> None:
        self.inner = inner

    def visit_token(self, node: Token, parts: list[Node]) -> Node:
        number = find_inner_grammar(node)
        return node if number is None else self.inner.start(number)
