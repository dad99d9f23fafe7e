"""`generate` with the sampler "masked": one batch for all prompts. Other samplers: one call after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..deciding import Superposed
from ..decoding.token_choice import PLAIN_CHOICE
from ..sampling.sampling_target import MODEL_TARGET
from .engine_call import PromptResult, prepare_call
from .finished_texts import draw_here
from .model_preparation import open_runner, open_superposed_models, resolve_model
from .prompt_lists import Prompts, is_constraint_list, is_prompt_list, pair_prompts
from .search_arguments import check_search
from .searched_texts import search_call
from .slot_model import open_models_here

__all__ = ["generate_batch", "generate_lists", "has_lists", "is_batched"]

CONSTRAINTS = ("schema", "regex", "grammar", "choices", "type")
NOT_BATCHED = ("sampler", "particles", "target")
"""Options that the batched loop does not have."""
LOADING = ("tokenizer", "dtype", "device", "device_map")


def has_lists(prompt: object, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call of `generate` has a list of prompts or of constraints."""
    return is_prompt_list(prompt) or any(is_constraint_list(name, arguments[name]) for name in CONSTRAINTS)


def is_batched(arguments: Mapping[str, Any]) -> bool:
    """Return whether a call of `generate` is one of the batched loop: masked sampling from the model as it is."""
    return bool(arguments["sampler"] == "masked" and arguments["target"] == MODEL_TARGET)


def generate_lists(
    generate: Callable[..., Any], model: Any, prompts: Prompts, arguments: Mapping[str, Any]
) -> list[Any]:
    """Return the results of each prompt.

    Parameters
    ----------
    generate : callable
        `generate` itself, for samplers that are not batched.
    model : object
        The model of the call.
    prompts : prompt or list of prompts
    arguments : mapping
        All keyword arguments of the call by name.
    """
    if is_batched(arguments) and arguments["particles"] is None:
        results: list[Any] = generate_batch(model, prompts, arguments)
        return results
    options = dict(arguments)
    given = {name: options.pop(name) for name in CONSTRAINTS}
    import_paths = options.pop("import_paths")
    return [
        generate(model, prompt, **({} if request is None else request.given), **options)
        for prompt, request in pair_prompts(prompts, given, import_paths)
    ]


def generate_batch(model: Any, prompts: Prompts, arguments: Mapping[str, Any]) -> PromptResult:
    """Return the results of a prompt, or a list of those of several, by masked sampling as one batch, or by a search.

    arguments: all keyword arguments of `generate` by name.
    """
    options = {name: value for name, value in arguments.items() if name not in (*NOT_BATCHED, *LOADING)}
    stream, loading = options.pop("stream"), {name: arguments[name] for name in LOADING}
    check_search(PLAIN_CHOICE, {"search": arguments["search"], "stream": stream})
    resolved = resolve_model(model, **loading)
    vocabulary, runner = open_runner(resolved, arguments["tokenizer"])
    try:
        call = prepare_call(resolved, vocabulary, runner, prompts, **options)
        if call.search is not None:
            if isinstance(call.search, Superposed):
                return search_call(call, open_superposed_models(resolved))
            return search_call(call, open_models_here(runner))
        return call.collect(draw_here(runner, call, stream))
    finally:
        runner.close()
