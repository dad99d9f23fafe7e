"""SQL: queries that SQLite itself prepares and that find something, behind a mask that knows names but not tables.

The columns come before the table that must have them: the trap of text-to-SQL, in the small.
"""

from __future__ import annotations

import random
import re
import sqlite3

import constrain

from ..fixtures import Counted
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
STEPS = 10_000
"""SQLite's virtual machine instructions after which a query is given up."""


class Database:
    """In memory, asked for nothing but SELECT."""

    def __init__(self, tables: dict[str, tuple[str, list[tuple[object, ...]]]]) -> None:
        self.tables = tables
        self.connection = sqlite3.connect(":memory:")
        for name, (columns, rows) in tables.items():
            self.connection.execute(f'CREATE TABLE "{name}" ({columns})')
            marks = ", ".join("?" * len(rows[0]))
            self.connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        self.connection.set_progress_handler(lambda: 1, STEPS)

    @property
    def columns(self) -> list[str]:
        return sorted({column for columns, _ in self.tables.values() for column in columns.split(", ")})

    def pattern(self) -> str:
        """Return the pattern of the subset of SQL: any column with any table."""
        column, table = f"({'|'.join(self.columns)})", f"({'|'.join(self.tables)})"
        value = r"(\d{1,2}|'[A-Za-z]{1,6}')"
        return f"SELECT {column}(, {column})? FROM {table}( WHERE {column} (=|<|>) {value})?"

    def finds(self, query: bytes) -> bool:
        """Return whether SQLite prepares and runs it, and a row comes out."""
        try:
            return self.connection.execute(query.decode()).fetchone() is not None
        except (sqlite3.Error, UnicodeDecodeError):
            return False

    def viable(self, beginning: bytes) -> bool:
        """Whether SQLite prepares what is there of a query once its table, and its condition's column, are named."""
        text = beginning.decode(errors="replace")
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
    """Right queries as one would write them: for a model to read."""
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
    """One task for each database: a model over bytes that has read 300 queries of all of them."""
    made = {name: Database(tables) for name, tables in DATABASES.items()}
    read = [text for i, database in enumerate(made.values()) for text in draw_queries(database, 300, i)]
    ngram, vocabulary = train_ngram(read, order=4)
    return [
        Task("SQL", name, Counted(ngram), constrain.compile(vocabulary=vocabulary, regex=database.pattern()),
             64, accepts=database.finds, viable=database.viable)
        for name, database in list(made.items())[:count]
    ]  # fmt: skip
