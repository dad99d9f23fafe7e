"""SqliteChecker: no prefix of a valid query is refused, names are, and everything that is generated prepares."""

from __future__ import annotations

import sqlite3
from random import Random

import numpy as np
import pytest

import constrain
from constrain.base.errors import ArgumentError, SourceError
from constrain.checking import SqliteChecker, Verdict
from constrain.checking.sql_tokens import KEYWORDS, split_sql
from constrain.sampling import draw
from constrain.vocabulary.vocabulary import Vocabulary
from tests.checking.query_factory import SCHEMA, connect, is_prepared, random_queries
from tests.model_factory import TableModel

CHECKER = SqliteChecker(SCHEMA)


def refused_prefix(checker: SqliteChecker, query: str) -> str | None:
    """The shortest prefix of a query that is dead."""
    return next((query[:k] for k in range(len(query) + 1) if checker.check(query[:k]) is Verdict.DEAD), None)


@pytest.mark.parametrize("seed", range(3))
def test_no_prefix_of_a_valid_query_is_dead(seed: int) -> None:
    for query in random_queries(seed, 40):
        assert refused_prefix(CHECKER, query) is None, query
        assert CHECKER.check(query) is Verdict.COMPLETE, query


WRITTEN = [
    "WITH a AS (SELECT * FROM b), b AS (SELECT 1 AS x) SELECT x FROM a",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
    "SELECT x FROM (SELECT 1 AS x)",
    "SELECT (SELECT max(year) FROM concert WHERE singer_id = s.id) AS m FROM singer s ORDER BY m",
    "SELECT sum(age) FILTER (WHERE age > 1) OVER w FROM singer WINDOW v AS (w), w AS (ORDER BY age)",
    "SELECT age FROM singer ORDER BY sum(age) OVER (ORDER BY age)",
    "VALUES (1, 2), (3, 4)",
    "SELECT 'it''s', x'ab', 1e+5, .5, 1., 0x1F FROM singer -- end",
    "SELECT name /* a comment */ FROM singer",
    'SELECT "home town", [id], `name` FROM "singer" AS "T ""1""" WHERE "T ""1""".id IS NOT NULL',
    "SELECT key, \"select\" FROM 'order' JOIN singer ON [order].singer_id == singer.id",
    "SELECT CASE age WHEN 1 THEN 'a' ELSE name END AS z FROM singer WHERE z LIKE 'a%' ESCAPE '!'",
    "SELECT CAST(age AS unsigned big int) FROM singer WHERE age NOT BETWEEN 1 AND 2 AND name NOTNULL",
    "SELECT main.singer.name FROM main.singer INNER JOIN star USING (age) WHERE star.age = singer.age",
    "SELECT json.value FROM singer, json_each(singer.name) AS json WHERE json.key = 0",
    "SELECT rowid, oid FROM singer WHERE _rowid_ IN concert_ids",
    "SELECT name FROM sqlite_master WHERE type = 'table'",
    "SELECT a.age IS NOT DISTINCT FROM 3 FROM singer a LEFT OUTER JOIN singer b ON a.id = b.id AND b.name = 'x'",
    "SELECT count(DISTINCT age), group_concat(name, '-') FROM singer GROUP BY age % 2 HAVING count(*) > 1;",
    "SELECT star_name FROM star EXCEPT SELECT title FROM concert ORDER BY star_name LIMIT 2, 3",
    "SELECT name -> '$.x', name->>'y', age<<1, -age, ~age, +age, age||'' FROM singer WHERE age<>1 AND age!=2",
    "select Name from SINGER where NAME glob 'a*' or (age, id) = (1, 2) and name collate NoCase > 'b'",
    "SELECT * FROM (singer JOIN concert ON id = singer_id) WHERE NOT EXISTS (SELECT 1 FROM star s WHERE s.age = age)",
    "SELECT key k, current_date d, age ISNULL n, CASE WHEN 1 THEN 2 END e, NULL f FROM [order], singer",
    "SELECT x.n FROM (SELECT name n, age like_it FROM singer WHERE main.singer.age > 1) AS x NATURAL JOIN star",
    "SELECT name FROM singer NATURAL LEFT OUTER JOIN concert CROSS JOIN [order] AS left WHERE left.key = 1",
]


