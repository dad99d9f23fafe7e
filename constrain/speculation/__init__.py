"""Lossless speculative decoding: draft sources, draft trees, and their verification.

generate(..., draft="prompt")                                   sources by name (`generation.draft_plan`)
generate(..., draft=[PromptLookup(), SuffixHistory()])          sources with settings of their own
class Mine: propose(context, matcher, limit), observe(tokens)   a `DraftSource`
"""

from __future__ import annotations

from .adaptive_drafts import AdaptiveDrafts
from .combined_drafts import ForcedFirst, MergedDrafts
from .draft_source import DraftSource, DraftTree
from .forced_drafts import ForcedDrafts
from .model_drafts import ModelDrafts
from .prompt_lookup import PromptLookup
from .suffix_lookup import SuffixHistory
from .text_drafts import TextDrafts
from .token_recycling import SuccessorMatrix

__all__ = [
    "AdaptiveDrafts",
    "DraftSource",
    "DraftTree",
    "ForcedDrafts",
    "ForcedFirst",
    "MergedDrafts",
    "ModelDrafts",
    "PromptLookup",
    "SuccessorMatrix",
    "SuffixHistory",
    "TextDrafts",
]
