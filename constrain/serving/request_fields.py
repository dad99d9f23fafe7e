"""The table of all members of requests: what each does here, or why it is refused.

A member that is not in the table is refused. One that has no effect here is listed with the reason; nothing that
constrains the answer is among these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .request_objects import RequestObject

__all__ = ["REQUEST_FIELDS", "RequestField", "check_fields", "list_fields"]

Endpoint = Literal["chat", "completions", "responses"]
Role = Literal["input", "constraint", "tokens", "output", "no effect", "refused"]


@dataclass(frozen=True)
class RequestField:
    """A member of requests.

    Attributes
    ----------
    name : str
    endpoints : str
        Those that know it, separated by spaces.
    role : str
        "input": the model and its prompt. "constraint": what the answer must be. "tokens": how tokens are chosen, how
        many, and where the answer ends. "output": what the answer reports. "no effect": accepted, and without effect on
        the answer. "refused": not supported.
    note : str
        One line for the documentation; what to do instead, for refused ones.
    neutral : tuple
        Values of a refused member that are accepted, because they ask for what happens anyway.
    """

    name: str
    endpoints: str
    role: Role
    note: str
    neutral: tuple[Any, ...] = ()


ALL, CHAT, BOTH, TEXT, NEW = "chat completions responses", "chat", "chat responses", "chat completions", "responses"
GUIDED = "removed from vLLM; give structured_outputs"

REQUEST_FIELDS: tuple[RequestField, ...] = (
    RequestField("model", ALL, "input", "the name of the served model"),
    RequestField("messages", CHAT, "input", "the conversation; contents are texts or parts of the type text"),
    RequestField("prompt", "completions", "input", "a text, a list of token ids, or a list of these"),
    RequestField("input", NEW, "input", "a text or items: messages, calls and their outputs, reasoning"),
    RequestField("instructions", NEW, "input", "a system message in front"),
    RequestField("chat_template_kwargs", CHAT, "input", "variables of the tokenizer's chat template"),
    RequestField("response_format", TEXT, "constraint", "text, json_object, json_schema, structural_tag"),
    RequestField("text", NEW, "constraint", "its member format: text, json_object, json_schema"),
    RequestField("tools", BOTH, "constraint", "function tools, and custom tools with a Lark or regex grammar"),
    RequestField("tool_choice", BOTH, "constraint", "none, auto, required, one tool, or allowed_tools"),
    RequestField("parallel_tool_calls", BOTH, "constraint", "false: at most one call"),
    RequestField("structured_outputs", ALL, "constraint", "vLLM: json, regex, choice, grammar ..."),
    RequestField("regex", ALL, "constraint", "SGLang: a regular expression for the whole answer"),
    RequestField("ebnf", ALL, "constraint", "SGLang: a grammar with rules `name ::= ...`"),
    RequestField("json_schema", ALL, "constraint", "SGLang, llama.cpp: a JSON Schema, as an object or as JSON text"),
    RequestField("grammar", ALL, "constraint", "llama.cpp: a GBNF grammar; also Lark"),
    RequestField("thinking", ALL, "constraint", "the marks of a reasoning model: {open, close, max_bytes, optional}"),
    RequestField("sampler", ALL, "tokens", "a sampler of constrain.generate; the answer has log-weights"),
    RequestField("particles", ALL, "tokens", "the number of particles of the samplers that have them"),
    RequestField("n", TEXT, "tokens", "the number of answers"),
    RequestField("max_tokens", TEXT, "tokens", "most tokens of an answer; constrained answers are complete within it"),
    RequestField("max_completion_tokens", CHAT, "tokens", "the same as max_tokens"),
    RequestField("max_output_tokens", NEW, "tokens", "the same as max_tokens"),
    RequestField("temperature", ALL, "tokens", "0 to 2"),
    RequestField("top_p", ALL, "tokens", "nucleus sampling"),
    RequestField("top_k", ALL, "tokens", "vLLM, SGLang, llama.cpp: only the k likeliest tokens; -1 or 0 for all"),
    RequestField("min_p", ALL, "tokens", "vLLM, SGLang, llama.cpp: least probability relative to the likeliest token"),
    RequestField("presence_penalty", TEXT, "tokens", "-2 to 2"),
    RequestField("frequency_penalty", TEXT, "tokens", "-2 to 2"),
    RequestField("repetition_penalty", TEXT, "tokens", "vLLM, SGLang: above 0, 1 for none"),
    RequestField("logit_bias", TEXT, "tokens", "-100 to 100 by token id"),
    RequestField("seed", ALL, "tokens", "the same seed gives the same answers"),
    RequestField("stop", TEXT, "tokens", "up to 16 texts that end an answer, a constrained one only if complete"),
    RequestField("logprobs", TEXT, "output", "log-probabilities under the model, before masks and temperature"),
    RequestField("top_logprobs", BOTH, "output", "0 to 20 alternatives at each token"),
    RequestField("echo", "completions", "output", "the prompt in front, its logprobs included; max_tokens 0: alone"),
    RequestField("include", NEW, "output", "message.output_text.logprobs, reasoning.encrypted_content (no effect)"),
    RequestField("stream", ALL, "output", "server-sent events"),
    RequestField("stream_options", ALL, "output", "include_usage; include_obfuscation has no effect"),
    RequestField("user", ALL, "no effect", "names the user"),
    RequestField("safety_identifier", BOTH, "no effect", "names the user"),
    RequestField("metadata", BOTH, "no effect", "repeated in the answer of responses"),
    RequestField("store", BOTH, "no effect", "nothing is stored"),
    RequestField("service_tier", BOTH, "no effect", "there is one tier"),
    RequestField("prompt_cache_key", BOTH, "no effect", "caches need no key"),
    RequestField("prompt_cache_retention", BOTH, "no effect", "caches need no hint"),
    RequestField("prompt_cache_options", BOTH, "no effect", "caches need no hint"),
    RequestField("reasoning_effort", CHAT, "no effect", "the model decides how long it thinks"),
    RequestField("reasoning", NEW, "no effect", "the model decides how long it thinks"),
    RequestField("verbosity", CHAT, "no effect", "the model decides how much it writes"),
    RequestField("max_tool_calls", NEW, "no effect", "it counts the built-in tools, which are refused"),
    RequestField("context_management", NEW, "refused", "shorten the input yourself"),
    RequestField("modalities", CHAT, "refused", "the model writes text", (["text"],)),
    RequestField("audio", CHAT, "refused", "the model writes text"),
    RequestField("image", NEW, "refused", "the model writes text"),
    RequestField("prediction", CHAT, "refused", "leave it out; forced text is drafted without it"),
    RequestField("moderation", BOTH, "refused", "this server does not moderate"),
    RequestField("web_search_options", CHAT, "refused", "this server does not search"),
    RequestField("functions", CHAT, "refused", "give tools"),
    RequestField("function_call", CHAT, "refused", "give tool_choice"),
    RequestField("best_of", "completions", "refused", "give n and choose by logprobs", (1,)),
    RequestField("suffix", "completions", "refused", "the model continues texts, it does not fill gaps", ("",)),
    RequestField("background", NEW, "refused", "wait for the answer, or stream it", (False,)),
    RequestField("background_options", NEW, "refused", "wait for the answer, or stream it"),
    RequestField("access_programs", NEW, "refused", "this server runs no programs"),
    RequestField("conversation", NEW, "refused", "nothing is stored; send the whole input"),
    RequestField("previous_response_id", NEW, "refused", "nothing is stored; send the whole input"),
    RequestField("prompt", NEW, "refused", "no prompts are stored; send input"),
    RequestField("truncation", NEW, "refused", "shorten the input yourself", ("disabled",)),
    RequestField("guided_json", ALL, "refused", f'{GUIDED}: {{"json": ...}}'),
    RequestField("guided_regex", ALL, "refused", f'{GUIDED}: {{"regex": ...}}'),
    RequestField("guided_choice", ALL, "refused", f'{GUIDED}: {{"choice": [...]}}'),
    RequestField("guided_grammar", ALL, "refused", f'{GUIDED}: {{"grammar": ...}}'),
    RequestField("guided_decoding_backend", ALL, "refused", "there is one backend here"),
    RequestField("guided_whitespace_pattern", ALL, "refused", f"{GUIDED} with disable_any_whitespace"),
    RequestField("vllm_xargs", ALL, "refused", "give structured_outputs and sampler"),
    RequestField("custom_logit_processor", ALL, "refused", "no code is taken from requests"),
    RequestField("custom_params", ALL, "refused", "no code is taken from requests"),
)  # fmt: skip


def list_fields(endpoint: Endpoint) -> Iterator[RequestField]:
    """Yield the members that an endpoint knows."""
    return (field for field in REQUEST_FIELDS if endpoint in field.endpoints.split())


SYNONYMS: dict[str, dict[str, str]] = {
    "responses": {"messages": "input", "prompt": "input", "response_format": "text.format"},
    "chat": {"input": "messages", "prompt": "messages", "text": "response_format"},
    "completions": {"messages": "prompt", "input": "prompt"},
}
"""What members of other endpoints are called here."""


def check_fields(body: RequestObject, endpoint: Endpoint) -> None:
    """Raise RequestError for a member that an endpoint does not know, or that is refused here."""
    for field in list_fields(endpoint):
        value = body.value.get(field.name)
        body.seen.add(field.name)
        if field.role == "refused" and value is not None and value not in field.neutral:
            raise body.refuse(
                field.name, f"{field.name} is not supported: {field.note}", code="unsupported_field"
            )  # fmt: skip
    refused = [field.name for field in list_fields(endpoint) if field.role == "refused"]
    body.finish(SYNONYMS.get(endpoint, {}), refused)