@pytest.mark.parametrize("query", WRITTEN)
def test_no_prefix_of_a_written_query_is_dead(query: str) -> None:
    checker = SqliteChecker(SCHEMA + "CREATE TABLE concert_ids (id);")
    assert checker.check(query) is Verdict.COMPLETE
    assert refused_prefix(checker, query) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("SELECT name FROM s", "ok"),
        ("SELECT name FROM sung", "dead"),
        ("SELECT name FROM [sin", "ok"),
        ("SELECT name FROM [son", "dead"),
        ("SELECT name FROM singer WHERE ag", "ok"),
        ("SELECT name FROM singer WHERE agx", "dead"),
        ("SELECT name FROM singer AS T WHERE T.ag", "ok"),
        ("SELECT name FROM singer AS T WHERE T.tit", "dead"),
        ("SELECT name FROM singer AS T JOIN concert AS U WHERE T.title =", "dead"),
        ("SELECT name FROM singer WHERE id IN (SELECT sing", "ok"),
        ("SELECT name FROM singer WHERE id IN (SELECT singer_id FROM concert WHERE tow", "dead"),
        ("SELECT missing FROM singer ", "ok"),
        ("SELECT missing FROM singer WHERE ", "dead"),
        ("SELECT missing FROM singer", "ok"),
        ("SELECT missing(1) ", "dead"),
        ("SELECT lower(", "ok"),
        ("SELECT singer_id FROM concert, [order] WHERE singer_id = 1 ", "dead"),
        ("SELECT name FROM singer UNION SELECT id, age FROM singer WHERE ", "dead"),
        ("SELECT name FROM singer WHERE count(*) > 1 AND ", "dead"),
        ("SELECT missing m L", "dead"),
        ("SELECT age FROM singer WHERE id = (SELECT missing FROM star)", "dead"),
        ("SELECT name FROM singer LEFT st", "dead"),
        ("SELECT name FROM singer.st", "dead"),
        ("SELECT name FROM main.st", "ok"),
        ("SELECT sum(age) OVER (ORD", "ok"),
        ("SELECT age FILTER (", "dead"),
        ("SELECT a b c", "dead"),
        ("SELECT name,, ", "dead"),
        ("SEL", "ok"),
        ("SELL", "dead"),
        ("", "ok"),
        (" \n", "ok"),
        ("DELETE FROM singer", "dead"),
        ("WITH a AS (SELECT 1) DELETE FROM singer", "dead"),
        ("PRAGMA user_version", "dead"),
        ("SELECT ?", "dead"),
        ("SELECT 1; SELECT 2", "dead"),
        ("SELECT 12ab ", "dead"),
        ("SELECT 1e", "ok"),
        ("SELECT \0", "dead"),
        ("SELECT '\ud800", "dead"),
        ("SELECT #", "dead"),
        ("SELECT 'abc", "ok"),
    ],
)
def test_verdicts(text: str, verdict: str) -> None:
    assert CHECKER.check(text).value == verdict


def test_columns_of_the_schema_only() -> None:
    checker = SqliteChecker(SCHEMA, columns="schema")
    for query in (
        "SELECT T1.name AS n FROM singer AS T1 ORDER BY n",
        "SELECT count(*) FROM singer JOIN star ON star.age = id",
    ):
        assert refused_prefix(checker, query) is None
        assert checker.check(query) is Verdict.COMPLETE
    for query in random_queries(9, 30):
        if checker.check(query) is Verdict.COMPLETE:
            assert refused_prefix(checker, query) is None, query
    assert checker.check("SELECT missing, ") is Verdict.DEAD
    for text in (
        "SELECT T1.missing, ",
        "SELECT mis",
        "SELECT x.",
        "SELECT name n, T2.na x",
        "SELECT name F FROM star b",
    ):
        assert checker.check(text) is Verdict.DEAD, text
    for text in (
        "SELECT T",
        "SELECT t12",
        "SELECT na",
        "SELECT count",
        "SELECT name n, n",
        "SELECT name FROM singer T",
    ):
        assert checker.check(text) is not Verdict.DEAD, text
    assert checker.check("SELECT x FROM (SELECT 1 AS x)") is Verdict.DEAD


def test_statements_of_any_kind() -> None:
    checker = SqliteChecker(connect(), statements="any", functions={"slug": 1})
    for query in ("DELETE FROM singer WHERE id = 1", "INSERT INTO singer (name) SELECT slug(title) FROM concert",
                  "WITH a AS (SELECT 1) UPDATE singer SET age = 2", "CREATE TABLE t (a, b)"):  # fmt: skip
        assert refused_prefix(checker, query) is None
        assert checker.check(query) is Verdict.COMPLETE
    for query in ("PRAGMA user_version = 3", "ATTACH 'x' AS y"):
        assert checker.check(query) is not Verdict.COMPLETE


def test_the_database_is_not_touched() -> None:
    connection = connect()
    connection.execute("INSERT INTO singer (name) VALUES ('a')")
    changes = connection.total_changes
    checker = SqliteChecker(connection, statements="any")
    assert checker.check("DELETE FROM singer") is Verdict.COMPLETE
    assert connection.total_changes == changes
    assert connection.execute("SELECT count(*) FROM singer").fetchone() == (1,)
    assert checker.check("SELECT star_name FROM star") is Verdict.COMPLETE


