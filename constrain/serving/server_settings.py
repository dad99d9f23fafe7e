"""What the operator of a server chooses: the names, limits and formats of one `constrain serve`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import cast

from ..base.errors import ArgumentError, check_count, check_type

__all__ = ["ServerSettings"]


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server. Limits apply to each request unless they say otherwise.

    Attributes
    ----------
    model_name : str
        The name of the model in requests and answers.
    api_keys : tuple of str
        Keys, one of which a request must bear; none are asked for if it is empty.
    max_body_bytes, max_schema_bytes : int
        Most bytes of a request's body, and of one schema, pattern or grammar in it.
    max_tokens, default_tokens : int
        Most tokens of one answer, and their number if a request states none; both are lowered to what the model's
        context has left.
    max_n : int
        Most answers to one request.
    max_prompt_tokens : int
        Most tokens of a prompt.
    max_tools, max_stops, max_stop_bytes : int
        Most tools, most stop strings, and most bytes of a stop string, of one request.
    max_queue : int
        Most texts, of all requests, that wait for a slot of the Engine. A request beyond it is answered 429.
    max_connections : int
        Most connections, of all clients; further ones are closed.
    body_seconds, request_seconds : float
        Most seconds until the head of a request has arrived, and then its body; and until its answer is complete.
    stalled_seconds : float
        Most seconds for which a client reads nothing of an answer that waits for it.
    drain_seconds : float
        How long running requests may go on after SIGTERM.
    compile_threads : int
        Most constraints that are compiled, and prompts that are encoded, at the same time; without those that take
        long, of which one at a time is worked on (`compile_pool`).
    compile_work, state_cache_bytes : int
        `Limits.work` and `Limits.state_cache_bytes` of a constraint.
    cached_constraints, cached_bytes : int
        Most constraints that are kept for requests to come, and bytes that they may use: by default 64 MiB and 4 KiB
        for each token of the vocabulary, since masks have its size. Beyond the bytes, results that masks computed are
        dropped first, of the constraints that were not used for longest.
    tool_format : str or None
        How the model writes calls: one of `constrain.dialogue.ENVELOPES`; None to choose by its chat template.
    think_open, think_close : str
        The marks around the thoughts of a reasoning model, after which constraints apply; empty for other models.
        An empty `think_open` beside a `think_close`: the prompt ends with the opening mark.

    Raises
    ------
    TypeError
        If a limit is not a number, or not a whole one where it counts something; or a name, key or mark is no text.
    ArgumentError
        If a limit is not positive, or a key is empty.
    """

    model_name: str = "demo"
    api_keys: tuple[str, ...] = ()
    max_body_bytes: int = 4 << 20
    max_schema_bytes: int = 1 << 20
    max_tokens: int = 16_384
    default_tokens: int = 512
    max_n: int = 16
    max_prompt_tokens: int = 32_768
    max_tools: int = 128
    max_stops: int = 16
    max_stop_bytes: int = 1_024
    max_queue: int = 256
    max_connections: int = 900
    body_seconds: float = 30.0
    request_seconds: float = 300.0
    stalled_seconds: float = 60.0
    drain_seconds: float = 30.0
    compile_threads: int = 4
    compile_work: int = 1_000_000
    state_cache_bytes: int = 64 << 20
    cached_constraints: int = 512
    cached_bytes: int | None = None
    tool_format: str | None = None
    think_open: str = ""
    think_close: str = ""

    def bound_cache(self, vocabulary_size: int) -> int:
        """Return `cached_bytes`, or its default for a vocabulary of this size."""
        return self.cached_bytes or (64 << 20) + (4 << 10) * vocabulary_size

    def __post_init__(self) -> None:
        for one in fields(self):
            name, value = f"ServerSettings({one.name}=...)", getattr(self, one.name)
            if one.type == "int" or (one.type == "int | None" and value is not None):
                check_count(name, value, 1)
            elif one.type in ("str", "str | None"):
                check_type(name, value, (str, type(None)) if "None" in one.type else str, "a text")
            elif one.type == "float":
                check_type(name, value, (int, float), "a number of seconds")
                if not value > 0:
                    raise ArgumentError(f"{name} is {value}: a positive number of seconds")
        check_keys(self.api_keys)


def check_keys(keys: object) -> None:
    """Raise TypeError or ArgumentError unless the keys of a server are a tuple of texts that are not empty."""
    name = "ServerSettings(api_keys=...)"
    check_type(name, keys, tuple, "a tuple of texts")
    for key in cast(tuple[object, ...], keys):
        check_type(name, key, str, "a tuple of texts")
        if not key:
            raise ArgumentError(f"{name} contains an empty key, which every request would bear")
