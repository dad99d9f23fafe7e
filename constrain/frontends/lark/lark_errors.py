"""Translate lark's errors in a grammar to GrammarErrors with a position and a hint.

lark's errors are messages without a position. Each row of `lark_messages.ROWS` matches one of them and locates its
subject in the text; syntax errors are explained by `lark_syntax`, invalid patterns by `GrammarFaults.bad_pattern`. A
message that no row matches is passed on unchanged, with the position of the first name in it.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...base.errors import EXCERPT, ConstrainError, GrammarError, LimitError
from .lark_imports import ImportReader, ModuleNotFound
from .lark_literals import explain_literal
from .lark_messages import ROWS
from .lark_syntax import explain_syntax_error
from .source_map import SourceMap

__all__ = ["GrammarFaults"]

MOST_NAMES = 12
"""Most names that a message lists."""


class GrammarFaults:
    """Explanations of the errors of one grammar.

    text, source: the grammar and its file name. reader: the reader of its imports. source_map: positions in its text.
    """

    def __init__(self, text: str, source: str, reader: ImportReader) -> None:
        self.text = text
        self.source = source
        self.reader = reader
        self.source_map = SourceMap(text)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Convert exceptions of lark inside the context to GrammarErrors."""
        try:
            yield
        except ConstrainError:
            raise
        except Exception as error:  # For wrong grammars lark raises AssertionError and LookupError too.
            raise self.explain(error) from error

    def explain(self, error: BaseException) -> ConstrainError:
        """Return the error that explains an exception of lark."""
        cause = error.__context__
        if cause is not None and hasattr(cause, "pos_in_stream"):
            error = cause
        if hasattr(error, "pos_in_stream"):
            return self._explain_syntax(error)
        original = getattr(error, "orig_exc", error)
        if isinstance(original, ModuleNotFound):
            return self.no_grammar(str(original))
        if isinstance(original, RecursionError):
            return LimitError(
                "the grammar is nested more deeply than lark can read it: fewer levels than Limits.nesting",
                hint="Move inner parts into separate rules.",
            )
        sentence = str(original)
        for pattern, text, where, cure in ROWS:
            if match := re.search(pattern, sentence):
                return self._fill_row(match.groupdict(), text, where, cure)
        if known := self._bad_range() or self._declared() or self._first_bad_pattern():
            return known
        first = next((line.strip() for line in sentence.splitlines() if line.strip()), type(original).__name__)
        named = (self._find(name, "anywhere") for name in re.findall(r"[A-Za-z_]\w+", sentence))
        location = next((location for location in named if location), None)
        return self.at(location, f"lark refuses the grammar: {first}", "See lark's grammar reference.")

    # ---- errors that `load_grammar` detects itself --------------------------------------------------------------

    def no_start(self, start: str) -> GrammarError:
        """Return the error of a missing start rule."""
        if start in self.source_map.definitions:
            what = "a template" if self.source_map.is_template(start) else f"a {kind_of_name(start)}"
            cure = "Add a rule that consists of it alone."
            return self.at(self._find(start, "defined"), f"the start must be a rule, and `{start}` is {what}", cure)
        rules = [name for name in self.source_map.definitions if name.lower() == name]
        cure = f"Define it, or name another start rule: start={rules[0]!r}." if rules else f"Define it: `{start}: ...`"
        return self.at(
            (self.source_map, self.source, 0),
            f"there is no rule `{start}`, which is needed as the start",
            self._suggest_similar(start) + cure,
        )

    def no_rule(self, name: str) -> GrammarError:
        """Return the error of a nonterminal without productions.

        It is a template used as a rule, or a rule that is only declared.
        """
        location = self._find(name, "used")
        if self.source_map.is_template(name):
            return self.at(location, f"`{name}` is a template, used without arguments", f"Write `{name}{{...}}`.")
        return self.at(location, f"rule `{name}` is used but has no options", f"Define it: `{name}: ...`")

    def too_many(self, name: str, count: int, most: int) -> LimitError:
        """Return the error of a rule with too many expanded alternatives."""
        where = self._find(name, "defined")
        many = str(count) if count < 10**9 else "over a billion"
        return LimitError(
            f"rule `{name}` has {many} options, more than {most}, after expansion of its choices and optional parts",
            source=where[0].text if where else None,
            position=where[2] if where else None,
            hint="Move inner choices into separate rules, which are not expanded.",
        )

    def ignored_without_text(self, name: str) -> GrammarError:
        """Return the error of an %ignore of a declared terminal."""
        return self.at(
            self._find(name, "used"),
            f"%ignore names `{name}`, which is only declared and so is never in a text",
            f"Define it, `{name}: ...`, or do not ignore it.",
        )

    def empty_terminal(self, name: str, regexp: str, written: str) -> GrammarError:
        """Return the error of a terminal that can match the empty text. written: its literal, if it has no name."""
        position = self.source_map.literal(written) if written else None
        return self.at(
            self._find(name, "anywhere") if position is None else (self.source_map, self.source, position),
            f"terminal {self._display_name(name)} can match the empty text, as {shorten_excerpt(regexp)!r} does",
            "Let it match one character at least (`+` for `*`), and make what uses it optional with `?`.",
        )

    def bad_pattern(self, name: str, regexp: str, error: Exception) -> GrammarError:
        """Return the error of a pattern that `re` rejects: of the invalid literal, or else of the composed terminal."""
        if known := self._bad_range() or self._first_bad_pattern():
            return known
        return self.at(
            self._find(name, "defined"),
            f"terminal {self._display_name(name)} is not a valid pattern for `re` after composition, "
            f"{shorten_excerpt(regexp)!r}: {error}",
            "Each part is valid, so rewrite the terminal that combines them.",
        )

    def no_grammar(self, file: str) -> GrammarError:
        """Return the error of an import that was not found."""
        name = file.removesuffix(".lark").replace("/", ".").replace("\\", ".")
        position = self.source_map.imported(name)
        where = (self.source_map, self.source, position) if position is not None else None
        if position is not None and self.text.startswith(".", position):
            folders = ", ".join(map(repr, self.reader.folders)) or "no folder"
            cure = f"It is searched in import_paths=, which contains {shorten_excerpt(folders)}."
            return self.at(where, f"%import finds no file {file}", cure)
        known = self.reader.available()
        near = difflib.get_close_matches(name.rpartition(".")[2], known, 1)
        cure = f"Known: {', '.join(known)}. Others are searched only in the folders of import_paths=."
        return self.at(
            where, f"%import finds no grammar `{name}`", (f"Did you mean {near[0]}? " if near else "") + cure
        )

    # ---- positions ----------------------------------------------------------------------------------------------

    def at(self, location: tuple[SourceMap, str, int] | None, cause: str, cure: str) -> GrammarError:
        """Return an error at a position of this grammar, or of one that it imports, which the message then names."""
        if location is None:
            return GrammarError(cause, hint=cure.strip())
        source_map, file, position = location
        if source_map is not self.source_map:
            cause = f"{cause} (in the imported {file})"
        return GrammarError(cause, source=source_map.text, position=position, hint=cure.strip())

    def _texts(self) -> Iterator[tuple[SourceMap, str]]:
        """Yield this grammar, then its imports, the latest first."""
        yield self.source_map, self.source
        for file, text in reversed(self.reader.texts.items()):
            yield SourceMap(text), file

    def _find(self, name: str, role: str, inside: str | None = None) -> tuple[SourceMap, str, int] | None:
        """Find a name: "defined" (or "again": its second definition), "used", or "anywhere".

        lark renames imported symbols: `NAME` of grammar `a.b` is `a__b__NAME`, so prefixes are removed in imported
        texts.
        """
        for source_map, file in self._texts():
            short, within = name, inside
            while True:
                position = self._find_position(source_map, short, role, within)
                if position is not None:
                    return source_map, file, position
                if source_map is self.source_map or "__" not in short.lstrip("_"):
                    break
                short = short.lstrip("_").partition("__")[2]
                within = within.lstrip("_").partition("__")[2] if within else None
        return None

    def _word(self, name: str) -> tuple[SourceMap, str, int] | None:
        """Find the first occurrence of a string in the text, also inside other words."""
        position = self.text.find(name)
        return (self.source_map, self.source, position) if position >= 0 else None

    @staticmethod
    def _find_position(source_map: SourceMap, name: str, role: str, inside: str | None) -> int | None:
        defined = source_map.definition(name)
        if role == "again":
            second = source_map.definition(name, 1)
            return defined if second is None else second
        if role == "used":
            return source_map.use(name, inside) or source_map.use(name)
        return defined if defined is not None or role == "defined" else source_map.use(name)

    def _fill_row(self, groups: dict[str, str | None], text: str, where: str, cure: str) -> GrammarError:
        """Return the error of a row of the table, with its placeholders filled in."""
        words = {key: value or "" for key, value in groups.items()}
        name = words.get("name", "")
        words |= {"kind": kind_of_name(name), "upper": name.upper(), "similar": "", "missing": ""}
        if "{missing}" in cure:
            if imported := self.source_map.imported_names.get(name):
                grammar, position = imported
                names = self._names_of(grammar)
                return self.at(
                    (self.source_map, self.source, position),
                    f"%import requests `{name}` from {grammar}, which does not define it",
                    self._suggest_similar(name, names)
                    or f"It defines {', '.join(names[:MOST_NAMES])}{', ...' if len(names) > MOST_NAMES else '.'}",
                )
            if mixed := self.source_map.mixed(name):
                return self.at(
                    (self.source_map, self.source, mixed.position),
                    f"the name `{mixed.text}` mixes upper and lower case",
                    "A rule's name is all in lower case, a terminal's all in upper case.",
                )
            words["missing"] = self._suggest_definition(name)
        words["similar"] = self._suggest_similar(name)
        return self.at(self._locate(where, words), text.format(**words), cure.format(**words))

    def _locate(self, where: str, words: dict[str, str]) -> tuple[SourceMap, str, int] | None:
        """Return the position that a row of the table refers to."""
        if where in ("defined", "again", "used"):
            return (
                self._find(words["name"], where) or self._find(words["name"], "anywhere") or self._word(words["name"])
            )
        if where == "used inside":
            used = self._find(words["name"], "used", words["inside"].partition("{")[0])
            return used or self._word(words["name"])
        for source_map, file in self._texts():
            if (position := source_map.special(where, words)) is not None:
                return source_map, file, position
        return None

    # ---- causes that lark has no message for --------------------------------------------------------------------

    def _explain_syntax(self, error: Any) -> GrammarError:
        """Return the error of a syntax error.

        lark parses each text before it resolves anything, so the wrong text is the last one that was read.
        """
        source_map, file = (self.source_map, self.source)
        if self.reader.texts:
            file = next(reversed(self.reader.texts))
            source_map = SourceMap(self.reader.texts[file])
        position, cause, cure = explain_syntax_error(source_map.text, error)
        return self.at((source_map, file, position), cause, cure)

    def _bad_range(self) -> GrammarError | None:
        """Return the error of a `"a".."z"` whose ends are not single characters in order."""
        for source_map, file in self._texts():
            for low, high, position in source_map.ranges():
                try:
                    ends = ast.literal_eval(low), ast.literal_eval(high)
                except (ValueError, SyntaxError):
                    continue
                if any(len(end) != 1 for end in ends):
                    cause = f"the range {low}..{high} must have single characters as its ends"
                    return self.at((source_map, file, position), cause, "Use a /pattern/ or a choice for longer texts.")
                if ends[0] > ends[1]:
                    cause = f"the range {low}..{high} is reversed"
                    return self.at((source_map, file, position), cause, f"Write {high}..{low}.")
        return None

    def _declared(self) -> GrammarError | None:
        """Return the error of a declared terminal in the definition of another terminal, or of a declared rule."""
        for source_map, file in self._texts():
            for name, inside, position in source_map.declared_inside():
                return self.at(
                    (source_map, file, position),
                    f"terminal {inside} is made of `{name}`, which is only declared and so has no text",
                    f"Define `{name}: ...` instead of declaring it.",
                )
            for name, position in source_map.declared_rules():
                cure = f"Define it, `{name}: ...`, or declare a terminal, in upper case."
                return self.at((source_map, file, position), f"%declare names `{name}`, which is a rule", cure)
        return None

    def _first_bad_pattern(self) -> GrammarError | None:
        """Return the error of the first invalid literal: a pattern or a string."""
        for source_map, file in self._texts():
            for token in source_map.tokens:
                if token.kind in ("pattern", "string") and (problem := explain_literal(token.kind, token.text)):
                    offset, cause, cure = problem
                    return self.at((source_map, file, token.position + offset), cause, cure)
        return None

    # ---- words --------------------------------------------------------------------------------------------------

    def _display_name(self, name: str) -> str:
        return "of %ignore" if name.startswith("__IGNORE") else "here" if name.startswith("__") else f"`{name}`"

    def _suggest_similar(self, name: str, names: Iterable[str] = ()) -> str:
        """Return a hint with a similar name, or ""."""
        near = difflib.get_close_matches(name, [n for n in names or self.source_map.definitions if n != name], 1, 0.7)
        return f"Did you mean `{near[0]}`? " if near else ""

    def _suggest_definition(self, name: str) -> str:
        """Return a hint how to define or import a missing name."""
        if kind_of_name(name) == "rule":
            return f"Define it: `{name}: ...`"
        for grammar in ("common", "python"):
            if name in self._names_of(grammar):
                return f"`%import {grammar}.{name}` brings it."
        return f'Define it, `{name}: ...`; or write "{name}" if that is the text; or %declare it for a post-lexer.'

    def _names_of(self, grammar: str) -> list[str]:
        """Return the names that an importable grammar defines."""
        path = grammar.strip(".").replace(".", os.sep) + ".lark"
        texts = [text for (_, requested), text in self.reader.read.items() if requested == path]
        try:
            return list(SourceMap(texts[0] if texts else self.reader(None, path)[1]).definitions)
        except ModuleNotFound:
            return []


def kind_of_name(name: str) -> str:
    """Return "terminal" for a name in upper case, else "rule"."""
    return "terminal" if name.upper() == name else "rule"


def shorten_excerpt(text: str) -> str:
    return text if len(text) <= EXCERPT else text[: EXCERPT - 3] + "..."
