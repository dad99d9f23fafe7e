"""The argument `draft=` of `generate` and `Engine`: from what the user names to a draft source for each text.

    None, "constraint"           forced text only
    "prompt"                     what followed the text's last tokens in the prompt or in the text itself
    "suffix"                     the same in all texts so far, as a tree
    "recycling"                  the likeliest successors of tokens in the model's earlier rows, as a tree
    a model or its name          a draft model, of the same vocabulary or of another
    a list of DraftSource        their union
    "none", or an empty list     nothing, not even forced text

Each is preceded by forced text, and asked for as many tokens as its acceptance is worth (`AdaptiveDrafts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from ..base.errors import ConstrainError, UnsupportedError, describe_value
from ..integrations.transformers_models import LoadedModel, as_loaded, load_model
from ..sampling import LanguageModel
from ..sampling.core.masked_sampling import Proposal
from ..speculation.adaptive_drafts import AdaptiveDrafts
from ..speculation.combined_drafts import ForcedFirst, MergedDrafts
from ..speculation.draft_filter import FilteredDrafts
from ..speculation.draft_source import DraftSource, EmptyDrafts
from ..speculation.forced_drafts import ForcedDrafts
from ..speculation.model_drafts import ModelDrafts
from ..speculation.prompt_lookup import PromptLookup
from ..speculation.suffix_lookup import SuffixHistory
from ..speculation.text_drafts import TextDrafts
from ..speculation.token_recycling import SuccessorMatrix
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["FORCED_TEXT", "Draft", "DraftPlan", "check_draft_sampler", "check_forced_drafts", "plan_drafts"]

Draft = Any
"""What `draft=` takes, see the module."""
NAMES = ("constraint", "prompt", "suffix", "recycling", "none")
PASS_ROWS = 24
"""About how many rows cost as much as a forward pass costs besides its rows."""
ROW_COST = 1 / (1 + PASS_ROWS)
"""Cost of one more row of the target's forward pass, as a share of a pass with one row."""
UNKNOWN_COST = 0.25
"""Cost of a token of a draft model whose size is not known, as a share of a pass of the target."""
DRAFT_SEEDS = 2**31
"""Place of the seeds of drafts among those that a text's seed spawns: further than any text's."""

StartSource = Callable[[Sequence[int], Proposal, np.random.Generator], DraftSource]
"""Makes the source of one text from the tokens of its prompt, its sampling options and a random generator."""


@dataclass(frozen=True)
class DraftPlan:
    """How the texts of a call, or of an Engine, are drafted. What sources learn is shared by all of these texts."""

    start_source: StartSource

    def start_request(
        self, prompt: Sequence[int], proposal: Proposal, seed: np.random.SeedSequence
    ) -> Callable[[], DraftSource]:
        """Return a function that makes the source of each text of a request.

        seed: that of the request. Drafts are drawn with other random numbers than texts, so that a text does not
        depend on whether it was drafted.
        """
        root = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, DRAFT_SEEDS))

        def start() -> DraftSource:
            return self.start_source(prompt, proposal, np.random.default_rng(root.spawn(1)[0]))

        return start


FORCED_TEXT = DraftPlan(lambda prompt, proposal, rng: ForcedDrafts())
"""The plan of forced text only."""
NOTHING = DraftPlan(lambda prompt, proposal, rng: EmptyDrafts())
"""The plan without drafts."""


def check_draft_sampler(draft: Draft, sampler: str) -> None:
    """Raise UnsupportedError if a draft is given with a sampler that has none."""
    if draft is not None and sampler not in ("masked", "auto"):
        raise UnsupportedError(f"the sampler {sampler!r} has no drafts", hint='Remove draft=, or use sampler="masked".')


def check_forced_drafts(forced: str, draft: Draft) -> None:
    """Raise UnsupportedError if a draft is given with forced runs, which leave no place for it."""
    if forced != "sample" and draft not in (None, "constraint", FORCED_TEXT):
        raise UnsupportedError(f"forced={forced!r} was given with draft=", hint="Leave one of them out (draft=None).")


def plan_drafts(draft: Draft, target: Any, vocabulary: Vocabulary) -> DraftPlan:
    """Return the plan of a `draft=` argument.

    Parameters
    ----------
    draft : str, path, model, LoadedModel, LanguageModel, list of DraftSource, DraftPlan, or None
        See the module. A string that is not one of the names is a folder, a hub id or "demo".
    target : object
        The model that writes the texts. If it has an attribute `model`, its size is compared with the draft model's.
    vocabulary : Vocabulary
        Its vocabulary.

    Returns
    -------
    DraftPlan

    Raises
    ------
    TypeError
        If `draft` is none of these.
    ConstrainError
        If the draft model cannot be loaded.
    """
    if isinstance(draft, DraftPlan):
        return draft
    if draft is None:
        return FORCED_TEXT
    if isinstance(draft, str) and draft in NAMES:
        return plan_named(draft, vocabulary)
    if isinstance(draft, (list, tuple)):
        return plan_sources([check_source(source) for source in draft]) if draft else NOTHING
    if is_source(draft):
        return plan_sources([draft])
    if isinstance(draft, LanguageModel) and not isinstance(draft, type):
        return plan_language_model(draft, vocabulary)
    return plan_model(resolve_draft_model(draft), target, vocabulary)


