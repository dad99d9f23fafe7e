"""Which names a beginning of a query may use, as far as that is decided.

A name that may be resolved by what follows is never refused: all sets here contain at least the names that SQLite would
resolve. Names in double quotes are strings where nothing else fits, so that in expressions they are not checked.
"""

from __future__ import annotations

from .sql_scopes import JOINS, Core, Mention, QueryScopes
from .sql_tokens import KEYWORDS, SqlToken, unquote_name
from .sqlite_schema import SqliteSchema

__all__ = ["NameCheck"]

ROWIDS = frozenset({"rowid", "oid", "_rowid_"})
LITERALS = frozenset({"true", "false"})
DATABASES = frozenset({"main", "temp"})
TABLE_ALIASES = frozenset(f"t{number}" for number in range(1, 100))
"""Aliases of tables where names are restricted to those of the schema; they are used before they are defined."""
JOIN_WORDS = frozenset(word.lower() for word in (*JOINS, "JOIN"))
OPERAND_KEYWORDS = {"CAST", "RAISE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "WITH", "IF"}
"""Keywords that may also be names, and begin an expression or a query."""


class NameCheck:
    """The names of a schema. restricted: whether columns are those of the schema and earlier aliases only."""

    def __init__(self, schema: SqliteSchema, restricted: bool) -> None:
        self.schema, self.restricted = schema, restricted

    def are_known(self, tokens: list[SqlToken], scopes: QueryScopes, more: str | None = None) -> bool:
        """Return whether every finished name can be resolved, as far as the text decides it.

        more: the unfinished token after the last one, if there is one.
        """
        for mention in scopes.mentions:
            token = tokens[mention.place]
            following = tokens[mention.place + 1].text if mention.place + 1 < len(tokens) else more
            if mention.role == "table":
                known = DATABASES if following == "." and mention.owner < 0 else self.tables(scopes)
            elif mention.role == "join":
                known = JOIN_WORDS
            elif mention.role == "table alias":
                known = TABLE_ALIASES if self.restricted and token.keyword not in KEYWORDS else None
            elif mention.role != "column" or token.kind != "word" or token.keyword in KEYWORDS:
                continue
            elif following == "(" and mention.owner < 0:
                known = self.schema.functions | self.schema.modules
            elif following is None:
                known = self.expression(tokens, scopes, mention, "any")
            else:
                known = self.expression(tokens, scopes, mention, "owner" if following == "." else "column")
            if known is not None and unquote_name(token).lower() not in known:
                return False
        return True

    def may_be_name(self, tokens: list[SqlToken], scopes: QueryScopes, last: SqlToken) -> bool:
        """Return whether the unfinished last token may become a name that can be resolved."""
        mention = scopes.next
        if mention.role == "table":
            known = self.tables(scopes)
        elif mention.role == "join":
            known = JOIN_WORDS
        elif mention.role == "table alias":
            known = TABLE_ALIASES if self.restricted else None
        elif mention.role == "column" and last.kind == "word":
            known = self.expression(tokens, scopes, mention, "any")
        else:
            return True
        written = unquote_name(last).lower()
        return known is None or any(name.startswith(written) for name in known)

    def may_be_keyword(self, word: str, scopes: QueryScopes) -> bool:
        """Return whether a keyword may stand, as a keyword, where a name may stand too."""
        if scopes.next.role == "join":
            return False
        if scopes.next.role == "table alias" and word in (*JOINS, "INDEXED", "WINDOW"):
            return True
        return word not in self.schema.soft_keywords or word in OPERAND_KEYWORDS

    def tables(self, scopes: QueryScopes) -> frozenset[str] | None:
        """Return the names of tables at a place; None if any may be defined later."""
        if scopes.open_with:
            return None
        known = self.schema.own_tables if self.restricted else self.schema.table_names
        return known | scopes.defined | DATABASES

    def expression(
        self, tokens: list[SqlToken], scopes: QueryScopes, mention: Mention, use: str
    ) -> frozenset[str] | None:
        """Return the names that may stand in an expression, None if that is not decided.

        use: "owner" before a period, "column" before anything else, "any" if that is not known.
        """
        if mention.role != "column":
            return None
        resolved, limit = self.resolve(tokens, scopes, mention, use), self.restrict(scopes, mention, use)
        return resolved if limit is None else limit if resolved is None else resolved & limit

    def resolve(self, tokens: list[SqlToken], scopes: QueryScopes, mention: Mention, use: str) -> frozenset[str] | None:
        """Return the names that SQLite resolves in an expression, None if that is not decided."""
        if mention.cores is None or not mention.is_decided:
            return None
        after_in = mention.place > 0 and tokens[mention.place - 1].keyword == "IN"
        more = self.schema.functions | self.schema.table_names | scopes.defined if use == "any" else frozenset[str]()
        if after_in:
            more = more | self.schema.table_names | scopes.defined
        if use == "owner":
            more = more | DATABASES
        described = [self.describe_core(tokens, core, mention.withs) for core in mention.cores]
        if any(one is None for one in described):
            return None
        if mention.owner >= 0:
            return self.members(tokens, mention)
        written = frozenset(
            unquote_name(token).lower()
            for core in mention.cores
            for token in visible_tokens(tokens, core, mention.place)
            if token.kind in ("word", "quoted", "string")
        )
        columns = frozenset().union(*(one or () for one in described))
        return columns | ROWIDS | LITERALS | written | more

    def restrict(self, scopes: QueryScopes, mention: Mention, use: str) -> frozenset[str] | None:
        """Return the columns of the schema and the aliases so far, if columns are restricted to these."""
        if not self.restricted or scopes.open_with:
            return None
        aliases = {name for name, index in scopes.aliases.items() if index < mention.place}
        known = self.schema.columns | self.schema.own_tables | ROWIDS | LITERALS | scopes.defined | aliases
        if use == "column":
            return known
        return known | TABLE_ALIASES | (self.schema.functions if use == "any" else DATABASES)

    def members(self, tokens: list[SqlToken], mention: Mention) -> frozenset[str] | None:
        """Return the names that may follow the period after an owner, in closed cores."""
        owner = tokens[mention.owner]
        if owner.kind not in ("word", "quoted") or (mention.owner and tokens[mention.owner - 1].text == "."):
            return None
        if unquote_name(owner).lower() in ("main", "temp"):
            return None
        found = [self.describe_core(tokens, core, mention.withs, f"{owner.text}.*") for core in mention.cores or ()]
        known = [one for one in found if one is not None]
        return frozenset().union(*known) | ROWIDS if known else None

    def describe_core(
        self, tokens: list[SqlToken], core: Core, withs: tuple[tuple[int, int], ...], columns: str = "*"
    ) -> frozenset[str] | None:
        """Return the columns of the FROM clause of a closed core, in lower case; None if SQLite cannot tell."""
        if core.begin < 0:
            return frozenset() if columns == "*" else None
        clause = tokens[core.begin : core.end]
        hidden = self.schema.modules | self.schema.virtual
        if len(withs) > 1 or any(unquote_name(t).lower() in hidden for t in clause if t.kind in ("word", "quoted")):
            return None
        prefix = "".join(join_tokens(tokens[start:end]) for start, end in withs)
        return self.schema.columns_of(f"{prefix} SELECT {columns} FROM {join_tokens(clause)}")


def visible_tokens(tokens: list[SqlToken], core: Core, place: int) -> list[SqlToken]:
    """Return the tokens of a core that may name what a column at a place means: its tables, and the aliases of its
    results except in the list of these.
    """
    if place < core.begin or core.begin < 0:
        return tokens[core.begin : core.end] if core.begin >= 0 else []
    return tokens[core.start : core.end]


def join_tokens(tokens: list[SqlToken]) -> str:
    """Return the text of some tokens, with spaces between them."""
    return " ".join(token.text for token in tokens)
