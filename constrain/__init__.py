"""constrain: exact structured output for language models.

    constrain.generate("demo", "Describe a person.", schema=Person)     generate a validated answer
    constrain.compile(vocabulary, schema=...).matcher()                 token masks for your own decoding loop
    constrain.validate(Person, text=answer)                             all violations of a schema, with positions
    constrain.ConstraintLogitsProcessor(constraint)                     for `model.generate` of transformers

The packages that implement these names are described in `docs/tour.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .base.extensions import register_extension
from .base.keyword_names import describe_attribute
from .base.version import __version__

if TYPE_CHECKING:
    from . import grammars as grammars
    from .authoring.schema_inference import infer
    from .authoring.token_refusals import explain_token
    from .base.errors import (
        ArgumentError,
        ConstrainError,
        GrammarError,
        LimitError,
        Refusal,
        RegexError,
        SchemaError,
        SchemaWarning,
        SourceError,
        TokenRefused,
        UnsatisfiableError,
        UnsupportedError,
        ValueRefused,
        VocabularyError,
        VocabularyWarning,
    )
    from .base.options import Limits, Style
    from .compilation.constraint_compiler import compile, compile_grammar
    from .compilation.process_warm_up import warm_up
    from .deciding import AStarDecoding, MinimumBayesRisk, PhiDecoding, PlanningGuided, Superposed
    from .decoding.events import FinishEvent, RetryEvent, TextEvent
    from .dialogue import ToolCall, structural_tag, tool_calls, tools  # type: ignore[no-redef]
    from .engine.batches import advance_all, apply_mask, fill_masks
    from .engine.constraint import Constraint
    from .engine.matcher import Matcher
    from .forms import (  # type: ignore[no-redef]
        Form,
        all_of,
        contains,
        excludes,
        free_text,
        gbnf,
        json_schema,
        lark,
        literal,
        mark,
        regex,
        thinking,
        triggered,
    )
    from .generation.answer_repair import repair
    from .generation.generation_result import Generation
    from .generation.inference_engine import Engine
    from .generation.option_probabilities import choose
    from .generation.partial_values import stream_values
    from .generation.pipeline import generate
    from .generation.prompt_composition import PromptTemplate
    from .generation.remote_generation import generate_remote
    from .generation.session_opening import session
    from .generation.text_probability import score
    from .generation.text_session import Session
    from .grammar.nodes import Grammar
    from .infilling import Gap, decode_masked, infill, infill_check, infill_form
    from .integrations.logits_processor import ConstraintLogitsProcessor
    from .integrations.partial_types import partial_model
    from .integrations.remote_models import RemoteModel
    from .integrations.transformers_models import load_model
    from .search import (
        BeamSearch,
        BestFirst,
        Lookahead,
        PhraseBanks,
        StochasticBeams,
        beam_search,
        best_first_search,
        stochastic_beam_search,
    )
    from .validation import Violation, validate
    from .vocabulary.vocabulary import Vocabulary

__all__ = [
    "AStarDecoding",
    "ArgumentError",
    "BeamSearch",
    "BestFirst",
    "ConstrainError",
    "Constraint",
    "ConstraintLogitsProcessor",
    "Engine",
    "FinishEvent",
    "Form",
    "Gap",
    "Generation",
    "Grammar",
    "GrammarError",
    "LimitError",
    "Limits",
    "Lookahead",
    "Matcher",
    "MinimumBayesRisk",
    "PhiDecoding",
    "PhraseBanks",
    "PlanningGuided",
    "RemoteModel",
    "PromptTemplate",
    "Refusal",
    "RegexError",
    "RetryEvent",
    "SchemaError",
    "SchemaWarning",
    "Session",
    "SourceError",
    "StochasticBeams",
    "Style",
    "Superposed",
    "TextEvent",
    "TokenRefused",
    "ToolCall",
    "UnsatisfiableError",
    "UnsupportedError",
    "ValueRefused",
    "Violation",
    "Vocabulary",
    "VocabularyError",
    "VocabularyWarning",
    "__version__",
    "all_of",
    "advance_all",
    "apply_mask",
    "beam_search",
    "best_first_search",
    "choose",
    "compile",
    "compile_grammar",
    "decode_masked",
    "contains",
    "excludes",
    "explain_token",
    "fill_masks",
    "free_text",
    "gbnf",
    "generate",
    "generate_remote",
    "infer",
    "infill",
    "infill_check",
    "infill_form",
    "json_schema",
    "lark",
    "literal",
    "load_model",
    "mark",
    "partial_model",
    "regex",
    "stochastic_beam_search",
    "score",
    "stream_values",
    "repair",
    "session",
    "structural_tag",
    "warm_up",
    "thinking",
    "tool_calls",
    "tools",
    "triggered",
    "validate",
]

_PACKAGES = {
    "authoring.schema_inference": "infer",
    "authoring.token_refusals": "explain_token",
    "decoding.events": "FinishEvent RetryEvent TextEvent",
    "dialogue": "ToolCall structural_tag tool_calls tools",
    "engine.batches": "advance_all apply_mask fill_masks",
    "compilation.constraint_compiler": "compile compile_grammar",
    "engine.constraint": "Constraint",
    "engine.matcher": "Matcher",
    "compilation.process_warm_up": "warm_up",
    "base.errors": "ArgumentError ConstrainError GrammarError LimitError Refusal RegexError SchemaError SchemaWarning "
    "SourceError TokenRefused UnsatisfiableError UnsupportedError ValueRefused VocabularyError VocabularyWarning",
    "generation.answer_repair": "repair",
    "forms": "Form all_of contains excludes free_text gbnf json_schema lark literal mark regex thinking triggered",
    "generation.generation_result": "Generation",
    "generation.option_probabilities": "choose",
    "generation.inference_engine": "Engine",
    "generation.partial_values": "stream_values",
    "generation.pipeline": "generate",
    "generation.prompt_composition": "PromptTemplate",
    "generation.session_opening": "session",
    "generation.text_session": "Session",
    "generation.text_probability": "score",
    "grammar.nodes": "Grammar",
    "infilling": "Gap decode_masked infill infill_check infill_form",
    "integrations.logits_processor": "ConstraintLogitsProcessor",
    "generation.remote_generation": "generate_remote",
    "integrations.remote_models": "RemoteModel",
    "integrations.partial_types": "partial_model",
    "integrations.transformers_models": "load_model",
    "base.options": "Limits Style",
    "deciding": "AStarDecoding MinimumBayesRisk PhiDecoding PlanningGuided Superposed",
    "search": "BeamSearch BestFirst Lookahead PhraseBanks StochasticBeams beam_search best_first_search "
    "stochastic_beam_search",
    "validation": "Violation validate",
    "vocabulary.vocabulary": "Vocabulary",
}
"""The module that defines each public name. A module is imported when one of its names is first used."""
_HOMES = {name: package for package, names in _PACKAGES.items() for name in names.split()}


_EXTENSIONS = {
    "apply_mask_on_cuda": "integrations.cuda:apply_mask",
    "compile": "compilation.constraint_compiler:compile",
    "load_constraint": "compilation.saved_constraint:load_constraint",
    "open_models": "generation.prompted_models:open_models",
    "read_mistral": "integrations.token_files:from_mistral",
    "read_pretrained": "integrations.pretrained_vocabularies:from_pretrained",
    "read_tiktoken": "integrations.token_files:from_tiktoken",
    "read_tokenizer": "integrations.tokenizer_objects:from_tokenizer",
    "reduce_constraint": "compilation.saved_constraint:reduce_constraint",
    "save_constraint": "compilation.saved_constraint:save_constraint",
    "show_constraint": "authoring.notebooks.notebook_outputs:show_constraint",
    "show_draws": "authoring.notebooks.notebook_outputs:show_draws",
    "show_vocabulary": "authoring.notebooks.notebook_outputs:show_vocabulary",
}
"""Functions of higher layers that classes of lower layers call (see `base.extensions`), as `module:name`."""


def _load(place: str) -> Callable[..., Any]:
    """Import and return the function `module:name`."""
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(f".{module}", __name__), name)
    return found


for _name, _place in _EXTENSIONS.items():
    register_extension(_name, partial(_load, _place))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        setattr(sys.modules[__name__], name, value)
        return value
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f".{name}", __name__)
    raise AttributeError(describe_attribute(name, _HOMES))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