def test_virtual_tables_are_copied() -> None:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE page USING fts5(title, body)")
    except sqlite3.Error:
        pytest.skip("SQLite without FTS5")
    query = "SELECT title, rank FROM page WHERE page MATCH 'x' AND body > '' ORDER BY rank"
    checker = SqliteChecker(connection)
    assert checker.check(query) is Verdict.COMPLETE
    assert refused_prefix(checker, query) is None


def test_arguments() -> None:
    with pytest.raises(SourceError, match="CREATE"):
        SqliteChecker("CREATE NONSENSE")
    with pytest.raises(TypeError, match="schema"):
        SqliteChecker(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="columns"):
        SqliteChecker("", columns="some")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="functions"):
        SqliteChecker("", functions={"f": "x"})  # type: ignore[dict-item]


def test_the_lexer_agrees_with_sqlite_on_keywords() -> None:
    """A word that SQLite refuses as a name is in the list of keywords."""
    connection = sqlite3.connect(":memory:")
    words = {token.text.upper() for query in WRITTEN for token in split_sql(query) if token.kind == "word"}
    for word in words - KEYWORDS:
        assert is_prepared(connection, f"SELECT 1 AS {word}")


class QueryModel:
    """A character model of random queries: the counts of what follows the last characters, mixed over lengths."""

    def __init__(self, queries: list[str]) -> None:
        self.counts: dict[bytes, np.ndarray] = {}
        for query in queries:
            data = query.encode()
            for end in range(len(data) + 1):
                for length in range(min(end, 8) + 1):
                    row = self.counts.setdefault(data[end - length : end], np.zeros(257))
                    row[data[end] if end < len(data) else 256] += 1

    def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
        return np.log([self.row(bytes(prefix)) for prefix in prefixes])

    def row(self, text: bytes) -> np.ndarray:
        row = np.full(257, 1 / 257)
        for length in range(min(len(text), 8) + 1):
            counts = self.counts.get(text[len(text) - length :])
            if counts is not None:
                row = 0.05 * row + 0.95 * counts / counts.sum()
        return row


BYTES = Vocabulary.bytes()
MODEL = QueryModel([query.replace("\n", " ") for query in random_queries(7, 150, depth=1)])


@pytest.mark.slow
def test_everything_that_is_generated_prepares() -> None:
    """A model that writes plausible queries, most of which are wrong without the checker."""
    regex, given = r"SELECT [ -~]{1,100}", {"n": 20, "max_tokens": 110}
    free = draw(MODEL, constrain.compile(BYTES, regex=regex), rng=np.random.default_rng(1), **given)  # type: ignore[arg-type]
    made = constrain.generate(MODEL, tokenizer=BYTES, regex=regex, check=CHECKER, seed=1, **given)  # type: ignore[call-overload]
    connection = connect()
    assert len(made) == 20
    assert all(is_prepared(connection, one.text) for one in made)
    assert sum(one.finish_reason == "complete" for one in made) > 2
    assert sum(is_prepared(connection, one.text) for one in free) < 0.8 * len(free)


def test_masks_first_need_fewer_checks() -> None:
    """Of 257 tokens the mask leaves a few; with the mask after the checker, the checker sees the others as well."""
    regex = r"SELECT (name|age|id) FROM (singer|star) WHERE (age|name) [<>=] [0-9]{1,3}"
    checks = {}
    for masks in ("first", "after"):
        made = constrain.generate(
            TableModel(257, 3), tokenizer=BYTES, regex=regex, check=CHECKER, n=4, seed=1, max_tokens=60, masks=masks
        )  # type: ignore[call-overload]
        assert all(is_prepared(connect(), one.text) for one in made)
        checks[masks] = float(np.mean([one.stats.counts["checks_per_token"] for one in made]))
    assert checks["first"] < 3 < 30 < checks["after"]


PIECES = [
    "SELECT ", "FROM ", "WHERE ", "name", "age", "id", "singer ", "concert ", "title", " AS T", "T.", "count(", ")",
    "*", ", ", " = ", "1", "'a'", " JOIN ", " ON ", " ORDER BY ", " GROUP BY ", "year", " LIMIT ", "s", "x", "in",
    "ger", " ", "e", "(", ";", "singer_id", " AND ", "WITH ", "VALUES (",
]  # fmt: skip


def test_random_continuations_of_live_prefixes_are_judged_alike_by_pieces() -> None:
    """A text is judged alike whether it came by characters or at once, and only extensions of live texts are live."""
    rng = Random(5)
    for _ in range(150):
        text, alive = "SELECT ", True
        while len(text) < 60 and alive:
            longer = text + rng.choice(PIECES)
            verdicts = [CHECKER.check(longer[:k]) for k in range(len(text), len(longer) + 1)]
            if verdicts[-1] is not Verdict.DEAD:
                assert Verdict.DEAD not in verdicts, longer
            text, alive = longer, verdicts[-1] is not Verdict.DEAD
