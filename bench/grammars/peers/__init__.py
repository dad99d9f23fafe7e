"""The grammars of the peers, written by hand: each in its engine's own dialect, as its documentation recommends.

    json.lark, sql.lark, c.lark   llguidance: Lark with & and ~ of patterns, no look-around, a lexer with longest match
    json.ebnf, sql.ebnf, c.ebnf   XGrammar: rules over characters, blanks among them

They accept every text of the corpora, and more than the grammar of that name in `constrain/grammars` where the dialect
cannot express it; the head of each file says where. Neither dialect can express the blocks of Python: `Inexpressible`.
"""

from __future__ import annotations

from pathlib import Path

from ..languages import Language
from ..translate import Inexpressible, to_ebnf, to_llguidance

__all__ = ["PEERS", "Inexpressible", "peer_grammar"]

PEERS = ("json", "sql", "c")
"""Languages with grammars written by hand; any other is translated (`translate`)."""


def peer_grammar(language: Language, dialect: str) -> str:
    """Return the grammar of a language for llguidance ("lark") or XGrammar ("ebnf"). Raises `Inexpressible`."""
    if language.name in PEERS:
        return (Path(__file__).parent / f"{language.name}.{dialect}").read_text("utf-8")
    return to_llguidance(language) if dialect == "lark" else to_ebnf(language)
