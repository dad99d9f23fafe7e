"""High-level text generation: `generate` takes a model, a prompt and a constraint, and returns text that satisfies it.

model, tokenizer  ->  LoadedModel  ->  prompt, runner  --+
schema | regex | grammar | choices | type  ->  Constraint +->  scheduler or sampler  ->  accepted texts  ->  Generation

The steps are `generation_arguments`, `token_options` and `prompt_composition` (checks), `model_preparation` (model,
prompt, constraint), `list_generation` (masked sampling, as a batch) or `single_generation` (other samplers),
`drawn_texts` (refused texts are drawn again) and `generation_result`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..base.errors import check_choice
from ..base.keyword_names import explain_keywords
from ..base.options import Limits, Style
from ..checking.checked_sampling import MaskOrder
from ..deciding import Decision
from ..decoding.outcomes import Piece
from ..integrations.transformers_models import Prompt
from ..sampling.sampling_target import MODEL_TARGET, SamplingTarget
from .draft_plan import Draft
from .generation_arguments import Check, check_places, check_sampler_name, read_iterator
from .generation_result import Generation
from .list_generation import generate_lists, has_lists
from .prompt_composition import PromptTemplate
from .prompt_lists import Prompts
from .search_arguments import Search, merge_search
from .single_generation import generate_one
from .text_options import TextOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Generation", "generate"]

T = TypeVar("T")


@overload
def generate(
    model: Any, prompt: Prompt = None, *, type: type[T], n: None = None, **options: Unpack[TextOptions]
) -> Generation[T]: ...
@overload
def generate(
    model: Any, prompt: Prompt = None, *, type: type[T], n: int, **options: Unpack[TextOptions]
) -> list[Generation[T]]: ...
@overload
def generate(
    model: Any, prompt: Prompt = None, *, type: None = None, n: None = None, **options: Unpack[TextOptions]
) -> Generation[Any]: ...
@overload
def generate(
    model: Any, prompt: Prompt = None, *, type: None = None, n: int, **options: Unpack[TextOptions]
) -> list[Generation[Any]]: ...
@overload
def generate(
    model: Any, prompt: Prompts = None, *, type: Any = None, n: int | None = None, **options: Unpack[TextOptions]
) -> Any: ...
@explain_keywords
def generate(
    model: Any,
    prompt: Prompts = None,
    *,
    schema: Any = None,
    regex: str | Sequence[str | None] | None = None,
    grammar: Any = None,
    choices: Iterable[Any] | None = None,
    type: Any = None,
    tokenizer: Any = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits = Limits(),
    sampler: str = "masked",
    particles: int | None = None,
    target: SamplingTarget = MODEL_TARGET,
    check: Check | None = None,
    masks: MaskOrder = "first",
    retries: int = 3,
    retry_prompt: str | None = None,
    n: int | None = None,
    max_tokens: int = 512,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    logit_bias: Mapping[int | str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    eos_ids: Sequence[int] | None = None,
    seed: int | None = None,
    stream: Callable[[Piece], None] | None = None,
    search: Search | None = None,
    decide: str | Decision | None = None,
    draft: Draft = None,
    chat: str = "plain",
    heal: str = "none",
    forced: str = "sample",
    show_constraint: PromptTemplate | str | None = None,
    dtype: Any = None,
    device: Any = None,
    device_map: Any = None,
) -> Any:
    """Generate text that satisfies exactly one of schema, regex, grammar, choices or type.

    Several prompts, or one prompt under several constraints, are one batch: give lists. `Engine` keeps the model's
    caches and scheduler for further calls, also from other threads and tasks.

    The parameters are, in this order: the model and its prompt; the constraint; how the distribution is sampled; what
    is accepted; how many texts, and how long; how tokens are chosen; where a text ends.

    Parameters
    ----------
    model : object
        "demo", a folder, a hub id, a loaded transformers model (with `tokenizer`), a `LoadedModel`, or any
        `LanguageModel` (with a Vocabulary as `tokenizer`, and without a prompt: the model holds its own).
    tokenizer : object, optional
        The tokenizer or Vocabulary of the model.
    dtype, device, device_map : optional
        As for `load_model`, for a model given by name.
    prompt : str, list of messages, token ids, optional; or a list of these
        A text is passed to the model unchanged, messages are rendered by the tokenizer's chat template. A prompt that
        exceeds the model's context is refused.
    chat : {"plain", "template"}
        "template" renders a text by the chat template, too, as one message of the user.
    heal : {"none", "prompt"}
        "prompt" takes back the tokens at the end of the prompt that the tokenizer could merge with the text, and
        constrains the text to begin with their bytes, which are not part of the result (token healing, see
        `decoding.prompt_healing`). The tokens of the Generation spell them, too, and count towards max_tokens.
    show_constraint : PromptTemplate or str, optional
        Shows the constraint to the model: a `PromptTemplate`, such as the default ``PromptTemplate()``, or a text with
        the fields {prompt} and {constraint}. By default only the embedded model, which was trained on one prompt
        format, is shown it.

    schema : object, optional
        A JSON Schema, or a Python type. This and the next four may be lists of one constraint for each prompt, None for
        an unconstrained text.
    regex : str, optional
        A regular expression.
    grammar : object, optional
        Lark or GBNF text, the name of a built-in grammar (`constrain.grammars`), a Form, or a Grammar of nodes.
    choices : iterable of str, optional
        The allowed texts.
    type : object, optional
        A Python type.
    style : Style
        How JSON is written. By default `Style()`, and for a bare type without fields, such as `type=int` or
        `type=list[float]`, `Style(digits=18)`.
    registry : mapping, optional
        Documents by URI, for references in the schema.
    base_uri : str
        The URI that references in the schema are relative to.
    import_paths : sequence of path
        Folders that `%import` in a Lark grammar reads from.
    limits : Limits
        Resource limits of compilation and matching.

    sampler : str
        Determines how close the distribution of the texts is to p given L, the model's distribution conditioned on the
        constraint (docs/how-to/sample-faithfully.md). "masked" is fast, but biased, as `log_weight` records. It is the
        only sampler that streams, that closes a text within max_tokens (the others draw only texts that end by
        themselves), and that supports top_k, top_p, min_p and stop. "exact" samples from p given L;
        "without_replacement" does too and returns n different texts, or fewer if there are fewer; "smc" and "pimh" use
        populations of `particles`. "auto" selects a sampler (`sampling.sampler_choice`); `stats.reason` says why. For
        the others see `sampling`.
    particles : int, optional
        Number of particles of the samplers that use populations, 16 by default.
    target : SamplingTarget
        What is drawn from, for every sampler: the model as wrapped, at a temperature, and weighted by a critic. With
        "masked", texts are then drawn again instead of being closed, and not streamed, searched, healed or drafted.
        (For beams, see `BeamSearch.critic`.)

    check : callable, TextChecker or Checker, optional
        A further condition: a function of the complete text, which returns a bool or raises a ValueError with the
        reason; or a `checking.TextChecker` ("ok", "dead" or "complete") or `sampling.Checker`, which also judge
        prefixes. With "masked" a function is called for complete texts, and a text that it rejects is drawn again. All
        others guide the choice of each token: they are called only for what the mask allows, and what they reject is
        not tried again; an exception of a TextChecker ends the call. (With stop=, or with forced= other than
        "sample", they are also called for complete texts only.)
    masks : {"first", "after"}
        For a check of prefixes, and the sampler "masked" or "awrs": whether the mask is applied before a token is
        checked, or after it.
    retries : int
        How often a text is drawn again if a validator of the type, or with "masked" the check, refuses it; the reasons
        are in `Generation.refusals`. The draws are independent, so with "exact" the accepted texts are exact. With
        "without_replacement" a refused text is not drawn again.
    retry_prompt : str, optional
        Template of a message with the fields {text} and {reason}, by which a conversation of messages is continued
        before the next try. The tries are then not independent.

    n : int, optional
        Number of independent texts. None returns one Generation, an int (also 1) a list.
    max_tokens : int
        Maximum number of tokens per text, end token included; lowered to the number of positions the model has left.
        Texts are always complete: one that would not end in time is closed early (finish_reason "budget"), or, with
        other samplers, drawn again.
    seed : int, optional
        The same seed gives the same texts. With "smc" and "pimh", a call with a seed makes no use of what calls before
        it have learned for the constraint (`sampling.learned_twist`).
    stream : callable, optional
        Called with each `Piece` as it is generated. Pieces of several texts alternate; each says its prompt and sample.
    search : BeamSearch, BestFirst or StochasticBeams, optional
        Search for likely texts instead of sampling (docs/how-to/search-with-beams.md); n is then the most texts that
        are returned, best first. `stats.counts` has the ``score`` of each, and whether they are ``optimal``.
    decide : {"mbr", "phi", "astar", "superposed"} or a decision rule, optional
        Decide among valid answers instead of drawing one (docs/how-to/decide-among-answers.md): a name, for a rule with
        its defaults, or `MinimumBayesRisk`, `PhiDecoding`, `AStarDecoding`, `PlanningGuided` or `Superposed`. As with
        search=, n is the most texts that are returned, best first, and ``stats.counts`` has the ``score`` of each.
    draft : str, model, list of DraftSource, optional
        What guesses tokens ahead, which the model then verifies in one pass (docs/how-to/draft-tokens.md). The
        distribution of the texts stays the same, and so do the texts themselves except with a draft model of the same
        vocabulary at temperatures above 0. "prompt" copies from the prompt, "suffix" from all texts of the call,
        "recycling" repeats the model's earlier guesses; a model or its name drafts by itself; "constraint", the
        default, drafts what the constraint forces, which precedes all others. Only the sampler "masked" has drafts.

    temperature, top_k, top_p, min_p
        How a token is chosen among the allowed ones, see `sampling.core.masked_sampling.Proposal`; temperature 0
        selects the likeliest. They change how texts are drawn, and log_weight corrects for it. With a sampler other
        than "masked", which follows the model's distribution, the temperature is that of the `target`.
    repetition_penalty, presence_penalty, frequency_penalty, logit_bias
        Adjust the model itself for every sampler, see `decoding.logit_adjustment.LogitAdjustment`. logit_bias maps
        tokens to numbers: ids, or texts that are one token.

    forced : {"sample", "canonical", "unscored"}
        How text is written that the constraint forces. "sample" draws its tokens from the model, in as few calls as
        possible: the distribution is that of one call per token. "canonical" appends the tokens that the tokenizer
        itself would choose, which takes fewer calls; `stats.forced_logprob` says how much the distribution of token
        strings changes, and log_weight corrects for it among these strings (see `decoding.forced_runs`). "unscored"
        draws the same texts as "canonical" and is the fastest: the model is fed the forced tokens and not asked for
        their probabilities, so that logprob and log_weight are nan.

    stop : str or sequence of str, optional
        The text ends before the first occurrence of one of them before which the constraint accepts the text; any other
        occurrence is ordinary text (finish_reason "stop", see `decoding.stop_strings`).
    eos_ids : sequence of int, optional
        The tokens that end a text, instead of those that the tokenizer and the model declare.

    Returns
    -------
    Generation or list of Generation
        For a list of prompts or of constraints, a list of these.

    Raises
    ------
    ConstrainError
        If an argument is invalid or the model cannot be loaded. `compile` errors are also raised.
    LimitError
        If the prompt exceeds the model's context, the shortest text does not fit in max_tokens, or too few texts end
        within it.
    ValueRefused
        If a validator of the type, or the check, refuses every try; the exception has the texts and the reasons.
    """
    check_sampler_name(sampler)
    arguments: dict[str, Any] = {
        "schema": schema, "regex": regex, "grammar": grammar, "choices": read_iterator(choices), "type": type,
        "tokenizer": tokenizer,
        "style": style, "registry": registry, "base_uri": base_uri, "import_paths": import_paths, "limits": limits,
        "sampler": sampler, "particles": particles, "target": target, "check": check, "masks": masks,
        "retries": retries, "retry_prompt": retry_prompt, "n": n, "max_tokens": max_tokens, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "min_p": min_p,
        "repetition_penalty": repetition_penalty, "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty, "logit_bias": logit_bias, "stop": stop, "eos_ids": eos_ids,
        "seed": seed, "stream": stream, "search": merge_search(search, decide),
        "draft": draft, "chat": chat, "heal": heal, "forced": forced,
        "show_constraint": show_constraint, "dtype": dtype, "device": device, "device_map": device_map,
    }  # fmt: skip
    check_choice("masks", masks, ("first", "after"))
    check_places(model, prompt)
    if has_lists(prompt, arguments):
        return generate_lists(generate, model, prompt, arguments)
    return generate_one(model, prompt, arguments)
