"""The lexer of SQLite, for the beginning of a statement.

The last token of a prefix is usually not *finished*: `sel` may become `select`, `<` may become `<=`, and `'a'` may
become `'a''b'`. What is finished, SQLite reads in the same way whatever follows. Source: tokenize.c of SQLite.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["KEYWORDS", "RESERVED", "SqlToken", "split_sql", "unquote_name"]

KEYWORDS = frozenset(
    "ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY "
    "CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE "
    "CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH "
    "ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL "
    "GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD "
    "INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL "
    "NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE "
    "RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS "
    "SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE "
    "USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHIN WITHOUT".split()
)
"""All keywords of SQLite 3; most of them are also names where no keyword can stand."""

RESERVED = frozenset(
    "ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CHECK COLLATE COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE "
    "DELETE DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM GROUP HAVING IN INDEX INSERT INTERSECT INTO IS "
    "ISNULL JOIN LIMIT NOT NOTHING NOTNULL NULL ON OR ORDER PRIMARY REFERENCES RETURNING SELECT SET TABLE THEN TO "
    "TRANSACTION UNION UNIQUE UPDATE USING VALUES WHEN WHERE".split()
)
"""The keywords that are never names."""

PATTERN = re.compile(
    r"""(?P<space>[ \t\n\f\r]+)
    |(?P<comment>--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))
    |(?P<blob>[xX]'[^']*(?:'|$))
    |(?P<string>'(?:[^']|'')*(?:'|$))
    |(?P<quoted>"(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$))
    |(?P<number>(?:0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?)(?:[\w$\x80-\U0010ffff]+)?)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)
    |(?P<variable>[?:@$\#][\w$\x80-\U0010ffff:]*)
    |(?P<operator>->>|->|\|\||<<|>>|<=|>=|<>|!=|==|[-()+*/%&|~<>=,;.])
    |(?P<illegal>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
NUMBER = re.compile(r"0[xX][0-9a-fA-F_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?")
ENDED = frozenset("( ) , ; + * % & ~ || << >> <= >= <> != == ->>".split())
"""Operators that no further character extends."""


class SqlToken(NamedTuple):
    """A token with its place. kind: a group of PATTERN. finished: whether no continuation of the text changes it."""

    kind: str
    text: str
    start: int
    end: int
    finished: bool

    @property
    def keyword(self) -> str:
        """The token in upper case if it is an unquoted word, or an operator; else ""."""
        return self.text.upper() if self.kind in ("word", "operator") else ""


def split_sql(text: str) -> list[SqlToken]:
    """Return the tokens of the beginning of a statement, without white space and comments."""
    found = []
    for match in PATTERN.finditer(text):
        kind, piece = str(match.lastgroup), match[0]
        if kind in ("space", "comment"):
            continue
        if kind == "number" and not NUMBER.fullmatch(piece):
            kind = "illegal"
        finished = match.end() < len(text) or piece in ENDED or (kind == "quoted" and piece[-1] == "]" and piece != "]")
        found.append(SqlToken(kind, piece, match.start(), match.end(), finished))
    return found


def unquote_name(token: SqlToken) -> str:
    """Return the name that a word, quoted name or string stands for, as far as it is written."""
    text = token.text
    if token.kind == "word":
        return text
    opening, closing = text[0], {"[": "]"}.get(text[0], text[0])
    inner = text[1:-1] if len(text) > 1 and text[-1] == closing else text[1:]
    return inner if opening == "[" else inner.replace(closing * 2, closing)
