"""SQL: queries that SQLite prepares and that return a row; the mask allows any column with any table.

Columns are written before the table that must have them, which is the difficulty of text-to-SQL in a small form.
"""

from __future__ import annotations

import random
import re
import sqlite3

import constrain

from ...counted_models import CachedModel
from .tasks import Task, train_ngram

__all__ = ["DATABASES", "Database", "build_query_tasks"]

DATABASES: dict[str, dict[str, tuple[str, list[tuple[object, ...]]]]] = {
    "places": {
        "city": ("name, people, river", [("Paris", 21, "Seine"), ("Rome", 28, "Tiber"), ("Oslo", 7, None)]),
        "river": ("name, length", [("Seine", 77), ("Tiber", 40)]),
    },
    "shop": {
        "item": ("id, title, price", [(1, "lamp", 40), (2, "chair", 25)]),
        "sale": ("item, day, count", [(1, 3, 2), (2, 3, 1), (2, 5, 4)]),
        "customer": ("name, age", [("Ada", 36), ("Bob", 25)]),
    },
    "school": {
        "pupil": ("name, age, class", [("Ida", 9, 3), ("Max", 10, 4)]),
        "class": ("id, room, teacher", [(3, 12, "Ray"), (4, 14, "Kim")]),
    },
    "club": {
        "member": ("name, since, team", [("Eve", 19, "red"), ("Jon", 21, "blue")]),
        "team": ("colour, points", [("red", 12), ("blue", 9)]),
        "match": ("home, away, goals", [("red", "blue", 3)]),
    },
}  # fmt: skip
"""Tables by name: their columns, and rows."""
MAX_INSTRUCTIONS = 10_000
"""Maximum number of instructions of SQLite's virtual machine for a query."""


class Database:
    """A SQLite database in memory, for SELECT statements."""

    def __init__(self, tables: dict[str, tuple[str, list[tuple[object, ...]]]]) -> None:
        self.tables = tables
        self.connection = sqlite3.connect(":memory:")
        for name, (columns, rows) in tables.items():
            self.connection.execute(f'CREATE TABLE "{name}" ({columns})')
            marks = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        self.connection.set_progress_handler(lambda: 1, MAX_INSTRUCTIONS)

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return sorted({column for columns, _ in self.tables.values() for column in columns.split(", ")})

    def build_pattern(self) -> str:
        """Return the regular expression of the subset of SQL: any column with any table."""
        column, table = f"({'|'.join(self.columns)})", f"({'|'.join(self.tables)})"
        value = r"(\d{1,2}|'[A-Za-z]{1,6}')"
        return f"SELECT {column}(, {column})? FROM {table}( WHERE {column} (=|<|>) {value})?"

    def finds_row(self, query: bytes) -> bool:
        """Return whether SQLite runs a query and it returns a row."""
        try:
            return self.connection.execute(query.decode()).fetchone() is not None
        except (sqlite3.Error, UnicodeDecodeError):
            return False

    def is_viable(self, prefix: bytes) -> bool:
        """Return whether SQLite prepares the part of a query that is written, once the table (and the column of the
        condition) is named.
        """
        text = prefix.decode(errors="replace")
        named = re.match(r"(SELECT .*? FROM \w+) (WHERE (\w+) )?", text)
        if named is None:
            return True
        condition = f" WHERE {named[3]} = 1" if named[3] else ""
        try:
            self.connection.execute("EXPLAIN " + named[1] + condition)
        except sqlite3.Error:
            return False
        return True


def draw_queries(database: Database, count: int, seed: int) -> list[str]:
    """Draw valid queries to train a model on."""
    chance, out = random.Random(seed), list[str]()
    while len(out) < count:
        table = chance.choice(list(database.tables))
        names, rows = database.tables[table]
        columns = names.split(", ")
        chosen = ", ".join(chance.sample(columns, chance.choice([1, 1, 2])))
        query = f"SELECT {chosen} FROM {table}"
        if chance.random() < 0.6:
            at = chance.randrange(len(columns))
            value = chance.choice(rows)[at]
            if value is None:
                continue
            written = f"'{value}'" if isinstance(value, str) else str(value)
            query += f" WHERE {columns[at]} {chance.choice('=<>') if not isinstance(value, str) else '='} {written}"
        out.append(query)
    return out


def build_query_tasks(count: int) -> list[Task]:
    """Build a task for each database, with a byte-level model trained on 300 queries of each."""
    made = {name: Database(tables) for name, tables in DATABASES.items()}
    read = [text for i, database in enumerate(made.values()) for text in draw_queries(database, 300, i)]
    ngram, vocabulary = train_ngram(read, order=4)
    return [
        Task("SQL", name, CachedModel(ngram), constrain.compile(vocabulary=vocabulary, regex=database.build_pattern()),
             64, accepts=database.finds_row, viable=database.is_viable)
        for name, database in list(made.items())[:count]
    ]  # fmt: skip
