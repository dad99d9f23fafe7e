"""A private copy of an SQLite schema, against which statements are prepared and scopes are described.

The copy is in memory and has no rows. Nothing that a model writes is run: statements are only compiled (`EXPLAIN`), and
the columns of a FROM clause are read from a query with `LIMIT 0`. An authorizer refuses PRAGMA, which may act while it
is compiled, and ATTACH and DETACH.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from threading import Lock

from ..base.cached_property import cached_property
from ..base.errors import SourceError, describe_value
from .sql_tokens import KEYWORDS

__all__ = ["SqliteSchema"]

WRITING = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
REFUSED = {sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
STEPS = 1_000_000
"""Steps of SQLite's virtual machine after which a description is abandoned."""
REMEMBERED = 10_000
"""Maximum number of cached answers of each kind."""


class SqliteSchema:
    """The tables, views and functions that statements may use.

    Parameters
    ----------
    source : sqlite3.Connection or str
        A database whose schema is copied, or a script of CREATE statements.
    functions : mapping of str to int
        Functions that the application registers, with their number of arguments (-1: any).
    writes : bool
        Whether statements that change data or tables may be prepared.
    """

    def __init__(self, source: sqlite3.Connection | str, functions: Mapping[str, int], writes: bool) -> None:
        script = read_script(source)
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for name, arguments in functions.items():
            self.connection.create_function(name, arguments, lambda *values: None)
        try:
            for statement in script:
                self.connection.execute(statement) if isinstance(source, sqlite3.Connection) else (
                    self.connection.executescript(statement)
                )
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise SourceError(f"the schema is not a script of CREATE statements: {error}") from error
        self.lock, self.writes = Lock(), writes
        self.tables = self.read_names("SELECT name FROM sqlite_master UNION SELECT name FROM sqlite_temp_master")
        self.own_tables = self.tables
        self.tables |= {"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"}
        self.virtual = self.read_names("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")
        self.modules = self.read_names("SELECT name FROM pragma_module_list")
        self.modules |= {f"pragma_{name}" for name in self.read_names("SELECT name FROM pragma_pragma_list")}
        self.functions = self.read_names("SELECT name FROM pragma_function_list")
        self.columns = frozenset().union(
            *(self.describe(f"SELECT * FROM {quote(name)}") or () for name in self.own_tables)
        )
        self.soft_keywords = frozenset(word for word in KEYWORDS if self.is_name(word))
        self.answers: dict[str, str] = {}
        self.described: dict[str, frozenset[str] | None] = {}
        self.connection.set_authorizer(self.authorize)

    def authorize(self, action: int, table: object, *details: object) -> int:
        """Return whether a statement may be prepared that does something.

        SQLite itself reports writes to sqlite_master where a query uses a table-valued function.
        """
        writes = action in WRITING and table not in ("sqlite_master", "sqlite_temp_master")
        refused = action in REFUSED or (writes and not self.writes)
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    def read_names(self, query: str) -> frozenset[str]:
        """Return the first column of a query, in lower case."""
        return frozenset(str(row[0]).lower() for row in self.connection.execute(query))

    def is_name(self, word: str) -> bool:
        """Return whether a keyword may also be the name of a table."""
        try:
            self.connection.execute(f"EXPLAIN SELECT 1 FROM {word}")
        except sqlite3.Error as error:
            return "syntax error" not in str(error)
        return True

    def prepare(self, statement: str) -> str:
        """Return "" if SQLite can prepare a statement, otherwise its message; cached."""
        if statement not in self.answers:
            if len(self.answers) >= REMEMBERED:
                del self.answers[next(iter(self.answers))]
            with self.lock:
                self.answers[statement] = self.compile(statement)
        return self.answers[statement]

    def compile(self, statement: str) -> str:
        """Return what SQLite says when it compiles a statement, "" if nothing."""
        try:
            self.connection.execute(f"EXPLAIN {statement}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            return str(error) or type(error).__name__
        return ""

    def columns_of(self, query: str) -> frozenset[str] | None:
        """Return the names of the columns of a query in lower case, None if it cannot be prepared; cached."""
        if query not in self.described:
            if len(self.described) >= REMEMBERED:
                del self.described[next(iter(self.described))]
            with self.lock:
                self.described[query] = self.describe(f"{query} LIMIT 0")
        return self.described[query]

    def describe(self, query: str) -> frozenset[str] | None:
        """Return the names of the columns of a query in lower case, None if it fails."""
        steps = iter((0,) * (STEPS // 1000))
        self.connection.set_progress_handler(lambda: next(steps, 1), 1000)
        try:
            cursor = self.connection.execute(query)
            return frozenset(str(column[0]).lower() for column in cursor.description or ())
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return None
        finally:
            self.connection.set_progress_handler(None, 0)

    @cached_property
    def table_names(self) -> frozenset[str]:
        """All names that may stand where a table is named, apart from common table expressions."""
        return self.tables | self.modules | {"main", "temp"}


def read_script(source: object) -> list[str]:
    """Return the statements that create a schema."""
    if isinstance(source, str):
        return [source]
    if not isinstance(source, sqlite3.Connection):
        raise TypeError(
            f"schema is {describe_value(source)}: give an sqlite3.Connection or a script of CREATE statements"
        )
    rows = source.execute(
        "SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rootpage = 0, type, rowid"
    ).fetchall()
    virtual = [name for sql, name in rows if str(sql).upper().startswith("CREATE VIRTUAL")]
    shadows = {name for _, name in rows for owner in virtual if str(name).startswith(f"{owner}_")}
    ordered = sorted(rows, key=lambda row: str(row[0]).upper().startswith("CREATE VIEW"))
    return [str(sql) for sql, name in ordered if name not in shadows]


def quote(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'
