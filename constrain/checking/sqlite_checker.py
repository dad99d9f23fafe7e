"""SqliteChecker: a query of which every prefix can be continued, and which SQLite prepares at its end.

Scholak, Schucher and Bahdanau (2021, PICARD: Parsing Incrementally for Constrained Auto-Regressive Decoding from
Language Models) check three things of a prefix: its tokens, its syntax, and the names that it uses. Here SQLite itself
does, on a private copy of the schema (`SqliteSchema`), and only what it says of *finished* tokens counts:

syntax    SQLite's parser is LALR(1): it reports `near "x": syntax error` at the first token x that no continuation
          allows, and "incomplete input" where the text merely stops. The last token is replaced by each token that it
          may become.
tables    A name after FROM or JOIN, as far as it is written, begins the name of a table, a view, a table-valued
          function or a common table expression of the text.
columns   After the FROM clause, the text up to each token must be free of errors about names; and the last name, as far
          as it is written, begins the name of a column, an alias or a function.

Before the FROM clause nothing can be said about columns: `SELECT x` continues with `FROM (SELECT 1 AS x)`. With
`columns="schema"`, the language is restricted so that it can: a column is one of the schema, or an alias that was
written before, and an alias of a table, which is used before it is written, is T1, T2, ..., as in the Spider data set.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Literal

from ..base.errors import ArgumentError, check_choice, check_type
from .sql_names import NameCheck
from .sql_scopes import QueryScopes, scan_scopes
from .sql_tokens import KEYWORDS, SqlToken, split_sql
from .sqlite_schema import SqliteSchema
from .verdicts import Verdict, is_encodable

__all__ = ["SqliteChecker"]

QUERIES = ("SELECT", "WITH", "VALUES")
SYNTAX = re.compile(r'near ".*": syntax error|unrecognized token:.*', re.DOTALL)
FINAL = re.compile(
    r"no such (column|table|function):|ambiguous column name:|wrong number of arguments to function|"
    r"SELECTs to the left and right of|unknown join type:|misuse of aggregate"
)
"""Errors that remain whatever follows, once the FROM clause and the next token are known."""
CLOSING = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT"}
"""Keywords after which a FROM clause, or a query without one, is closed."""
NAME = "zz_name"
"""A name that stands for any name."""
OPERATORS = "-> ->> || << >> <= >= <> != == - < > = | /".split()
PARTIAL_NUMBER = re.compile(r"(0[xX][0-9a-fA-F_]*|([0-9][0-9_]*)?\.?[0-9_]*([eE][+-]?[0-9_]*)?)", re.ASCII)
EXPONENT = re.compile(r"(?:^|[^\w$.])((?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][+-]?)$", re.ASCII)


class SqliteChecker:
    """A TextChecker of SQL queries in the dialect of SQLite.

    A text is complete if SQLite can prepare it on this schema, as one statement without parameters; it need not end
    with a semicolon. Statements are never run, and the database is only read when the checker is made.

    Parameters
    ----------
    schema : sqlite3.Connection or str
        A database, or a script of CREATE statements.
    statements : {"queries", "any"}
        "queries": SELECT, WITH and VALUES. "any": also statements that change data or tables, of which only the syntax
        is checked before they are complete. PRAGMA, ATTACH and DETACH are always refused.
    columns : {"any", "schema"}
        "any": whatever SQLite prepares. "schema": only queries each of whose columns is one of the schema, or an alias
        that stands before, and whose aliases of tables are T1, T2, ...; then an unknown name is dead at once, also
        before the FROM clause.
    functions : mapping of str to int, optional
        Functions that the application registers, with their number of arguments (-1: any).

    Raises
    ------
    SourceError
        If the script is not SQL.
    TypeError, ArgumentError
        For arguments of the wrong type, or another value.
    """

    def __init__(
        self,
        schema: sqlite3.Connection | str,
        *,
        statements: Literal["queries", "any"] = "queries",
        columns: Literal["any", "schema"] = "any",
        functions: Mapping[str, int] | None = None,
    ) -> None:
        check_choice("statements", statements, ("queries", "any"))
        check_choice("columns", columns, ("any", "schema"))
        check_type("functions", functions, (Mapping, type(None)), "give the number of arguments of each name")
        if functions and not all(isinstance(k, str) and isinstance(v, int) for k, v in functions.items()):
            raise ArgumentError("functions maps names to numbers of arguments, such as {'slug': 1}")
        self.schema = SqliteSchema(schema, functions or {}, statements == "any")
        self.statements, self.columns = statements, columns
        self.names = NameCheck(self.schema, columns == "schema")

    def check(self, text: str) -> Verdict:
        """Return the verdict on the beginning of a statement."""
        if "\0" in text or not is_encodable(text):
            return Verdict.DEAD
        tokens = split_sql(text)
        ended = next((k for k, token in enumerate(tokens) if token.text == ";"), len(tokens))
        if ended < len(tokens) - 1 or any(t.kind == "variable" for t in tokens) or not self.may_begin(tokens):
            return Verdict.DEAD
        if tokens and tokens[0].text != ";" and not self.schema.prepare(text):
            return self.judge_complete(tokens)
        return Verdict.OK if self.is_viable(text, tokens) else Verdict.DEAD

    def judge_complete(self, tokens: list[SqlToken]) -> Verdict:
        """Return the verdict on a text that SQLite prepares."""
        words = tokens[:1]
        if self.statements == "queries" and words and words[0].keyword not in QUERIES:
            return Verdict.OK  # a word that may become one of these
        if self.columns == "schema" and not self.names.are_known(tokens, scan_scopes(tokens)):
            return Verdict.OK if not tokens[-1].finished else Verdict.DEAD
        return Verdict.COMPLETE

    def may_begin(self, tokens: list[SqlToken]) -> bool:
        """Return whether the first token may begin a statement of the kinds that are allowed."""
        if not tokens or self.statements == "any":
            return True
        word, finished = tokens[0].keyword, tokens[0].finished
        return any(word == first or (not finished and first.startswith(word)) for first in QUERIES) and word != ""

    def is_viable(self, text: str, tokens: list[SqlToken]) -> bool:
        """Return whether a statement may begin with a text that is not one itself."""
        done = tokens if not tokens or tokens[-1].finished else tokens[:-1]
        exponent = EXPONENT.search(text)
        if exponent is not None:  # 1e, 1e+: the lexer sees a number only when a digit follows
            done = [token for token in tokens if token.end <= exponent.start(1)]
        if any(token.kind == "illegal" for token in done) or not self.is_syntax(text, done, ""):
            return False
        scopes = scan_scopes(done) if is_query(tokens) else None
        more = text[tokens[-1].start :] if tokens and len(done) < len(tokens) else None
        if scopes is not None and not self.names_are_viable(text, done, scopes, more):
            return False
        if exponent is not None:
            return self.is_syntax(text, done, "1")
        return len(done) == len(tokens) or self.may_become(text, done, tokens[-1], scopes)

    def names_are_viable(self, text: str, done: list[SqlToken], scopes: QueryScopes, more: str | None = None) -> bool:
        """Return whether the finished names can be resolved, and the statement only reads if it has to."""
        if scopes.writes and self.statements == "queries":
            return False
        if not self.names.are_known(done, scopes, more):
            return False
        return not any(FINAL.match(self.schema.prepare(text[: done[cut].start])) for cut in scopes.cuts)

    def is_syntax(self, text: str, done: list[SqlToken], more: str) -> bool:
        """Return whether finished tokens, followed by a further token, may begin a statement."""
        head = text[: done[-1].end] if done else ""
        if more:
            head = f"{head} {more} "
            done = split_sql(head)
        return any(not SYNTAX.match(self.schema.prepare(f"{reading} ")) for reading in list_readings(head, done))

    def may_become(self, text: str, done: list[SqlToken], last: SqlToken, scopes: QueryScopes | None) -> bool:
        """Return whether the last, unfinished token may become one that continues the statement."""
        if last.kind == "word":
            return self.may_become_word(text, done, last, scopes)
        if last.text in ("-", "/"):
            return True  # a comment may follow
        if last.kind == "operator":
            candidates: Iterable[str] = [one for one in OPERATORS if one.startswith(last.text)]
            if last.text == ".":
                candidates = [".", ".5"] if self.may_own(text, scopes) else [".5"]
        elif last.kind in ("number", "illegal"):
            if last.text == "!":
                candidates = ["!="]
            else:
                candidates = ["1"] if last.text[0] in ".0123456789" and PARTIAL_NUMBER.fullmatch(last.text) else []
        elif last.kind == "quoted":
            if scopes is not None and not self.names.may_be_name(done, scopes, last):
                return False
            candidates = ['"zz_name"']
        else:
            candidates = ["''"] if last.kind == "string" else ["x''"]
            if scopes is not None and last.kind == "string" and scopes.next.role == "table":
                return self.names.may_be_name(done, scopes, last)
        return any(self.is_syntax(text, done, one) for one in candidates)

    def may_become_word(self, text: str, done: list[SqlToken], last: SqlToken, scopes: QueryScopes | None) -> bool:
        """Return whether an unfinished word may become a name or a keyword here."""
        upper = last.text.upper()
        is_operand = self.is_syntax(text, done, f"{last.text}_zz_name")
        if is_operand and (scopes is None or self.names.may_be_name(done, scopes, last)):
            return True
        if upper == "X" and self.is_syntax(text, done, "x''"):
            return True
        keywords = [word for word in KEYWORDS if word.startswith(upper)]
        if scopes is not None and is_operand:
            keywords = [word for word in keywords if self.names.may_be_keyword(word, scopes)]
        return any(self.is_syntax(text, done, word) and self.may_close(text, done, word, scopes) for word in keywords)

    def may_own(self, text: str, scopes: QueryScopes | None) -> bool:
        """Return whether the name before a period at the end may have members."""
        tokens = split_sql(f"{text} ")
        return scopes is None or self.names.are_known(tokens, scan_scopes(tokens))

    def may_close(self, text: str, done: list[SqlToken], word: str, scopes: QueryScopes | None) -> bool:
        """Return whether a keyword leaves no name unresolved, if it closes a FROM clause."""
        if scopes is None or word not in CLOSING or not done:
            return True
        closed = f"{text[: done[-1].end]} {word} "
        tokens = split_sql(closed)
        return self.names_are_viable(closed, tokens, scan_scopes(tokens))


def list_readings(text: str, tokens: list[SqlToken]) -> list[str]:
    """Return the beginnings of a statement that SQLite may read a text as, depending on what follows.

    OVER and FILTER are keywords between two parentheses, and names otherwise; WINDOW is a keyword before a name and AS.
    """
    last = tokens[-1].keyword if tokens else ""
    before = tokens[-2].keyword if len(tokens) > 1 else ""
    if last == "WINDOW":
        return [f"{text[: tokens[-1].start]}{NAME}", f"{text} {NAME} AS"]
    if before == "WINDOW":
        return [f"{text[: tokens[-2].start]}{NAME} {tokens[-1].text}", f"{text} AS"]
    if last in ("OVER", "FILTER") and before == ")":
        return [f"{text[: tokens[-1].start]}{NAME}", f"{text} ("]
    return [text]


def is_query(tokens: list[SqlToken]) -> bool:
    """Return whether the first token says that a statement is a query."""
    return bool(tokens) and tokens[0].finished and tokens[0].keyword in QUERIES
