"""Slow oracle: the language of a Grammar by Brzozowski derivatives, without optimisations.

The derivative of a language by a byte is what may follow that byte. Every node is turned into an Expr, and

    viable(prefix)          the derivative by `prefix` is not empty: some completion exists
    accepts(text)           the derivative by `text` holds the empty text
    mask(prefix, tokens)    the tokens that are not empty and leave `prefix + token` viable

Emptiness and nullability of an Expr are least fixpoints over Horn clauses: an Expr has the property if all parts of one
of its clauses do. The derivative of a rule is a variable ("var") whose definition is computed lazily, so that left
recursion is an ordinary equation (Might, Darais, Spiewak: Parsing with derivatives, ICFP 2011). For objects all
possible sets of seen keys are enumerated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.grammar import nodes
from constrain.grammar.nodes import Grammar, NameClass, Node, Object, Property
from tests.text_oracle import can_end, completions, decode, feed, names_from, next_states

Clauses = list[tuple["Expr", ...]]


class Expr:
    """A node of a derivative. Equal nodes are one object (hash consing), so that identity is equality."""

    __slots__ = ("fields", "tag")

    def __init__(self, tag: str, fields: tuple[Any, ...]) -> None:
        self.tag, self.fields = tag, fields

    def __repr__(self) -> str:
        return f"{self.tag}{self.fields}"


class Reference:
    """The oracle of one grammar; derivatives are cached."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.made: dict[tuple[Any, ...], Expr] = {}
        self.derived: dict[tuple[Expr, int], Expr] = {}
        self.exprs: dict[int, tuple[Node, Expr]] = {}
        self.objects: list[Object] = []
        self.definitions: dict[Expr, Expr] = {}
        self.known: dict[str, dict[Expr, bool]] = {"nullable": {}, "productive": {}}
        self.never, self.empty = self.make("never"), self.make("empty")
        self.start = self.expr(grammar.start)

    # ---- the questions

    def after(self, text: bytes, expr: Expr | None = None) -> Expr:
        """Return the derivative of `expr`, by default of the start, by `text`."""
        out = self.start if expr is None else expr
        for byte in text:
            out = self.derive(out, byte)
        return out

    def accepts(self, text: bytes) -> bool:
        """Return whether `text` is in the language."""
        return self.holds("nullable", self.after(text))

    def viable(self, prefix: bytes) -> bool:
        """Return whether some text of the language starts with `prefix`."""
        return self.holds("productive", self.after(prefix))

    def mask(self, prefix: bytes, tokens: Sequence[bytes | None]) -> set[int]:
        """Return the ids of the tokens that may follow `prefix`."""
        here = self.after(prefix)
        return {
            index for index, token in enumerate(tokens) if token and self.holds("productive", self.after(token, here))
        }

    def next_bytes(self, prefix: bytes) -> set[int]:
        """Return the bytes that may follow `prefix`."""
        here = self.after(prefix)
        return {byte for byte in range(256) if self.holds("productive", self.derive(here, byte))}

    def spelled_mask(self, prefix: bytes, tokens: Sequence[bytes | None]) -> set[int]:
        """Return the mask if completions must be spelled by tokens. Searches for one: for small tests only."""
        here = self.after(prefix)
        return {i for i, token in enumerate(tokens) if token and self.spelled(self.after(token, here), tokens)}

    def spelled(self, expr: Expr, tokens: Sequence[bytes | None]) -> bool:
        """Return whether a sequence of tokens completes a text."""
        seen, todo = {expr}, [expr]
        while todo:
            one = todo.pop()
            if self.holds("nullable", one):
                return True
            more = {self.after(token, one) for token in tokens if token} - seen
            seen |= more
            todo += [other for other in more if self.holds("productive", other)]
        return False

    # ---- Exprs

    def make(self, tag: str, *fields: Any) -> Expr:
        """Return the unique Expr of this tag and these fields."""
        return self.made.setdefault((tag, *fields), Expr(tag, fields))

    def alt(self, options: Iterable[Expr]) -> Expr:
        """Return the union of expressions."""
        flat: set[Expr] = set()
        for option in options:
            flat |= option.fields[0] if option.tag == "alt" else {option}
        flat.discard(self.never)
        if len(flat) <= 1:
            return flat.pop() if flat else self.never
        return self.make("alt", frozenset(flat))

    def cat(self, *parts: Expr) -> Expr:
        """Return the concatenation of expressions."""
        out = self.empty
        for part in reversed(parts):
            if part is self.never or out is self.never:
                return self.never
            if part.tag == "cat":
                part, out = part.fields[0], self.cat(part.fields[1], out)
            out = out if part is self.empty else part if out is self.empty else self.make("cat", part, out)
        return out

    def literal(self, data: bytes) -> Expr:
        """Return the expression of exactly these bytes."""
        return self.make("bytes", data) if data else self.empty

    def repeat(self, expr: Expr, low: int, high: int | None) -> Expr:
        """Return `expr` repeated low to high times."""
        if high is not None and (high < low or high < 0):
            return self.never
        return self.empty if high == 0 else self.make("repeat", expr, max(low, 0), high)

    def expr(self, node: Node) -> Expr:
        """Return the Expr of a node of the grammar. Cached by identity, since comparing nodes is slow."""
        if id(node) not in self.exprs:
            self.exprs[id(node)] = (node, self.new_expr(node))
        return self.exprs[id(node)][1]

    def new_expr(self, node: Node) -> Expr:
        match node:
            case nodes.Literal(data):
                return self.literal(data)
            case nodes.Strings(options):
                return self.alt(map(self.literal, options))
            case nodes.Sequence(parts):
                return self.cat(*map(self.expr, parts))
            case nodes.Choice(options):
                return self.alt(map(self.expr, options))
            case nodes.Repeat(inner, low, high):
                return self.repeat(self.expr(inner), low, high)
            case nodes.Rule(name):
                return self.make("var", name, b"")
            case nodes.Chars(dfa, encoding, low, high):
                return self.text(dfa, encoding, low, high)
            case nodes.JsonString(dfa, low, high):
                return self.cat(self.literal(b'"'), self.text(dfa, "json", low, high), self.literal(b'"'))
            case nodes.Number(language):
                return self.make("number", NumberAutomaton(language), 0)
            case nodes.Object():
                return self.object(node)
        raise TypeError(f"no such node: {node!r}")

    def text(self, dfa: Any, encoding: str, low: int, high: int | None) -> Expr:
        """Return the expression of characters: state of the Dfa, number of characters, bytes of an unfinished one."""
        return self.never if dfa.is_empty else self.make("text", dfa, encoding, low, high, 0, 0, b"")

    def definition(self, var: Expr) -> Expr:
        """Return the definition of a name: a rule, or the derivative of one by a word."""
        if var not in self.definitions:
            name, word = var.fields
            self.definitions[var] = (
                self.derive(self.definition(self.make("var", name, word[:-1])), word[-1])
                if word
                else self.expr(self.grammar.rules[name])
            )
        return self.definitions[var]

    # ---- derivatives

    def derive(self, expr: Expr, byte: int) -> Expr:
        """Return the derivative by a byte."""
        found = self.derived.get((expr, byte))
        if found is None:
            found = self.derived[expr, byte] = getattr(self, f"derive_{expr.tag}")(byte, *expr.fields)
        return found

    def derive_never(self, byte: int) -> Expr:
        return self.never

    def derive_empty(self, byte: int) -> Expr:
        return self.never

    def derive_bytes(self, byte: int, data: bytes) -> Expr:
        return self.literal(data[1:]) if data[0] == byte else self.never

    def derive_alt(self, byte: int, options: frozenset[Expr]) -> Expr:
        return self.alt([self.derive(option, byte) for option in options])

    def derive_cat(self, byte: int, first: Expr, second: Expr) -> Expr:
        inside = self.cat(self.derive(first, byte), second)
        return self.alt([inside, self.derive(second, byte)]) if self.holds("nullable", first) else inside

    def derive_repeat(self, byte: int, inner: Expr, low: int, high: int | None) -> Expr:
        # Empty rounds can be left out: if the inner expression is nullable, the lower bound does not matter.
        rest = self.repeat(inner, low - 1, None if high is None else high - 1)
        return self.cat(self.derive(inner, byte), rest)

    def derive_var(self, byte: int, name: Any, word: bytes) -> Expr:
        return self.make("var", name, word + bytes([byte]))

    def derive_text(
        self, byte: int, dfa: Any, encoding: Any, low: int, high: int | None, state: int, count: int, pending: bytes
    ) -> Expr:
        fed = feed(encoding, pending, byte)
        if fed is None:
            return self.never
        char, pending = fed
        if char:
            state, count = dfa.step(state, char), count + 1
        return self.never if state < 0 else self.make("text", dfa, encoding, low, high, state, count, pending)

    def derive_number(self, byte: int, automaton: NumberAutomaton, state: int) -> Expr:
        """Use the number automaton, which `tests/automata/test_number_automaton.py` compares with exact fractions."""
        after = automaton.row(state).get(byte)
        return self.never if after is None else self.make("number", automaton, after)

    # ---- least fixpoints

    def holds(self, question: str, expr: Expr) -> bool:
        """Return whether an Expr is "nullable" (contains the empty text) or "productive" (is not empty)."""
        known = self.known[question]
        if expr not in known:
            clauses: dict[Expr, Clauses] = {}
            todo = [expr]
            while todo:
                one = todo.pop()
                if one not in known and one not in clauses:
                    clauses[one] = list(getattr(self, f"{question}_if")(one))
                    todo += [part for clause in clauses[one] for part in clause]
            true: set[Expr] = set()
            grown = True
            while grown:
                more = {
                    one
                    for one, options in clauses.items()
                    if one not in true
                    and any(all(part in true or known.get(part, False) for part in clause) for clause in options)
                }
                true |= more
                grown = bool(more)
            known.update((one, one in true) for one in clauses)
        return known[expr]

    def nullable_if(self, expr: Expr) -> Clauses:
        """Return the clauses of nullability: an Expr is nullable if all parts of one clause are."""
        match expr.tag:
            case "empty":
                return [()]
            case "text":
                dfa, _, low, high, state, count, pending = expr.fields
                enough = low <= count and (high is None or count <= high)
                return [()] if enough and not pending and dfa.accepting[state] else []
            case "number":
                automaton, number_state = expr.fields
                return [()] if automaton.accepts(number_state) else []
            case "never" | "bytes" | "key" | "member":
                return []
        return self.structure_if(expr)

    def productive_if(self, expr: Expr) -> Clauses:
        """Return the clauses of productivity: an Expr is productive if all parts of one clause are."""
        match expr.tag:
            case "empty" | "bytes" | "number":
                return [()]
            case "never":
                return []
            case "text":
                dfa, encoding, low, high, state, count, pending = expr.fields
                if pending:
                    found = can_end(dfa, next_states(dfa, encoding, state, pending), count + 1, low, high)
                else:
                    found = can_end(dfa, {state}, count, low, high)
                return [()] if found else []
            case "key":
                return list(self.key_if(*expr.fields))
            case "member":
                return list(self.member_if(*expr.fields))
        return self.structure_if(expr)

    def structure_if(self, expr: Expr) -> Clauses:
        """Return the clauses that both properties share."""
        match expr.tag:
            case "cat":
                return [expr.fields]
            case "alt":
                return [(option,) for option in expr.fields[0]]
            case "repeat":
                return [()] if expr.fields[1] == 0 else [(expr.fields[0],)]
            case "var":
                return [(self.definition(expr),)]
        raise TypeError(expr.tag)

    # ---- objects: `{` (empty | open member (comma member)* close) `}`
    # "key": a member is due; `raw` is what was read of its key inside the quotes, None before the quote.
    # "member": a member is complete. `seen` are the decoded names so far, `met` the required classes with a member.

    def object(self, node: Object) -> Expr:
        """Return the complete object."""
        layout, none = node.layout, frozenset[str]()
        self.objects.append(node)
        first = self.cat(self.expr(layout.open), self.make("key", len(self.objects) - 1, none, NO_CLASS, None))
        closes = self.may_close(node, none, NO_CLASS)
        bare = self.cat(self.expr(layout.empty), self.literal(layout.closing)) if closes else self.never
        return self.cat(self.literal(layout.opening), self.alt([first, bare]))

    def may_close(self, node: Object, seen: frozenset[str], met: frozenset[int]) -> bool:
        """Return whether the object may end with exactly these names, and members of these classes."""
        enough = node.low <= len(seen) and (node.high is None or len(seen) <= node.high)
        present = [prop for prop in node.properties if prop.name in seen]
        return (
            enough
            and all(prop in present for prop in node.properties if prop.required)
            and all(prop.needs <= seen for prop in present)
            and not self.unmet(node, met)
        )

    def unmet(self, node: Object, met: frozenset[int]) -> list[int]:
        """Return the classes that still need a member."""
        return [index for index, other in enumerate(node.others) if other.required and index not in met]

    def owners(self, node: Object, name: str) -> Iterator[Property | NameClass]:
        """Yield the property or the classes of names to which a decoded name may belong."""
        declared = [prop for prop in node.properties if prop.name == name]
        yield from declared or (other for other in node.others if other.names.accepts(name))

    def open_to(self, node: Object, seen: frozenset[str], owner: Property | NameClass) -> bool:
        """Return whether the order allows a member of this owner after the seen names."""
        if node.order == "any" or isinstance(owner, NameClass):
            return True
        names = [prop.name for prop in node.properties]
        last = max((names.index(name) if name in names else len(names) for name in seen), default=-1)
        return names.index(owner.name) > last

    def member(
        self, number: int, seen: frozenset[str], met: frozenset[int], name: str, owner: Property | NameClass
    ) -> tuple[Expr, ...]:
        """Return what follows the key `name`, as one of the owner's."""
        node = self.objects[number]
        if isinstance(owner, NameClass) and owner.required:
            met |= {next(index for index, other in enumerate(node.others) if other is owner)}
        return (self.expr(node.layout.colon), self.expr(owner.value), self.make("member", number, seen | {name}, met))

    def derive_key(self, byte: int, number: int, seen: frozenset[str], met: frozenset[int], raw: bytes | None) -> Expr:
        node = self.objects[number]
        if raw is None:
            return self.make("key", number, seen, met, b"") if byte == ord('"') else self.never
        read = decode(raw)
        if read is None:
            return self.never
        name, pending = read
        if pending or byte != ord('"'):
            return self.make("key", number, seen, met, raw + bytes([byte]))
        if name in seen or name in node.excluded:
            return self.never
        return self.alt(
            self.cat(*self.member(number, seen, met, name, owner))
            for owner in self.owners(node, name)
            if self.open_to(node, seen, owner) and spelled(node, owner, name, raw)
        )

    def derive_member(self, byte: int, number: int, seen: frozenset[str], met: frozenset[int]) -> Expr:
        node = self.objects[number]
        more = self.cat(self.expr(node.layout.comma), self.make("key", number, seen, met, None))
        closes = self.may_close(node, seen, met)
        end = self.cat(self.expr(node.layout.close), self.literal(node.layout.closing)) if closes else self.never
        return self.derive(self.alt([more, end]), byte)

    def key_if(
        self, number: int, seen: frozenset[str], met: frozenset[int], raw: bytes | None
    ) -> Iterator[tuple[Expr, ...]]:
        """Yield the clauses of a key: some name completes it, and the rest is productive."""
        node = self.objects[number]
        if raw is not None and decode(raw) is None:
            return
        for owner in (*node.properties, *node.others):
            for name in self.fresh(node, seen, raw or b"", owner, 1 + len(self.unmet(node, met))):
                if self.open_to(node, seen, owner):
                    yield self.member(number, seen, met, name, owner)

    def member_if(self, number: int, seen: frozenset[str], met: frozenset[int]) -> Iterator[tuple[Expr, ...]]:
        """Yield the clauses after a member: the object ends or continues."""
        node = self.objects[number]
        if self.may_close(node, seen, met):
            yield (self.expr(node.layout.close),)
        for clause in self.key_if(number, seen, met, None):
            _, after, newly = clause[-1].fields
            name = next(iter(after - seen))
            if len(seen) < node.low or newly != met or any(prop.name == name for prop in node.properties):
                yield (self.expr(node.layout.comma), *clause)

    def fresh(
        self, node: Object, seen: frozenset[str], raw: bytes, owner: Property | NameClass, most: int
    ) -> list[str]:
        """Names of this owner that were not seen and whose spelling starts with `raw`: `most` of them, or all.

        If n classes still need a member, n + 1 names stand for all: the others take n of them at most.
        """
        read = decode(raw)
        if read is None:
            return []
        head, pending = read
        if isinstance(owner, Property):
            fits = owner.name not in seen and owner.name.startswith(head)
            if fits and node.escapes == "canonical":
                fits = canonical(owner.name).startswith(raw)
            elif fits and pending:
                rest = owner.name[len(head) :]
                fits = bool(rest) and any(a <= ord(rest[0]) <= b for a, b in completions("json", pending))
            return [owner.name] if fits else []
        taken = {*seen, *node.excluded, *(prop.name for prop in node.properties)}
        names = names_from(owner.names, head, pending, len(taken) + most)
        return list(islice((name for name in names if name not in taken), most))


NO_CLASS: frozenset[int] = frozenset()


def canonical(name: str) -> bytes:
    """Return the canonical spelling of a declared key, without the quotes."""
    return json.dumps(name, ensure_ascii=False)[1:-1].encode()


def spelled(node: Object, owner: Property | NameClass, name: str, raw: bytes) -> bool:
    """Return whether a key may be spelled so."""
    return isinstance(owner, NameClass) or node.escapes == "any" or canonical(name) == raw
