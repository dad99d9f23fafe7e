"""Parser of llguidance's variant of Lark: definitions of rules and terminals, statements and attributes.

item   name[attributes]: options | name: options | %ignore options | %import common.NAME | %llguidance {...}
step   "text" "a".."z" /regex/ name (options) [options] <token> @grammar %json {...} %regex {...} %lark {...}
       ~step, then ? * + {m} {m,} {,n} {m,n} ~m..n; steps & steps (in terminals)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import LimitError, UnsupportedError
from ...base.options import Limits
from .llguidance_lexer import Word, fail_at, split_words

__all__ = ["Definition", "GrammarItems", "Step", "parse_items"]

ATTRIBUTES = ("capture", "lazy", "stop", "suffix", "stop_capture", "max_tokens", "temperature")


@dataclass(slots=True)
class Step:
    """A node of the syntax tree, with its offset.

    kind: "options", "sequence", "both" (`&`), "repeat", "not", or the kind of a leaf: "string", "range", "regexp",
    "name", "special", "reference", "%json", "%regex", "%lark". value: of a leaf, or the bounds of a repetition.
    """

    kind: str
    at: int
    parts: list[Step] = field(default_factory=list)
    value: Any = None


@dataclass(slots=True)
class Definition:
    """A rule or a terminal: its name, body, offset and attributes (each a word or a step)."""

    name: str
    body: Step
    at: int
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GrammarItems:
    """What a grammar text defines. imports: the alias of each imported name, and its offset."""

    source: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Step] = field(default_factory=list)
    imports: dict[str, tuple[str, int]] = field(default_factory=dict)
    options: list[tuple[Any, int]] = field(default_factory=list)


def parse_items(source: str, limits: Limits = Limits()) -> GrammarItems:
    """Return the items of a grammar text. Raise GrammarError with line and column if it is malformed."""
    return _ItemParser(source, limits).parse()


class _ItemParser:
    """Recursive descent; nesting is bounded by `Limits.nesting`, and by 60 at most."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source, self.words, self.k = source, split_words(source), 0
        self.items = GrammarItems(source)
        self.depth, self.most_depth = 0, min(limits.nesting, 60)

    @property
    def word(self) -> Word:
        return self.words[self.k]

    def take(self, kind: str, wanted: str = "") -> Word:
        """Return the next word, which must be of this kind."""
        word = self.word
        if word.kind != kind:
            found = word.text.strip() or "the end of the line"
            fail_at(self.source, word.at, f"{wanted or kind} is expected here, not {found}")
        self.k += 1
        return word

    def given(self, *kinds: str) -> Word | None:
        """Return the next word and go on if it is of one of these kinds."""
        if self.word.kind in kinds:
            self.k += 1
            return self.words[self.k - 1]
        return None

    def refuse(self, at: int, feature: str, cure: str) -> UnsupportedError:
        return UnsupportedError(f"{feature} is not supported", source=self.source, position=at, hint=cure)

    def parse(self) -> GrammarItems:
        while self.word.kind != "end":
            if self.given("line"):
                continue
            if self.word.kind in ("rule", "terminal"):
                self.parse_definition()
            else:
                self.parse_statement()
        return self.items

    def parse_definition(self) -> None:
        word = self.word
        self.k += 1
        name = word.text.lstrip("!?")
        if self.word.kind == "{":
            raise self.refuse(self.word.at, "a template", "Write the rule out for each of its arguments.")
        if self.word.kind == ".":
            raise self.refuse(self.word.at, "a priority", "Leave it out: all lexemes that match count.")
        if self.word.kind == "::":
            raise self.refuse(self.word.at, "a parametric rule", "Write the rule out for each value.")
        attributes = self.parse_attributes() if word.kind == "rule" and self.word.kind == "[" else {}
        self.take(":", "a colon")
        if name in self.items.definitions:
            fail_at(self.source, word.at, f"{name} is defined twice", "Combine both definitions with `|`.")
        self.items.definitions[name] = Definition(name, self.parse_options(), word.at, attributes)
        self.end_line()

    def end_line(self) -> None:
        if self.word.kind not in ("line", "end"):
            fail_at(self.source, self.word.at, f"{self.word.text} cannot stand here", "Begin items on a new line.")

    def parse_attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.take("[")
        while self.word.kind != "]":
            word = self.take("rule", "the name of an attribute")
            if word.text not in ATTRIBUTES:
                fail_at(
                    self.source, word.at, f"there is no attribute {word.text}", f"There are {', '.join(ATTRIBUTES)}."
                )
            if word.text in ("max_tokens", "temperature"):
                self.take("=")
                found[word.text] = self.take("number", "a number")
            elif word.text in ("stop", "suffix"):
                self.take("=")
                found[word.text] = self.parse_value()
            elif word.text in ("capture", "stop_capture") and self.given("="):
                found[word.text] = self.take("string", "a name in quotes")
            else:
                found[word.text] = word
            if not self.given(","):
                break
        self.take("]")
        if sum(name in found for name in ("stop", "suffix", "lazy")) > 1:
            fail_at(self.source, self.word.at, "a rule has one of lazy, stop and suffix", "Leave out the others.")
        return found

    def parse_statement(self) -> None:
        word = self.word
        self.k += 1
        if word.kind == "%ignore":
            self.items.ignored.append(self.parse_options())
        elif word.kind == "%llguidance":
            self.items.options.append((word.value, word.at))
        elif word.kind == "%import":
            self.parse_import()
        elif word.kind in ("%declare", "%override", "%extend"):
            raise self.refuse(word.at, word.kind, "Define the rule or terminal.")
        else:
            fail_at(self.source, word.at, "a rule, a terminal or a statement is expected here")
        self.end_line()

    def parse_import(self) -> None:
        module = self.take("rule", "the name of a module")
        if module.text != "common":
            raise self.refuse(module.at, f"%import {module.text}", "Only common is there: copy what you need.")
        if self.given("."):
            name = self.take("terminal", "the name of a terminal")
            alias = self.take("terminal", "a name").text if self.given("->") else name.text
            self.items.imports[alias] = (name.text, name.at)
            return
        self.take("(")
        while self.word.kind != ")":
            name = self.take("terminal", "the name of a terminal")
            self.items.imports[name.text] = (name.text, name.at)
            if not self.given(","):
                break
        self.take(")")

    # ---- bodies

    def parse_options(self) -> Step:
        self.depth += 1
        if self.depth > self.most_depth:
            raise LimitError(
                f"Groups are nested deeper than {self.most_depth}.", source=self.source, position=self.word.at,
                hint="Give the inner ones rules of their own.",
            )  # fmt: skip
        at = self.word.at
        options = [self.parse_alternative()]
        while self.given_bar():
            options.append(self.parse_alternative())
        self.depth -= 1
        return options[0] if len(options) == 1 else Step("options", at, options)

    def given_bar(self) -> bool:
        """Go past a `|`, which may be the first word of the next line."""
        ahead = self.k + (self.word.kind == "line")
        if self.words[min(ahead, len(self.words) - 1)].kind != "|":
            if self.depth > 1 and self.word.kind == "line":
                self.k += 1  # Lines may end inside parentheses.
            return False
        self.k = ahead + 1
        return True

    def parse_alternative(self) -> Step:
        first = self.parse_sequence()
        both = [first]
        while self.given("&"):
            both.append(self.parse_sequence())
        if self.given("->"):
            self.take("rule", "an alias")
        return first if len(both) == 1 else Step("both", first.at, both)

    def parse_sequence(self) -> Step:
        at, steps = self.word.at, list[Step]()
        while self.word.kind not in ("line", "|", "->", ")", "]", "}", "&", "end", ","):
            steps.append(self.parse_step())
        return steps[0] if len(steps) == 1 else Step("sequence", at, steps)

    def parse_step(self) -> Step:
        at = self.word.at
        if self.given("~"):
            return self.parse_count(Step("not", at, [self.parse_atom()]))
        return self.parse_count(self.parse_atom())

    def parse_count(self, atom: Step) -> Step:
        at = self.word.at
        sign = self.given("?", "*", "+")
        if sign:
            return Step("repeat", at, [atom], {"?": (0, 1), "*": (0, None), "+": (1, None)}[sign.text])
        if self.word.kind == "~" and self.words[self.k + 1].kind == "number":
            self.k += 1
            low = self.number()
            return self.counted(atom, at, low, self.number() if self.given("..") else low)
        if self.given("{"):
            low = 0 if self.word.kind == "," else self.number()
            high: int | None = low
            if self.given(","):
                high = None if self.word.kind == "}" else self.number()
            self.take("}")
            return self.counted(atom, at, low, high)
        return atom

    def number(self) -> int:
        word = self.take("number", "a number")
        if not word.text.isdigit() or len(word.text) > 9:
            fail_at(self.source, word.at, "a count is an integer from 0 of at most 9 digits")
        return int(word.text)

    def counted(self, atom: Step, at: int, low: int, high: int | None) -> Step:
        if high is not None and (high < low or high == 0):
            fail_at(self.source, at, f"no count is at least {low} and at most {high}", "The greatest is 1 or more.")
        return Step("repeat", at, [atom], (low, high))

    def parse_atom(self) -> Step:
        at = self.word.at
        if self.given("("):
            inner = self.parse_options()
            self.take(")", "a closing parenthesis")
            return inner
        if self.given("["):
            inner = self.parse_options()
            self.take("]", "a closing bracket")
            return Step("repeat", at, [inner], (0, 1))
        return self.parse_value()

    def parse_value(self) -> Step:
        word = self.word
        self.k += 1
        if word.kind == "string":
            text = self.text_of(word)
            if self.given(".."):
                return Step("range", word.at, [], (text[0], self.text_of(self.take("string", "a character"))[0]))
            return Step("string", word.at, [], text)
        if word.kind == "regexp":
            end = word.text.rindex("/")
            return Step("regexp", word.at, [], (word.text[1:end], word.text[end + 1 :]))
        if word.kind in ("rule", "terminal"):
            if self.word.kind == "{" and self.words[self.k + 1].kind not in ("number", ","):
                raise self.refuse(self.word.at, "a template", "Write the rule out for each of its arguments.")
            if self.word.kind == "::":
                raise self.refuse(self.word.at, "a parametric rule", "Write the rule out for each value.")
            return Step("name", word.at, [], word.text)
        if word.kind in ("special", "reference"):
            return Step(word.kind, word.at, [], word.text)
        if word.kind in ("%json", "%regex", "%lark"):
            return Step(word.kind, word.at, [], word.value)
        fail_at(self.source, word.at, f"{word.text.strip() or 'the end of the line'} begins no step")
        return None

    def text_of(self, word: Word) -> tuple[str, bool]:
        """Return the text of a string, and whether case is ignored."""
        body, ignores = (word.text[:-1], True) if word.text.endswith("i") else (word.text, False)
        body = re.sub(r"(\\\\)|\\x([0-9a-fA-F]{2})", lambda found: found[1] or f"\\u00{found[2]}", body)
        try:
            text = json.loads(body, strict=False)
            text.encode()
        except ValueError:
            fail_at(self.source, word.at, "this string has an escape that JSON does not have", r"Write \\ for \.")
        return text, ignores
