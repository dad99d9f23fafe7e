"""The members of a request that choose tokens and end texts, as arguments of `Engine.generate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import shorten_text
from ..sampling import SAMPLERS
from .request_objects import RequestObject
from .server_settings import ServerSettings

__all__ = ["read_count", "read_max_tokens", "read_sampler", "read_token_options"]

MOST_STOPS = 16
MOST_TOP_K = 1 << 31
SEEDS = 1 << 64


def read_stop(body: RequestObject) -> list[str] | None:
    """Return the stop strings of a request."""
    given = body.read("stop")
    texts = [given] if isinstance(given, str) else body.read_texts("stop")
    if texts is None:
        return None
    if len(texts) > MOST_STOPS or not all(texts):
        raise body.refuse("stop", f"stop has up to {MOST_STOPS} texts, none of which is empty")
    return texts


def read_bias(body: RequestObject, size: int) -> dict[int, float] | None:
    """Return the biases of a request by token. size: number of tokens of the vocabulary."""
    given = body.read_object("logit_bias")
    if given is None:
        return None
    biases: dict[int, float] = {}
    for name in given.value:
        if not (name.isascii() and name.isdigit() and len(name) < 10 and int(name) < size):
            raise given.refuse(name, f"{shorten_text(repr(name))} is not the id of a token: give 0 to {size - 1}")
        biases[int(name)] = given.read_number(name, -100, 100) or 0.0
    return biases


def read_seed(body: RequestObject) -> int | None:
    """Return the seed; a negative one, which OpenAI allows, as another number."""
    seed = body.read_count("seed", -SEEDS, SEEDS)
    return None if seed is None else seed % SEEDS


def read_top_k(body: RequestObject) -> int | None:
    """Return the number of likeliest tokens; None for all, which vLLM writes as -1 and 0."""
    count = body.read_count("top_k", -1, MOST_TOP_K)
    return count if count is not None and count > 0 else None


def read_top_p(body: RequestObject) -> float | None:
    """Return the mass of nucleus sampling; None for all. 0 leaves only the likeliest token, as a tiny mass does."""
    mass = body.read_number("top_p", 0, 1)
    return None if mass is None or mass == 1 else max(mass, 1e-6)


def read_repetition(body: RequestObject) -> float | None:
    """Return the penalty of repetition, above 0."""
    penalty = body.read_number("repetition_penalty", 0, 100)
    if penalty == 0:
        raise body.refuse("repetition_penalty", "repetition_penalty is 0: give a number above 0, 1 for none")
    return penalty


READERS: dict[str, Callable[[RequestObject], Any]] = {
    "temperature": lambda body: body.read_number("temperature", 0, 2),
    "top_p": read_top_p,
    "top_k": read_top_k,
    "min_p": lambda body: body.read_number("min_p", 0, 1),
    "presence_penalty": lambda body: body.read_number("presence_penalty", -2, 2),
    "frequency_penalty": lambda body: body.read_number("frequency_penalty", -2, 2),
    "repetition_penalty": read_repetition,
    "stop": read_stop,
    "seed": read_seed,
}


def read_token_options(body: RequestObject, size: int) -> dict[str, Any]:
    """Return the options that a request gives, by their names in `Engine.generate`. size: of the vocabulary."""
    options = {name: read(body) for name, read in READERS.items()} | {"logit_bias": read_bias(body, size)}
    return {name: value for name, value in options.items() if value is not None}


def read_max_tokens(
    body: RequestObject, settings: ServerSettings, usual: str = "max_tokens", least: int = 1
) -> tuple[int, str]:
    """Return the most tokens of an answer, and the name by which the request gives it, or the usual one.

    Several names for it contradict each other unless they agree.
    """
    names = ("max_completion_tokens", "max_output_tokens", "max_tokens")
    given = {name: body.read_count(name, least, settings.max_tokens) for name in names}
    stated = {name: count for name, count in given.items() if count is not None}
    if len(set(stated.values())) > 1:
        first, second = list(stated)[:2]
        raise body.refuse(second, f"{first} and {second} differ", hint="Give one of them.", code="contradiction")
    for name, count in stated.items():
        return count, name
    return min(settings.default_tokens, settings.max_tokens), usual


def read_count(body: RequestObject, settings: ServerSettings) -> int:
    """Return the number of answers."""
    return body.read_count("n", 1, settings.max_n) or 1


def read_sampler(body: RequestObject) -> tuple[str | None, dict[str, Any]]:
    """Return the sampler of a request and its options; None for masked sampling on the Engine."""
    sampler = body.read_option("sampler", [*SAMPLERS, "auto"])
    particles = body.read_count("particles", 1, 4096)
    if particles is not None and (sampler is None or (sampler != "auto" and not SAMPLERS[sampler].takes_particles)):
        names = ", ".join(name for name, row in SAMPLERS.items() if row.takes_particles)
        raise body.refuse("particles", "particles is given without a sampler that has them", hint=f"These are {names}.")
    return sampler, {} if particles is None else {"particles": particles}