def plan_named(name: str, vocabulary: Vocabulary) -> DraftPlan:
    """Return the plan of one of NAMES."""
    if name == "constraint":
        return FORCED_TEXT
    if name == "none":
        return NOTHING
    if name == "prompt":
        return plan_sources([PromptLookup()])
    return plan_sources([SuffixHistory() if name == "suffix" else SuccessorMatrix(vocabulary.size)])


def is_source(value: object) -> bool:
    """Return whether a value is a DraftSource, or makes one for each text."""
    return not isinstance(value, type) and (isinstance(value, DraftSource) or hasattr(value, "start_text"))


def check_source(source: Any) -> Any:
    """Return an item of a list of sources. Raise TypeError if it is none."""
    if not is_source(source):
        raise TypeError(f"draft has {describe_value(source)}: it is a list of DraftSource, such as [PromptLookup()]")
    return source


def resolve_draft_model(draft: Any) -> LoadedModel:
    """Return the LoadedModel of a draft model."""
    if isinstance(draft, LoadedModel):
        return draft
    if isinstance(draft, (str, PathLike)):
        try:
            return load_model(draft)
        except ConstrainError as error:
            raise ConstrainError(
                f"the draft model could not be loaded: {error}", hint=f"Other drafts are {', '.join(map(repr, NAMES))}."
            ) from error
    if hasattr(draft, "generate") and hasattr(draft, "config") and not isinstance(draft, type):
        return as_loaded(draft)
    raise TypeError(
        f"draft is {describe_value(draft)}: give {', '.join(map(repr, NAMES))}, a model, or a list of DraftSource"
    )


def plan_sources(sources: Sequence[Any], cost: float = ROW_COST) -> DraftPlan:
    """Return the plan of forced text followed by the union of sources. Those with a method `start_text` are asked for
    a source of each text; others serve all texts.
    """

    def start(prompt: Sequence[int], proposal: Proposal, rng: np.random.Generator) -> DraftSource:
        started = [one.start_text(prompt, rng) if hasattr(one, "start_text") else one for one in sources]
        merged = started[0] if len(started) == 1 else MergedDrafts(started)
        return ForcedFirst(AdaptiveDrafts(FilteredDrafts(merged), cost, PASS_ROWS))

    return DraftPlan(start)


def plan_language_model(lm: LanguageModel, vocabulary: Vocabulary) -> DraftPlan:
    """Return the plan of a draft model that holds its own prompt and has the vocabulary of the target."""

    def start(prompt: Sequence[int], proposal: Proposal, rng: np.random.Generator) -> DraftSource:
        source = ModelDrafts(
            lm, prompt_length=len(prompt), size=vocabulary.size, ends=vocabulary.eos_ids, rng=rng, proposal=proposal
        )
        return ForcedFirst(AdaptiveDrafts(source, ROW_COST + UNKNOWN_COST))

    return DraftPlan(start)


def plan_model(draft: LoadedModel, target: Any, vocabulary: Vocabulary) -> DraftPlan:
    """Return the plan of a draft model of transformers, of the vocabulary of the target or of another."""
    same = have_same_tokens(draft.vocabulary, vocabulary)
    model = getattr(target, "model", None)
    cost = ROW_COST + (estimate_cost(draft.model, model) if hasattr(model, "get_input_embeddings") else UNKNOWN_COST)

    def start(prompt: Sequence[int], proposal: Proposal, rng: np.random.Generator) -> DraftSource:
        source: DraftSource
        if same:
            source = ModelDrafts(
                draft.on(list(prompt)), prompt_length=len(prompt), size=vocabulary.size, ends=vocabulary.eos_ids,
                rng=rng, proposal=proposal,
            )  # fmt: skip
        else:
            source = TextDrafts(
                draft.on(vocabulary.decode(prompt)), draft_vocabulary=draft.vocabulary, vocabulary=vocabulary,
                prompt_length=len(prompt),
            )  # fmt: skip
        return ForcedFirst(AdaptiveDrafts(source, cost))

    return DraftPlan(start)


def have_same_tokens(first: Vocabulary, second: Vocabulary) -> bool:
    """Return whether two vocabularies have the same tokens and end tokens, up to padding."""
    least = min(first.size, second.size)
    longer = first if first.size > least else second
    return (
        first.tokens[:least] == second.tokens[:least]
        and not any(longer.tokens[least:])
        and first.eos_ids == second.eos_ids
        and first.names == second.names
    )


def estimate_cost(draft: Any, target: Any) -> float:
    """Return the cost of a token of a draft model, as a share of a forward pass of the target: the ratio of their
    parameters without input embeddings, and a quarter more for masks and sampling.
    """
    return max(0.02, 1.25 * count_parameters(draft) / max(count_parameters(target), 1))


def count_parameters(model: Any) -> int:
    """Return the number of parameters that a forward pass multiplies with."""
    total = sum(part.numel() for part in model.parameters())
    embeddings = model.get_input_embeddings()
    tied = model.get_output_embeddings() is not None and model.get_output_embeddings().weight is embeddings.weight
    return int(total - (0 if tied else embeddings.weight.numel()))
