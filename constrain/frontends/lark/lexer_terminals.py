"""Determine the terminals that each lexer of lark tries, and their order, and build the scanner of all lexers.

As in lark's lexers, terminals are tried by priority, then by the maximal length of their matches, the length of their
pattern, and their name. A string that a pattern of equal priority in the same list also matches is *embedded*: it is
not tried, but renames matches of the pattern. The contextual lexer has one list for each set of terminals that a
parser state accepts, so a keyword is reserved only where both it and the name are acceptable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...automata.thread_steps import TerminalPrograms
from ...base.errors import ConstrainError, GrammarError
from ...base.options import Limits
from ...base.work import spend_work
from ...lalr.scanner import TerminalList, build_scanner
from ...lalr.scanner_tables import END_OF_TEXT, Scanner
from ..regex import parse_pattern
from ..regex.ordered_program import write_ordered
from .lark_loader import FLAGS, LoadedGrammar, LoadedTerminal

__all__ = ["LexerTables", "build_alone", "build_lexers"]

MOST_BACKTRACKED = 16
"""Longest keyword, in characters, that is matched against a pattern with `re`."""
GLOBAL_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")


@dataclass(frozen=True, slots=True, eq=False)
class LexerTables:
    """The lexers of a grammar.

    Attributes
    ----------
    scanner : Scanner
        The scanner of all lexers. Its terminals are those of the grammar, then those of `fed`.
    starts : ndarray of int32, shape (lexers,)
        The start state of each requested lexer; -1 if it never matches.
    fed : tuple of int
        Ignored terminals that nevertheless reach the parser where a keyword renames a pattern to them: terminal
        len(terminals) + i of the scanner is fed[i], and is not ignored.
    """

    scanner: Scanner
    starts: NDArray[np.int32]
    fed: tuple[int, ...]


def build_lexers(
    loaded: LoadedGrammar,
    accepts: Sequence[Iterable[int]] | None = None,
    *,
    always: Iterable[int] = (),
    limits: Limits = Limits(),
) -> LexerTables:
    """Build the basic lexer, or a contextual lexer for each set of terminals.

    Parameters
    ----------
    loaded : LoadedGrammar
    accepts : sequence of iterables of int, optional
        For each lexer the terminals that it must match; numbers without a terminal that has a text are skipped. By
        default the basic lexer is built.
    always : iterable of int
        Terminals that a post-lexer needs in every lexer. Ignored terminals are in every lexer as well.
    limits : Limits

    Returns
    -------
    LexerTables

    Raises
    ------
    GrammarError, UnsupportedError, LimitError
        With the name and position of the terminal.
    """
    terminal_lists = _TerminalLists(loaded, limits)
    everything = range(len(loaded.terminals))
    common = {*loaded.ignored, *always}
    requested = [frozenset(everything)] if accepts is None else [frozenset(common.union(accept)) for accept in accepts]
    lists = {item: terminal_lists.make_list(item) for item in dict.fromkeys(requested)}
    numbers = {item: number for number, item in enumerate(dict.fromkeys(lists.values()))}
    scanner = build_scanner(terminal_lists.programs(limits), list(numbers), max_states=limits.dfa_states)
    starts = np.array([scanner.starts[numbers[lists[item]]] for item in requested], dtype=np.int32)
    return LexerTables(scanner, starts, tuple(terminal_lists.fed))


class _TerminalLists:
    def __init__(self, loaded: LoadedGrammar, limits: Limits) -> None:
        self.loaded = loaded
        self.limits = limits
        self.terminals = loaded.terminals
        self.order = sorted(
            (t for t, terminal in enumerate(self.terminals) if terminal.kind != "declared"),
            key=lambda t: _rank(self.terminals[t]),
        )
        self.embedding: dict[int, list[int]] = {t: [] for t in self.order}  # string -> patterns that match it
        self.tried_strings: set[tuple[int, int]] = set()  # Pairs (string, pattern) whose string is tried nevertheless.
        self.renames: list[dict[int, int]] = [{} for _ in self.terminals]
        self.fed: list[int] = []
        self._alone: dict[int, tuple[Scanner, int]] = {}
        self._embed()

    def _embed(self) -> None:
        """Determine which strings are keywords of which patterns."""
        terminals, ignored = self.terminals, set(self.loaded.ignored)
        flags = sum(FLAGS[flag] for flag in self.loaded.flags)
        strings = [t for t in self.order if terminals[t].kind == "text"]
        tags: dict[int, int] = {}
        spend_work(len(strings) * (len(self.order) - len(strings)), "the keywords among the terminals")
        for pattern in (t for t in self.order if terminals[t].kind == "pattern"):
            match = re.compile(terminals[pattern].regexp(), flags).match
            for string in strings:
                if terminals[string].priority != terminals[pattern].priority:
                    continue
                if not self._matches_completely(pattern, match, terminals[string].text):
                    continue
                self.embedding[string].append(pattern)
                if not set(terminals[string].flags) <= set(terminals[pattern].flags):
                    self.tried_strings.add((string, pattern))
                if pattern not in ignored:  # Otherwise the match is ignored before it is renamed.
                    if string in ignored and string not in tags:
                        tags[string] = len(terminals) + len(self.fed)
                        self.fed.append(string)
                    self.renames[pattern][string] = tags.get(string, string)

    def _matches_completely(self, t: int, match: Callable[[str], re.Match[str] | None], text: str) -> bool:
        """Return whether a pattern's preferred match on a text is all of it.

        Short texts are matched with `re`, which may take exponential time; longer ones are run through the scanner.
        """
        if len(text) <= MOST_BACKTRACKED:
            matched = match(text)
            return matched is not None and matched[0] == text
        if t not in self._alone:
            self._alone[t] = build_alone(self.loaded, t, self.limits)
        scanner, state = self._alone[t]
        for byte in text.encode(errors="surrogatepass"):
            state = int(scanner.delta[state, byte]) if state >= 0 else -1
        return state >= 0 and bool(scanner.accept_table[scanner.accept[state], END_OF_TEXT] >= 0)

    def make_list(self, accepted: frozenset[int]) -> TerminalList:
        """Return the list of a lexer with these terminals."""
        tried, keywords = [], []
        for t in self.order:
            if t not in accepted:
                continue
            patterns = [pattern for pattern in self.embedding[t] if pattern in accepted]
            if any(t in self.renames[pattern] for pattern in patterns):
                keywords.append(t)
            if all((t, pattern) in self.tried_strings for pattern in patterns):
                tried.append(t)
        return TerminalList(tuple(tried), tuple(keywords))

    def programs(self, limits: Limits) -> TerminalPrograms:
        """Return the programs of all terminals that have a text."""
        terminals = self.terminals
        programs = TerminalPrograms(
            names=[_display_name(terminal) for terminal in terminals] + [_display_name(terminals[t]) for t in self.fed],
            source=self._source,
            starts=[-1] * len(terminals),
            keywords=[-1] * len(terminals),
            renames=self.renames,
        )
        renaming = {string for strings in self.renames for string in strings}
        for t in self.order:
            programs.starts[t] = self._write_program(t, programs, t, limits)
            if t in renaming:
                programs.keywords[t] = self._write_program(t, programs, ~t, limits)
        return programs

    def _write_program(self, t: int, programs: TerminalPrograms, owner: int, limits: Limits) -> int:
        """Append the program of a terminal; return its address."""
        terminal, code = self.terminals[t], programs.code
        pattern = terminal.regexp()
        if GLOBAL_FLAGS.match(pattern):
            raise self._locate_error(
                t, GrammarError("a pattern cannot contain flags that apply to all of it", hint=GLOBALLY)
            )
        try:
            tree = parse_pattern(
                pattern, dialect="python", flags=self.loaded.flags, nesting=limits.nesting, ordered=True
            )
            start = write_ordered(tree, code, programs.utf8, terminal=t, max_steps=limits.dfa_states)
        except ConstrainError as error:
            raise self._locate_error(t, error) from None
        programs.owners += [owner] * (len(code) - start)
        return start

    def _locate_error(self, t: int, error: ConstrainError) -> ConstrainError:
        """Return the error with the name and the position of its terminal."""
        source, position = self._source(t)
        cause = f"terminal {_display_name(self.terminals[t])}: {error.cause}"
        return type(error)(cause, source=source, position=position, hint=error.hint)

    def _source(self, t: int) -> tuple[str, int]:
        """Return a text and the offset of the terminal in it."""
        terminal = self.terminals[t]
        return (terminal.text, 0) if terminal.position is None else (self.loaded.text, terminal.position)


def build_alone(loaded: LoadedGrammar, t: int, limits: Limits) -> tuple[Scanner, int]:
    """Return the scanner of one terminal, and its start state, -1 if it never matches."""
    only = replace(loaded, terminals=(loaded.terminals[t],), ignored=())
    programs = _TerminalLists(only, limits).programs(limits)
    scanner = build_scanner(programs, [TerminalList((0,))], max_states=limits.dfa_states)
    return scanner, int(scanner.starts[0])


GLOBALLY = "Write /pattern/i, or (?i:...) around a part."


def _rank(terminal: LoadedTerminal) -> tuple[int, int, int, str]:
    """Return lark's sort key of a terminal."""
    return -terminal.priority, -terminal.most, -len(terminal.text), terminal.name


def _display_name(terminal: LoadedTerminal) -> str:
    """Return a name for messages: the text of a terminal that lark named itself."""
    return terminal.text if terminal.name.startswith("__") else terminal.name
