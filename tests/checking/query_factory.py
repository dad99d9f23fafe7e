"""Random valid queries over a small schema: made with names that are in scope, and kept if SQLite prepares them."""

from __future__ import annotations

import sqlite3
from random import Random

__all__ = ["SCHEMA", "is_prepared", "random_queries"]

SCHEMA = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT, "home town" TEXT);
CREATE TABLE concert (concert_id INT, singer_id INT, year INT, title TEXT);
CREATE TABLE [order] (key INT, "select" TEXT, singer_id INT);
CREATE VIEW star AS SELECT name AS star_name, age FROM singer WHERE age > 30;
"""
TABLES = {
    "singer": ["id", "name", "age", '"home town"', "rowid"],
    "concert": ["concert_id", "singer_id", "year", "title"],
    "[order]": ["key", '"select"', "singer_id"],
    "star": ["star_name", "age"],
}


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection


def is_prepared(connection: sqlite3.Connection, query: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {query}").close()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    return True


Scope = list[tuple[str, list[str]]]
"""The sources in scope: their names and columns."""


class QueryMaker:
    """Draws queries; columns of outer scopes are used in subqueries."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ctes: Scope = []
        self.fresh = 0

    def name(self) -> str:
        self.fresh += 1
        return (
            self.rng.choice(["x", "T", "sel", "wher", "alias", "grp", "`b t`", '"q q"', "é"]).replace(
                "x", f"x{self.fresh}"
            )
            if self.rng.random() < 0.5
            else f"a{self.fresh}"
        )

    def query(self, depth: int, outer: Scope) -> tuple[str, list[str]]:
        """A query and its columns."""
        rng, text = self.rng, ""
        before = list(self.ctes)
        if depth and rng.random() < 0.2:
            parts = []
            for _ in range(rng.randint(1, 2)):
                name = self.name()
                inner, columns = self.query(depth - 1, [])
                if rng.random() < 0.4:
                    columns = [f"c{k}" for k in range(len(columns))]
                    parts.append(f"{name}({', '.join(columns)}) AS ({inner})")
                else:
                    parts.append(f"{name} AS ({inner})")
                self.ctes.append((name, columns))
            text = f"WITH {rng.choice(['', 'RECURSIVE '])}{', '.join(parts)} "
        core, columns, scope = self.core(depth, outer)
        text += core
        if rng.random() < 0.15:
            other = ", ".join(["1"] * len(columns))
            text += f" {rng.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} SELECT {other}"
            if rng.random() < 0.5:
                text += f" ORDER BY {rng.choice(columns)}"
        elif rng.random() < 0.3:
            direction = rng.choice(["", " DESC", " COLLATE nocase", " ASC NULLS LAST"])
            text += f" ORDER BY {self.expression(depth, scope)}{direction}"
        if rng.random() < 0.2:
            text += f" LIMIT {rng.randint(1, 9)}{rng.choice(['', ' OFFSET 2', ', 3'])}"
        self.ctes = before
        return text, columns

    def core(self, depth: int, outer: Scope) -> tuple[str, list[str], Scope]:
        rng = self.rng
        clause, own = self.sources(depth) if rng.random() < 0.92 else ("", [])
        scope = own + outer
        items, columns = [], []
        for _ in range(rng.randint(1, 3)):
            alias = self.name() if rng.random() < 0.4 else ""
            expression = self.expression(depth, scope)
            items.append(f"{expression}{rng.choice([' AS ', ' ']) if alias else ''}{alias}")
            columns.append(alias or (expression if expression.isidentifier() else "1"))
        if own and rng.random() < 0.1:
            items, columns = ["*"], [own[0][1][0]]
        text = f"SELECT {rng.choice(['', '', 'DISTINCT ', 'ALL '])}{', '.join(items)}"
        text += f" FROM {clause}" if clause else ""
        if rng.random() < 0.5:
            text += f" WHERE {self.condition(depth, scope)}"
        if rng.random() < 0.25:
            text += f" GROUP BY {self.expression(0, scope)}"
            if rng.random() < 0.5:
                text += f" HAVING count(*) > 1 AND {self.condition(0, scope)}"
        return text, columns, scope

    def sources(self, depth: int) -> tuple[str, Scope]:
        rng, scope, text = self.rng, list[tuple[str, list[str]]](), ""
        for number in range(rng.randint(1, 2 if depth else 1)):
            kind = rng.random()
            if depth and kind < 0.2:
                inner, columns = self.query(depth - 1, [])
                alias = self.name()
                piece = f"({inner}) {rng.choice(['AS ', ''])}{alias}"
            elif self.ctes and kind < 0.5:
                name, columns = rng.choice(self.ctes)
                alias, piece = name, name
            elif kind < 0.55:
                alias, piece, columns = "json_each", "json_each('[1,2]')", ["value", "key", "json"]
            else:
                table = rng.choice(list(TABLES))
                columns = TABLES[table]
                alias = self.name() if rng.random() < 0.5 else ""
                piece = f"{rng.choice(['', '', 'main.'])}{table}{rng.choice([' AS ', ' ']) if alias else ''}{alias}"
                alias = alias or table
            scope.append((alias, columns))
            if number:
                join = rng.choice([", ", " JOIN ", " LEFT JOIN ", " CROSS JOIN ", " NATURAL JOIN "])
                text += join + piece
                if join in (" JOIN ", " LEFT JOIN ") and rng.random() < 0.7:
                    text += f" ON {self.column(scope)} = {self.column(scope)}"
            else:
                text = piece
        return text, scope

    def column(self, scope: Scope) -> str:
        if not scope or self.rng.random() < 0.1:
            return self.rng.choice(["1", "'it''s'", "2.5e3", "NULL", "x'ab'", ".5", "current_date"])
        alias, columns = self.rng.choice(scope)
        column = self.rng.choice(columns)
        return f"{alias}.{column}" if self.rng.random() < 0.6 else column

    def expression(self, depth: int, scope: Scope) -> str:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.55:
            return self.column(scope)
        if kind < 0.65:
            return f"{rng.choice(['max', 'Lower', 'count', 'abs', 'length'])}({self.column(scope)})"
        if kind < 0.7:
            return f"sum({self.column(scope)}) OVER (PARTITION BY {self.column(scope)} ORDER BY {self.column(scope)})"
        if kind < 0.75:
            return f"CASE WHEN {self.condition(0, scope)} THEN {self.column(scope)} ELSE {self.column(scope)} END"
        if kind < 0.8:
            return f"CAST({self.column(scope)} AS {rng.choice(['int', 'unsigned big int', 'varchar(10)'])})"
        if kind < 0.88 and depth:
            return f"({self.query(depth - 1, scope)[0]})"
        return f"{self.column(scope)} {rng.choice(['+', '-', '||', '->>', '<<', '/'])} {self.column(scope)}"

    def condition(self, depth: int, scope: Scope) -> str:
        rng, kind = self.rng, self.rng.random()
        left = self.expression(0, scope)
        if kind < 0.4:
            operator = rng.choice(["=", "<", ">=", "<>", "!=", "IS", "IS NOT", "LIKE", "IS DISTINCT FROM"])
            return f"{left} {operator} {self.column(scope)}"
        if kind < 0.5:
            return f"{left} BETWEEN {self.column(scope)} AND {self.column(scope)}"
        if kind < 0.6:
            return f"{left} NOT IN ({self.column(scope)}, 1)"
        if kind < 0.7 and depth:
            return f"{rng.choice(['', 'NOT '])}EXISTS ({self.query(depth - 1, scope)[0]})"
        if kind < 0.75:
            return f"{left} IN singer" if rng.random() < 0.2 else f"{left} NOTNULL"
        if kind < 0.9:
            return f"({self.condition(0, scope)} {rng.choice(['AND', 'OR'])} {self.condition(0, scope)})"
        return f"NOT {left}"


def random_queries(seed: int, count: int, depth: int = 2) -> list[str]:
    """Different queries that SQLite prepares, in various white space and case."""
    connection, rng, found = connect(), Random(seed), list[str]()
    while len(found) < count:
        text = QueryMaker(rng).query(rng.randint(0, depth), [])[0]
        if rng.random() < 0.1:
            text = text.replace(" ", "\n", 2).replace("SELECT", "select")
        if rng.random() < 0.1:
            text = text.replace(" FROM ", " /* from */ FROM ", 1) + rng.choice([";", " -- end", " ; "])
        if len(text) < 400 and text not in found and is_prepared(connection, text):
            found.append(text)
    return found
