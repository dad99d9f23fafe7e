"""Source positions of the parts of a grammar, which lark's trees do not record but error messages need.

The text is split into the tokens of lark's grammar language, without a check that they form a valid grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.cached_property import cached_property

__all__ = ["SourceMap"]

TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | \#[^\n]* )
  | (?P<string> "(?:\\"|\\\\|[^"\n])*?"i? )
  | (?P<pattern> /(?!/)(?:\\/|\\\\|[^/])*?/[imslux]* )
  | (?P<directive> %[a-z]+ )
  | (?P<name> _*[A-Za-z][_A-Za-z0-9]* )
  | (?P<number> [+-]?[0-9]+ )
  | (?P<sign> -> | \.\. | [^\s] )
    """,
    re.X,
)
IMPORT = re.compile(r"%import[ \t]*(\.?[ \t]*\w+(?:[ \t]*\.[ \t]*\w+)*)[ \t]*(?:\(([^)]*)\)|->[ \t]*(\w+))?")
MOST_PARAMETERS = 100
"""Most tokens that are searched for the end of a template's parameters."""
DECLARE = re.compile(r"^[ \t]*%declare[ \t]+([^\n/#]*)", re.M)


@dataclass(frozen=True, slots=True)
class SourceToken:
    """A token. kind: comment, string, pattern, directive, name, number or sign. position: its offset."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True)
class SourceMap:
    """The tokens of one grammar text; most methods return the offset of a token, or None."""

    text: str

    @cached_property
    def tokens(self) -> list[SourceToken]:
        tokens = (SourceToken(str(m.lastgroup), m[0], m.start()) for m in TOKEN.finditer(self.text))
        return [token for token in tokens if token.kind != "comment"]

    @cached_property
    def definitions(self) -> dict[str, list[int]]:
        """Offsets of the definitions (`name:`, `name{a, b}.2:`) and declarations of each name."""
        definitions: dict[str, list[int]] = {}
        for i, token in enumerate(self.tokens):
            if token.kind == "name" and self._is_head(i):
                definitions.setdefault(token.text, []).append(token.position)
        for declared in DECLARE.finditer(self.text):
            for name in re.finditer(r"\w+", declared[1]):
                definitions.setdefault(name[0], []).append(declared.start(1) + name.start())
        return {name: sorted(positions) for name, positions in definitions.items()}

    def _is_head(self, i: int) -> bool:
        """Return whether the name at index i is followed by its colon, possibly after parameters or a priority."""
        following = [token.text for token in self.tokens[i + 1 : i + 4]]
        if following[:1] == ["{"]:
            following = [token.text for token in self.tokens[i + 1 : i + MOST_PARAMETERS]]
            following = following[following.index("}") + 1 :] if "}" in following else []
        return following[:1] == [":"] or (following[:1] == ["."] and following[2:3] == [":"])

    def definition(self, name: str, nth: int = 0) -> int | None:
        """Return the nth definition of a name."""
        positions = self.definitions.get(name, [])
        return positions[nth] if nth < len(positions) else None

    def use(self, name: str, inside: str | None = None) -> int | None:
        """Return the first use of a name, after the definition of `inside` if that is given."""
        after = (self.definition(inside) if inside else None) or 0
        heads = set(self.definitions.get(name, []))
        for token in self.tokens:
            if token.kind == "name" and token.text == name and token.position >= after and token.position not in heads:
                return token.position
        return None

    def literal(self, written: str) -> int | None:
        """Return the first string or pattern with this source text."""
        for token in self.tokens:
            if token.kind in ("string", "pattern") and token.text == written:
                return token.position
        return None

    def anything(self, word: str) -> int | None:
        """Return the first token with this text."""
        return next((token.position for token in self.tokens if token.text == word), None)

    def is_template(self, name: str) -> bool:
        """Return whether a name is defined with parameters."""
        at = self.definition(name)
        return at is not None and self.text[at + len(name) :].lstrip().startswith("{")

    @cached_property
    def imported_names(self) -> dict[str, tuple[str, int]]:
        """Imported names: the grammar that each is from, and the offset of its %import."""
        imported: dict[str, tuple[str, int]] = {}
        for position, path, names, alias in self._imports():
            if names:
                imported.update((name, (path, position)) for name in names)
            else:
                grammar, _, name = path.rpartition(".")
                imported[alias or name] = (grammar, position)
        return imported

    def imported(self, grammar: str) -> int | None:
        """Return the %import of a grammar, given its dotted name."""
        for position, path, names, _ in self._imports():
            if (path if names else path.rpartition(".")[0]).lstrip(".") == grammar:
                return position
        return None

    def _imports(self) -> list[tuple[int, str, list[str], str]]:
        """Return (offset of the path, path, names in parentheses, name after the arrow) of each %import."""
        found = IMPORT.finditer(self.text)
        return [(m.start(1), re.sub(r"\s", "", m[1]), re.findall(r"\w+", m[2] or ""), m[3] or "") for m in found]

    def mixed(self, part: str) -> SourceToken | None:
        """Return the name in mixed case that lark split into several, one of which is `part`."""
        return next((t for t in self.tokens if t.kind == "name" and part in re.findall(r"[A-Z_0-9]+|[a-z_0-9]+", t.text)
                     and t.text not in (t.text.upper(), t.text.lower())), None)  # fmt: skip

    def declared_rules(self) -> list[tuple[str, int]]:
        """Return the names in lower case in %declare, with their offsets."""
        found = DECLARE.finditer(self.text)
        return [(n[0], m.start(1) + n.start()) for m in found for n in re.finditer(r"\b[a-z_0-9]+\b", m[1])]

    def ranges(self) -> list[tuple[str, str, int]]:
        """Return both strings, as written, and the offset of every `"a".."b"`."""
        tokens = self.tokens
        return [
            (low.text, high.text, low.position)
            for low, dots, high in zip(tokens, tokens[1:], tokens[2:])
            if dots.text == ".." and low.kind == high.kind == "string"
        ]

    def declared_inside(self) -> list[tuple[str, str, int]]:
        """Return uses of declared terminals in definitions of other terminals: (declared, other, offset)."""
        declared = {name for m in DECLARE.finditer(self.text) for name in m[1].split()}
        found, inside = [], ""
        for i, token in enumerate(self.tokens):
            if token.kind == "directive":
                inside = ""
            elif token.kind == "name" and self._is_head(i):
                inside = token.text
            elif token.text in declared and inside and inside.upper() == inside:
                found.append((token.text, inside, token.position))
        return found

    def special(self, what: str, words: dict[str, str]) -> int | None:
        """Return the first construct of a certain form: a literal, a repetition range, an arrow in a terminal, ..."""
        return next((position for position in self._iterate_special(what, words)), None)

    def _iterate_special(self, what: str, words: dict[str, str]) -> Iterator[int]:
        inside = ""
        for i, token in enumerate(self.tokens):
            if token.kind == "name" and self._is_head(i):
                inside = token.text
                if what == "inlined" and inside.startswith("_") and "?" in self._before(token.position):
                    yield token.position
            elif token.kind == "directive":
                inside = "__IGNORE" if token.text == "%ignore" else ""
                if what == "empty ignore" and self._line(token.position).split() == ["%ignore"]:
                    yield token.position
                if what == "import" and token.text == "%import" and words["file"] in self._line(token.position):
                    yield token.position
            elif (
                (what == "literal" and token.text == words["literal"])
                or (what == "long pattern" and token.kind == "pattern" and "\n" in token.text)
                or (what == "arrow in terminal" and token.text == "->" and inside and inside.upper() == inside)
                or (what == "range" and token.text == "~" and self._repeats(i, words["low"], words["high"]))
            ):
                yield token.position
            elif what == "flags" and token.kind in ("string", "pattern"):
                body = token.text.rstrip("imslux")
                if any(other.text != token.text and other.text.rstrip("imslux") == body for other in self.tokens[:i]):
                    yield token.position

    def _repeats(self, i: int, low: str, high: str) -> bool:
        return [token.text for token in self.tokens[i + 1 : i + 4]] == [low, "..", high]

    def _line(self, position: int) -> str:
        return self.text[position:].split("\n", 1)[0]

    def _before(self, position: int) -> str:
        return self.text[:position].rsplit("\n", 1)[-1]
