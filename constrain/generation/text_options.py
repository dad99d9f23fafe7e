"""The keyword arguments of `generate` by type, for the signatures that type checkers see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from ..base.options import Limits, Style
from ..checking.checked_sampling import MaskOrder
from ..deciding import Decision
from ..decoding.outcomes import Piece
from ..sampling.sampling_target import SamplingTarget
from .draft_plan import Draft
from .generation_arguments import Check
from .prompt_composition import PromptTemplate
from .search_arguments import Search

__all__ = ["TextOptions"]


class TextOptions(TypedDict, total=False):
    """The keyword arguments of `generate` but for `type` and `n`, which determine what it returns."""

    schema: Any
    regex: str | Sequence[str | None] | None
    grammar: Any
    choices: Iterable[Any] | None
    tokenizer: Any
    style: Style
    registry: Mapping[str, Any] | None
    base_uri: str
    import_paths: Sequence[str | PathLike[str]]
    limits: Limits
    sampler: str
    particles: int | None
    target: SamplingTarget
    check: Check | None
    masks: MaskOrder
    retries: int
    retry_prompt: str | None
    max_tokens: int
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int | str, float] | None
    stop: str | Sequence[str] | None
    eos_ids: Sequence[int] | None
    seed: int | None
    stream: Callable[[Piece], None] | None
    search: Search | None
    decide: str | Decision | None
    draft: Draft
    chat: str
    heal: str
    forced: str
    show_constraint: PromptTemplate | str | None
    dtype: Any
    device: Any
    device_map: Any
