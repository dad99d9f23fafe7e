"""constrain: language models answer in exactly the form that you ask for.

    constrain.generate("demo", "Describe a person.", schema=Person)     the answer, validated
    constrain.compile(vocabulary, schema=...).matcher()                 the mask for your own loop
    constrain.ConstraintLogitsProcessor(constraint)                     for `model.generate` of transformers

`docs/tour.md` walks through the rooms behind these names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .compile import Constraint, compile, compile_grammar
from .dialogue import ToolCall, tool_calls, tools
from .errors import (
    ConstrainError,
    GrammarError,
    LimitError,
    RegexError,
    SchemaError,
    SourceError,
    TokenRefused,
    UnsatisfiableError,
    UnsupportedError,
    ValueRefused,
    VocabularyError,
)
from .forms import Form, free_text, gbnf, json_schema, lark, literal, mark, regex, thinking, triggered
from .generate import Generation, generate
from .grammar.nodes import Grammar
from .infer import infer
from .rehearsal import rehearse
from .style import Limits, Style
from .tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from . import grammars as grammars
    from .batches import apply_mask, fill_masks
    from .integrations.processor import ConstraintLogitsProcessor
    from .matcher import Matcher

__version__ = "0.1.0"

__all__ = [
    "ConstrainError",
    "Constraint",
    "ConstraintLogitsProcessor",
    "Form",
    "Generation",
    "Grammar",
    "GrammarError",
    "LimitError",
    "Limits",
    "Matcher",
    "RegexError",
    "SchemaError",
    "SourceError",
    "Style",
    "TokenRefused",
    "ToolCall",
    "UnsatisfiableError",
    "UnsupportedError",
    "ValueRefused",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "apply_mask",
    "compile",
    "compile_grammar",
    "fill_masks",
    "free_text",
    "gbnf",
    "generate",
    "infer",
    "json_schema",
    "lark",
    "literal",
    "mark",
    "regex",
    "rehearse",
    "thinking",
    "tool_calls",
    "tools",
    "triggered",
]

_LATER = {
    "ConstraintLogitsProcessor": ".integrations.processor",
    "Matcher": ".matcher",
    "apply_mask": ".batches",
    "fill_masks": ".batches",
}
"""Names whose modules load compiled kernels or torch: imported when first asked for."""


def __getattr__(name: str) -> Any:
    if name == "grammars":  # which only reads files
        return import_module(".grammars", __name__)
    if name in _LATER:
        value = getattr(import_module(_LATER[name], __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
