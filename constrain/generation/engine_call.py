"""A call of an Engine: its arguments, checked and prepared, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from time import perf_counter_ns
from typing import Any, Literal, TypedDict

import numpy as np

from ..base.errors import ArgumentError, Refusal
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..checking.checked_sampling import MaskOrder
from ..deciding import Decision
from ..decoding.model_runner import ModelRunner
from ..decoding.token_choice import TokenChoice
from ..engine.length_limits import make_full_error
from ..forms.sources import free_text
from ..integrations.transformers_models import LoadedModel
from ..sampling import LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .answer_source import AnswerSource
from .captured_values import build_request_program
from .checked_generation import TokenChecks, check_mask_order, is_guiding
from .draft_plan import Draft, check_forced_drafts, plan_drafts
from .drawn_texts import DrawnTexts
from .generation_arguments import Check, ConstraintRequest, check_arguments, check_types, read_iterator
from .generation_result import weigh_outcomes
from .healed_prompts import check_healing, heal_request
from .masked_batches import BatchPrompt, EncodedPrompt
from .model_preparation import PreparedPrompt, PromptOptions, compile_request, prepare_prompt
from .prompt_composition import PromptTemplate
from .prompt_lists import Prompts, is_constraint_list, is_prompt_list, pair_prompts
from .search_arguments import Search, TextSearch, check_search, merge_search
from .token_options import build_proposal, build_token_choice, find_biased_tokens, replace_end_tokens
from .type_styles import choose_style

__all__ = ["EngineCall", "EngineOptions", "PromptResult", "prepare_call"]

ANY_TEXT = ConstraintRequest(grammar=free_text())
"""The constraint of checked texts without another one."""
ErrorHandling = Literal["raise", "return"]
PromptResult = Any
"""A Generation, a list of n, or (with errors="return") the exception of a prompt."""


class EngineOptions(TypedDict, total=False):
    """The keyword arguments of `Engine.generate`, `agenerate` and `stream`; as those of `constrain.generate`.

    schema, regex, grammar, choices, type: one constraint for all prompts, or a list of one for each prompt, None for
    an unconstrained text. Without any, all texts are unconstrained. seed: one for the call, or a list of one for each
    prompt. draft: by default that of the Engine. errors: "raise" the first error of a text, or "return" it in place of
    the results of its prompt.
    """

    schema: Any
    regex: Any
    grammar: Any
    choices: Any
    type: Any
    style: Style
    registry: Mapping[str, Any] | None
    base_uri: str
    import_paths: Sequence[str | PathLike[str]]
    limits: Limits
    n: int | None
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
    check: Check | None
    masks: MaskOrder
    search: Search | None
    decide: str | Decision | None
    retries: int
    retry_prompt: str | None
    chat: str
    heal: str
    forced: str
    show_constraint: PromptTemplate | str | None
    seed: int | Sequence[int | None] | None
    draft: Draft
    errors: ErrorHandling


@dataclass(frozen=True)
class EngineCall:
    """A prepared call.

    vocabulary: with the end tokens of the call. prompts, compile_us: for each prompt what is drawn, and how long its
    constraint took to compile. n: as in the call. is_list: whether results are listed by prompt. search: how texts are
    searched for, if they are not drawn.
    """

    vocabulary: Vocabulary
    prompts: Sequence[BatchPrompt]
    compile_us: Sequence[float]
    choice: TokenChoice
    n: int | None
    is_list: bool
    errors: ErrorHandling
    search: TextSearch | None = None

    @property
    def count(self) -> int:
        """The number of texts for each prompt."""
        return 1 if self.n is None else self.n

    def collect(self, drawn: Sequence[DrawnTexts]) -> PromptResult:
        """Return the results of the call: of its prompt, or a list of those of its prompts."""
        results = [self.collect_prompt(number, texts) for number, texts in enumerate(drawn)]
        return results if self.is_list else results[0]

    def collect_prompt(self, number: int, texts: DrawnTexts) -> PromptResult:
        """Return the results of one prompt."""
        try:
            if texts.error is not None:
                raise texts.error
            self.complete_stats(number, texts)
            made = texts.generations
            return made[0] if self.n is None else made
        except Exception as error:
            if self.errors == "raise":
                raise
            return error

    def complete_stats(self, number: int, texts: DrawnTexts) -> None:
        """Add what concerns all texts of a prompt to the statistics of each."""
        others = texts.unfinished + texts.refused
        weights = weigh_outcomes(texts.outcomes, others, self.choice.proposal, "masked", self.count)
        for outcome in texts.outcomes:
            stats = outcome.stats
            stats.counts = {**stats.counts, "unfinished": texts.unfinished, "refused": texts.refused}
            stats.weights, stats.compile_us = weights, self.compile_us[number]


def prepare_call(
    loaded: LoadedModel | LanguageModel, vocabulary: Vocabulary, runner: ModelRunner, prompts: Prompts, /, *,
    schema: Any = None, regex: Any = None, grammar: Any = None, choices: Any = None, type: Any = None,
    style: Style = Style(), registry: Mapping[str, Any] | None = None, base_uri: str = "",
    import_paths: Sequence[str | PathLike[str]] = (), limits: Limits = Limits(), n: int | None = None,
    max_tokens: int = 512, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None, repetition_penalty: float = 1.0, presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0, logit_bias: Mapping[int | str, float] | None = None,
    stop: str | Sequence[str] | None = None, eos_ids: Sequence[int] | None = None, check: Check | None = None,
    masks: MaskOrder = "first", search: TextSearch | None = None, decide: Any = None, retries: int = 3,
    retry_prompt: str | None = None, chat: str = "plain", heal: str = "none", forced: str = "sample",
    show_constraint: PromptTemplate | str | None = None, seed: int | Sequence[int | None] | None = None,
    draft: Draft = None, errors: ErrorHandling = "raise",
) -> EngineCall:  # fmt: skip
    """Check the arguments of a call, compile its constraints and encode its prompts."""
    search = merge_search(search, decide)
    given = {"schema": schema, "regex": regex, "grammar": grammar, "choices": read_iterator(choices), "type": type}
    paired = pair_prompts(prompts, given, import_paths)
    is_list = is_prompt_list(prompts) or any(is_constraint_list(name, value) for name, value in given.items())
    for prompt, _ in paired:
        check_types(style, limits, n, max_tokens, None, None, prompt)
    if errors not in ("raise", "return"):
        raise ArgumentError(f"errors is {errors!r}", hint='Give "raise" or "return".')
    choice = build_token_choice(
        build_proposal(temperature, top_k, top_p, min_p), repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty, frequency_penalty=frequency_penalty, logit_bias=logit_bias, stop=stop,
        forced=forced,
    )  # fmt: skip
    check_arguments(
        sampler="masked", n=n, max_tokens=max_tokens, particles=None, choice=choice, stream=None, check=check,
        retries=retries,
    )  # fmt: skip
    check_healing(heal, loaded, retry_prompt)
    check_mask_order({"masks": masks, "sampler": "masked", "search": search, "check": check, "heal": heal}, choice)
    check_search(choice, {"search": search, "draft": draft, "retry_prompt": retry_prompt})
    check_forced_drafts(forced, draft)
    prompting = PromptOptions.of(chat, show_constraint, retry_prompt)
    vocabulary = replace_end_tokens(vocabulary, eos_ids)
    choice, drafts = find_biased_tokens(choice, logit_bias, vocabulary), plan_drafts(draft, loaded, vocabulary)
    checks = TokenChecks(check, vocabulary, masks) if check is not None and is_guiding(check, choice, heal) else None
    references, texts, times, prefix = References(registry, base_uri), [], [], b""
    for (prompt, request), source in zip(paired, make_seeds(seed, len(paired))):
        start = perf_counter_ns()
        compiled = ANY_TEXT if request is None and checks is not None else request
        constraint = (
            None
            if compiled is None
            else compile_request(vocabulary, compiled, choose_style(compiled, style), references, limits)
        )
        captures = None if request is None else build_request_program(request, vocabulary, limits)
        times.append((perf_counter_ns() - start) / 1e3)
        prepared = prepare_prompt(loaded, prompt, request, prompting)
        encode = PromptEncoder(prepared, runner, max_tokens)
        ids, most, positions_left = encode(())
        if heal != "none":
            ids, constraint, prefix = heal_request(vocabulary, ids, constraint, limits)
            prepared = replace(prepared, prompt=ids)
        source_of_texts = AnswerSource(
            None if request is None else constraint, partial(prepared.after_prompt, choice.adjustment)
        )
        texts.append(
            BatchPrompt(
                ids, constraint, most, source, request=request, check=None if checks is not None else check,
                token_check=None if checks is None else checks.make_check(len(prefix)), retries=retries,
                prompt_after=None if retry_prompt is None else encode, prefix=prefix, captures=captures, drafts=drafts,
                source=source_of_texts, positions_left=positions_left,
            )
        )  # fmt: skip
    return EngineCall(vocabulary, texts, times, choice, n, is_list, errors, search)


@dataclass(frozen=True, slots=True)
class PromptEncoder:
    """Encodes a prompt, with the refusals of earlier tries if they are to be in it."""

    prepared: PreparedPrompt
    runner: ModelRunner
    max_tokens: int

    def __call__(self, refusals: tuple[Refusal, ...]) -> EncodedPrompt:
        """Return the prompt. Raise LimitError if the model has no positions for a text after it."""
        ids = self.prepared.encode(refusals)
        left = self.runner.count_positions_left(ids)
        if left is not None and left < 1:
            raise make_full_error("the prompt")
        return EncodedPrompt(ids, self.max_tokens if left is None else min(left, self.max_tokens), left)


def make_seeds(seed: int | Sequence[int | None] | None, count: int) -> list[np.random.SeedSequence]:
    """Return a source of seeds for each prompt.

    One seed for all gives the first prompt what a call with that prompt alone gives, and the others independent ones
    that depend on their place only.
    """
    if isinstance(seed, (list, tuple)):
        if len(seed) != count:
            raise ArgumentError(f"there are {len(seed)} seeds for {count} prompts")
        seeds = list(seed)
    else:
        seeds = [seed]
    for one in seeds:
        check_types(Style(), Limits(), None, 1, one, None, None)
    if isinstance(seed, (list, tuple)):
        return [np.random.SeedSequence(one) for one in seeds]
    root = np.random.SeedSequence(seeds[0])  # type: ignore[arg-type]
    return [root, *(np.random.SeedSequence(root.entropy, spawn_key=(0, place)) for place in range(1, count))]
