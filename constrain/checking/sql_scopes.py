"""Where names stand in the beginning of a query, and which parts of the text they are resolved in.

One pass over the tokens keeps a stack of parentheses. A *query* has cores (SELECT ... UNION SELECT ...), and each core
a clause. What a name means in SQL depends on text that may still follow: in `SELECT x FROM ...` the columns are those
of a FROM clause that is not written yet. A core is *closed* once a token follows its FROM clause that ends it (WHERE,
GROUP, UNION, ...). From then on its tables are final, and so are those of the cores around it that are closed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .sql_tokens import RESERVED, SqlToken, unquote_name

__all__ = ["Core", "Mention", "QueryScopes", "scan_scopes"]

CLOSING = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"}
COMPOUND = {"UNION", "EXCEPT", "INTERSECT"}
NAMING = {"AS", "COLLATE", "OVER", "WINDOW", "INDEXED"}
"""Keywords after which a name is new, or not one of a column."""
OPERANDS = {"NULL", "ISNULL", "NOTNULL"}
"""Reserved words that end an expression."""
JOINS = {"NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER"}

Role = Literal["table", "table alias", "join", "column", "alias", "none"]


@dataclass(slots=True, eq=False)
class Core:
    """One SELECT of a query, as indices of tokens.

    clause: the clause that is being written; "unknown" where names are not checked: after a window definition, and in
    the ORDER BY of a compound query. start: of the SELECT keyword. begin: after FROM; -1 if there is none. end: the
    token that closes the FROM clause; -1 while it is open.
    """

    clause: Literal["select", "from", "rest", "unknown"]
    start: int
    begin: int = -1
    end: int = -1


@dataclass(slots=True, eq=False)
class Level:
    """A pair of parentheses, or the whole statement.

    kind: "query", "tables" (parentheses in a FROM clause), or "group". opener: the token before the parenthesis. first:
    index of the first token. with_start, with_end: the WITH clause; with_end is -1 while it is open. has_as: whether AS
    occurs in it. is_compound: whether it has an earlier core.
    """

    kind: Literal["query", "tables", "group"]
    opener: str
    first: int
    core: Core | None = None
    with_start: int = -1
    with_end: int = -1
    has_as: bool = False
    is_compound: bool = False

    @property
    def with_open(self) -> bool:
        """Whether a WITH clause is being written, in which tables may be defined later."""
        return self.with_start >= 0 and self.with_end < 0


class Mention(NamedTuple):
    """A name in the text. place: the index of its token. owner: index of the token before its period, or -1.

    cores: the cores around a column, the innermost first; None if they cannot be known. withs: the WITH clauses around
    it, as (first token, token after the last).
    """

    place: int
    role: Role
    owner: int
    cores: tuple[Core, ...] | None
    withs: tuple[tuple[int, int], ...]

    @property
    def is_decided(self) -> bool:
        """Whether all cores around a column are closed."""
        return self.cores is not None and all(core.end >= 0 for core in self.cores)


NOTHING = Mention(0, "none", -1, None, ())


@dataclass(slots=True)
class QueryScopes:
    """The result of a scan.

    next: what a name after the last token would be. cuts: indices of tokens of the outermost query before which it is
    closed. defined: names of common table expressions, in lower case. aliases: names after AS and after
    expressions, with the index of the first token. open_with: whether
    tables may be defined later.
    """

    mentions: list[Mention] = field(default_factory=list)
    next: Mention = NOTHING
    cuts: list[int] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    aliases: dict[str, int] = field(default_factory=dict)
    open_with: bool = False
    writes: bool = False


def scan_scopes(tokens: list[SqlToken]) -> QueryScopes:
    """Scan the finished tokens of a query."""
    scan = ScopeScan(tokens)
    for index in range(len(tokens)):
        scan.read(index)
    scan.found.next = scan.describe(len(tokens))
    scan.found.open_with = any(level.with_open for level in scan.levels)
    return scan.found


class ScopeScan:
    """The state of a scan: the stack of levels, and what was found."""

    def __init__(self, tokens: list[SqlToken]) -> None:
        self.tokens, self.found = tokens, QueryScopes()
        self.levels = [Level("query", "", 0)]

    def before(self, index: int, back: int = 1) -> str:
        """Return the keyword or operator before a token, "" if it is another token."""
        return self.tokens[index - back].keyword if index >= back else ""

    def read(self, index: int) -> None:
        """Update the state by a token."""
        token, level = self.tokens[index], self.levels[-1]
        if token.kind in ("word", "quoted") or (token.kind == "string" and self.at_table(index)):
            mention = self.describe(index)
            self.found.mentions.append(mention)
            if mention.role in ("alias", "table alias"):
                self.found.aliases.setdefault(unquote_name(token).lower(), index)
        if len(self.levels) == 1 and self.is_closed_before(index):
            self.found.cuts.append(index)
        if token.text == "(":
            self.open(index)
        elif token.text == ")" and len(self.levels) > 1:
            core = self.levels.pop().core
            if core is not None and core.end < 0:
                core.end = index
        elif token.kind == "word":
            level.has_as = level.has_as or token.keyword == "AS"
            if level.kind == "query":
                self.read_keyword(index, level)

    def open(self, index: int) -> None:
        """Enter a parenthesis."""
        following = self.tokens[index + 1].keyword if index + 1 < len(self.tokens) else ""
        kind: Literal["query", "tables", "group"] = "group"
        if following in ("SELECT", "WITH", "VALUES"):
            kind = "query"
        elif self.at_table(index):
            kind = "tables"
        self.levels.append(Level(kind, self.before(index), index + 1))

    def read_keyword(self, index: int, level: Level) -> None:
        """Update the clause of a query by a word."""
        word = self.tokens[index].keyword
        core = level.core
        if word == "WITH" and index == level.first:
            level.with_start = index
        elif word in ("INSERT", "UPDATE", "DELETE", "REPLACE") and level.with_open and self.before(index) == ")":
            level.with_end, self.found.writes = index, True
        elif word in ("SELECT", "VALUES"):
            if level.with_open:
                level.with_end = index
            level.core = Core("select", index)
        elif core is None:
            return
        elif word == "AS" and self.before(index, 2) == "WINDOW":
            core.clause = "unknown"
            core.end = index - 2 if core.end < 0 else core.end
            if len(self.levels) == 1:
                self.found.cuts.append(index - 2)
        elif word == "FROM" and core.clause == "select" and not self.compares_distinct(index):
            core.clause, core.begin = "from", index + 1
        elif word == "WINDOW" and core.clause in ("from", "rest"):
            core.clause = "unknown"
        elif word in ("ORDER", "LIMIT") and level.is_compound:
            core.clause = "unknown"  # its terms are columns of any core
            core.end = index if core.end < 0 else core.end
        elif word in CLOSING and core.clause in ("select", "from"):
            core.clause, core.end = "rest", index
        elif word in COMPOUND:
            core.end = index if core.end < 0 else core.end
            level.core, level.is_compound = None, True

    def compares_distinct(self, index: int) -> bool:
        """Return whether FROM belongs to IS [NOT] DISTINCT FROM."""
        return self.before(index) == "DISTINCT" and self.before(index, 2) in ("IS", "NOT")

    def is_closed_before(self, index: int) -> bool:
        """Return whether the core of the outermost query is closed before a token."""
        core = self.levels[0].core
        if core is None or core.clause == "unknown":
            return False
        word = self.tokens[index].keyword
        if word in (".", "(", "OVER", "FILTER", "WITHIN", "WINDOW") or self.before(index) in ("OVER", "FILTER"):
            return False
        return core.clause == "rest" or word in CLOSING or word in COMPOUND or word == ";"

    def at_table(self, index: int) -> bool:
        """Return whether a table is named at a token, or a parenthesis of tables opens."""
        level, before = self.levels[-1], self.before(index)
        if level.kind == "tables":
            return before in ("(", ",", "JOIN")
        core = level.core
        return level.kind == "query" and core is not None and core.clause == "from" and before in ("FROM", ",", "JOIN")

    def describe(self, index: int) -> Mention:
        """Return what a name at a token is: its role, and the cores that it is resolved in."""
        owner = index - 2 if self.before(index) == "." else -1
        place = owner if owner >= 0 else index
        withs = tuple(
            (level.with_start, level.with_end) for level in self.levels if level.with_start >= 0 and not level.with_open
        )
        if self.at_table(place) or (owner >= 0 and self.before(place) == "." and self.at_table(place - 2)):
            return Mention(index, "table", owner, None, withs)
        level = self.levels[-1]
        if owner < 0 and self.continues_join(index):
            return Mention(index, "join", owner, None, withs)
        if level.with_open and level.kind == "query":
            if owner < 0 and (self.before(index) in ("WITH", "RECURSIVE", ",")) and index < len(self.tokens):
                self.found.defined.add(unquote_name(self.tokens[index]).lower())
            return Mention(index, "none", owner, None, withs)
        return Mention(index, self.find_role(index, place), owner, self.find_cores(), withs)

    def find_role(self, index: int, place: int) -> Role:
        """Return whether a name in an expression is that of a column, an alias, or something else."""
        level = self.levels[-1]
        query = next((one for one in reversed(self.levels) if one.kind == "query"), None)
        if query is None or query.core is None or query.core.clause == "unknown" or level.kind == "tables":
            return "none"
        kind: Role = "table alias" if query.core.clause == "from" else "alias"
        if self.before(place) == "AS" and level.kind == "query":
            return kind
        if self.before(place) in NAMING or (self.before(place) == "BY" and self.before(place, 2) == "INDEXED"):
            return "none"
        if level.kind == "group" and (level.has_as or level.opener in ("OVER", "USING", "AS")):
            return "none"
        in_list = level.kind == "query" and query.core.clause != "rest"  # else no alias can follow an expression
        if in_list and place and index == place and self.ends_operand(place - 1):
            return kind
        if query.core.clause == "from" and level is query and self.before(place) not in ("ON", "AND", "OR", "NOT", "="):
            return "none"
        return "column"

    def ends_operand(self, index: int) -> bool:
        """Return whether an expression may end with a token, so that a name after it is an alias."""
        token = self.tokens[index]
        if token.kind == "word":
            return token.keyword not in RESERVED or token.keyword in OPERANDS
        return token.kind in ("string", "quoted", "number", "blob") or token.text == ")"

    def continues_join(self, index: int) -> bool:
        """Return whether a token follows a word such as LEFT, which is an operator."""
        level = self.levels[-1]
        in_tables = level.kind == "tables" or (level.core is not None and level.core.clause == "from")
        before = self.before(index, 2)
        return in_tables and self.before(index) in JOINS and before not in ("AS", ".", "FROM", ",", "JOIN", "(", "")

    def find_cores(self) -> tuple[Core, ...] | None:
        """Return the cores of the queries around, the innermost first; None if they cannot be known."""
        cores = []
        for level in reversed(self.levels):
            if level.kind == "tables" or level.with_open:
                return None
            if level.kind == "query":
                if level.core is None or level.core.clause == "unknown":
                    return None
                cores.append(level.core)
        return tuple(cores)
