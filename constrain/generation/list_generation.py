"""`generate` for lists of prompts or of constraints: one batch, or one call after the other for other samplers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .engine_call import prepare_call
from .finished_texts import draw_here
from .model_preparation import open_runner, resolve_model
from .prompt_lists import Prompts, is_constraint_list, is_prompt_list, pair_prompts

__all__ = ["generate_lists", "has_lists"]

CONSTRAINTS = ("schema", "regex", "grammar", "choices", "type")
ONLY_ONE = {"sampler": "masked", "particles": None, "check": None}
"""Options that the batched loop does not have, with the values that it stands for."""


def has_lists(prompt: object, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call of `generate` has a list of prompts or of constraints."""
    return is_prompt_list(prompt) or any(is_constraint_list(name, arguments[name]) for name in CONSTRAINTS)


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
    options = dict(arguments)
    if any(options[name] != value for name, value in ONLY_ONE.items()):
        given = {name: options.pop(name) for name in CONSTRAINTS}
        import_paths = options.pop("import_paths")
        return [
            generate(model, prompt, **({} if request is None else request.given), **options)
            for prompt, request in pair_prompts(prompts, given, import_paths)
        ]
    tokenizer, stream = options.pop("tokenizer"), options.pop("stream")
    for name in ONLY_ONE:
        del options[name]
    resolved = resolve_model(model, tokenizer)
    vocabulary, runner = open_runner(resolved, tokenizer)
    try:
        call = prepare_call(resolved, vocabulary, runner, prompts, **options)
        drawn = draw_here(runner, vocabulary, call.prompts, call.count, call.choice, stream)
    finally:
        runner.close()
    results: list[Any] = call.collect(drawn)
    return results
