"""`generate` for one prompt and one constraint: selects a sampler, draws, and returns the accepted texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import Any

from ..base.errors import Refusal
from ..base.json_documents import References
from ..decoding.outcomes import Outcome
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..integrations.transformers_models import LoadedModel
from ..sampling.core.masked_sampling import Proposal
from ..sampling.sampler_choice import SamplerChoice
from ..sampling.sampling_target import MODEL_TARGET, SamplingTarget
from ..vocabulary.vocabulary import Vocabulary
from .answer_source import AnswerSource
from .captured_values import build_request_program
from .checked_generation import check_mask_order, find_mask_option
from .draft_plan import check_draft_sampler
from .drawn_texts import DrawnTexts, draw_accepted
from .finished_texts import DrawOutcomes, make_sampler_draw, select_sampler
from .generation_arguments import (
    ConstraintRequest,
    build_request,
    check_arguments,
    check_target,
    check_types,
    is_checked_after,
    list_masked_options,
)
from .generation_result import Generation, weigh_outcomes
from .healed_prompts import check_healing_sampler
from .list_generation import LOADING, generate_batch, is_batched
from .model_preparation import (
    PreparedPrompt,
    PromptOptions,
    bind_check,
    compile_request,
    limit_tokens,
    prepare_prompt,
    resolve_model,
)
from .refused_texts import accept_text
from .search_arguments import check_search
from .token_options import build_proposal, build_token_choice, find_biased_tokens, replace_end_tokens
from .type_styles import choose_style

__all__ = ["generate_one"]


def generate_one(model: Any, prompt: Any, arguments: Mapping[str, Any]) -> Generation[Any] | list[Generation[Any]]:
    """Return a Generation, or a list of n.

    arguments: all keyword arguments of `generate` by name.
    """
    names = ("schema", "regex", "grammar", "choices", "type", "import_paths")
    request = build_request(*(arguments[name] for name in names))
    choice = check_options(prompt, arguments)
    check_search(choice, arguments)
    check_healing_sampler(arguments["heal"], arguments["sampler"])
    check_mask_order(arguments, choice)
    check_target(arguments["target"], arguments, choice)
    if is_batched(arguments):
        generations: Generation[Any] | list[Generation[Any]] = generate_batch(model, prompt, arguments)
        return generations
    prompting = PromptOptions.of(*(arguments[name] for name in ("chat", "show_constraint", "retry_prompt")))
    resolved = resolve_model(model, **{name: arguments[name] for name in LOADING})
    call = SingleCall(prepare_prompt(resolved, prompt, request, prompting), request, choice, arguments)
    if call.is_batched:
        generations = generate_batch(model, prompt, {**arguments, "sampler": "masked"})
    else:
        drawn = call.draw_texts().generations
        generations = drawn[0] if arguments["n"] is None else drawn
    for one in generations if isinstance(generations, list) else [generations]:
        one.stats.sampler, one.stats.reason = call.selected.sampler, call.selected.reason
    return generations


def check_options(prompt: Any, arguments: Mapping[str, Any]) -> TokenChoice:
    """Check the arguments that need no model, and return those that choose tokens."""
    given = dict(arguments)
    names = ("style", "limits", "n", "max_tokens", "seed", "stream")
    check_types(**{name: given[name] for name in names}, prompt=prompt)
    proposal = build_proposal(*(given[name] for name in ("temperature", "top_k", "top_p", "min_p")))
    penalties = ("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "stop", "forced")
    choice = build_token_choice(proposal, **{name: given[name] for name in penalties})
    check_draft_sampler(given["draft"], given["sampler"])
    checked = ("sampler", "n", "max_tokens", "particles", "stream", "check", "retries")
    check_arguments(choice=choice, **{name: given[name] for name in checked})
    return choice


def find_target(target: SamplingTarget, sampler: str, proposal: Proposal) -> SamplingTarget:
    """Return the target of a call. A temperature is a proposal of the sampler "masked", and part of the target of all
    others.
    """
    if sampler in ("masked", "auto") or proposal.temperature == 1:
        return target
    return replace(target, temperature=target.temperature * proposal.temperature)


class SingleCall:
    """A call of `generate` whose sampler may not be "masked".

    Attributes
    ----------
    selected : SamplerChoice
        The sampler, with the reason if it was selected automatically.
    is_batched : bool
        Whether masked sampling was selected, which `generate_batch` does.
    """

    def __init__(
        self, prepared: PreparedPrompt, request: ConstraintRequest, choice: TokenChoice, arguments: Mapping[str, Any]
    ) -> None:
        self.prepared, self.request, self.arguments = prepared, request, arguments
        model = prepared.model
        known = model.vocabulary if isinstance(model, LoadedModel) else arguments["tokenizer"]
        self.vocabulary: Vocabulary = replace_end_tokens(known, arguments["eos_ids"])
        self.choice = find_biased_tokens(choice, arguments["logit_bias"], self.vocabulary)
        start = perf_counter_ns()
        references = References(arguments["registry"], arguments["base_uri"])
        self.constraint: Constraint = compile_request(
            self.vocabulary, request, choose_style(request, arguments["style"]), references, arguments["limits"]
        )
        self.captures = build_request_program(request, self.vocabulary, arguments["limits"])
        self.compile_us = (perf_counter_ns() - start) / 1e3
        self.lm = prepared.after_prompt(self.choice.adjustment)
        masked_options = list_masked_options(choice, arguments["stream"], arguments["heal"])
        check = arguments["check"]
        self.target = find_target(arguments["target"], arguments["sampler"], choice.proposal)
        unchanged = self.target == MODEL_TARGET
        checked_after = is_checked_after(arguments["sampler"], masked_options) and unchanged
        vocabulary = self.constraint.vocabulary
        self.checker = None if check is None or checked_after else bind_check(check, vocabulary)
        self.selected: SamplerChoice = select_sampler(
            self.target.change_model(self.lm), self.constraint, arguments["sampler"],
            particles=arguments["particles"], checker=self.checker, seed=arguments["seed"],
            max_tokens=limit_tokens(self.lm, arguments["max_tokens"]), masked_options=masked_options,
            critic=self.target.critic,
        )  # fmt: skip
        self.is_batched = self.selected.sampler == "masked" and unchanged

    def draw_texts(self) -> DrawnTexts:
        """Draw texts until the requested number is accepted, and complete their statistics."""
        draw, n = self.make_draw(), self.arguments["n"]
        source = AnswerSource(self.constraint, partial(self.prepared.after_prompt, self.choice.adjustment))

        def draw_again(tries: Sequence[tuple[Refusal, ...]]) -> tuple[list[Outcome], int]:
            if self.prepared.retry_prompt is None or not any(tries):
                return draw(self.lm, len(tries))
            drawn = [draw(self.prepared.after_prompt(self.choice.adjustment, refusals), 1) for refusals in tries]
            return [one for outcomes, _ in drawn for one in outcomes], sum(unfinished for _, unfinished in drawn)

        texts = draw_accepted(
            draw_again,
            lambda outcome: accept_text(outcome, self.request, None, self.vocabulary, self.captures, source),
            1 if n is None else n,
            0 if self.selected.sampler == "without_replacement" else self.arguments["retries"],
        )
        self.complete_stats(texts, 1 if n is None else n)
        return texts

    def make_draw(self) -> DrawOutcomes:
        """Return the function that draws texts."""
        seed, max_tokens, masks = (self.arguments[name] for name in ("seed", "max_tokens", "masks"))
        sampler, checker = self.selected.sampler, self.checker
        options = {**self.selected.options, **find_mask_option(sampler, checker, masks), "checker": checker}
        options["target"] = self.target
        if sampler == "masked":
            options["proposal"] = self.choice.proposal
        return make_sampler_draw(self.constraint, sampler, seed, max_tokens, options)

    def complete_stats(self, texts: DrawnTexts, count: int) -> None:
        """Add what concerns all texts of the call to the statistics of each."""
        others = texts.unfinished + texts.refused
        weights = weigh_outcomes(
            texts.outcomes, others, self.choice.proposal, self.selected.sampler, count, self.target
        )
        for outcome in texts.outcomes:
            stats = outcome.stats
            stats.counts = {**stats.counts, "unfinished": texts.unfinished, "refused": texts.refused}
            stats.compile_us, stats.weights = self.compile_us, weights
