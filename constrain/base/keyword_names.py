"""Calls with arguments that a function does not have: TypeError with the argument of ours that does the same.

People come from other libraries, whose names are in `FOREIGN`. Python's own message would name the argument alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, cast

from .errors import shorten_text

__all__ = [
    "FOREIGN",
    "check_keywords",
    "describe_attribute",
    "explain_attributes",
    "explain_class_keywords",
    "explain_keywords",
]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

SCHEMA_NAMES = ("json_schema", "guided_json", "json_object", "output_schema", "schema_object", "schema_str", "json")
TYPE_NAMES = (
    "output_type", "response_model", "result_type", "output_cls", "model_class", "pydantic_model", "python_type",
)  # fmt: skip
REGEX_NAMES = ("guided_regex", "pattern", "regex_str", "regex_string", "regexp")
CHOICE_NAMES = ("guided_choice", "choice", "options", "labels", "select")
GRAMMAR_NAMES = ("guided_grammar", "cfg", "ebnf", "gbnf", "lark", "lark_grammar", "cfg_grammar", "structural_tag")
LENGTH_NAMES = (
    "max_new_tokens", "max_length", "max_completion_tokens", "max_output_tokens", "num_predict", "n_predict",
    "max_gen_len",
)  # fmt: skip
SPELLING = 'style=constrain.Style(whitespace="compact") or another Style'

FOREIGN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(SCHEMA_NAMES, ("schema", "schema=")),
    **dict.fromkeys(TYPE_NAMES, ("type", "type=")),
    **dict.fromkeys(REGEX_NAMES, ("regex", "regex=")),
    **dict.fromkeys(CHOICE_NAMES, ("choices", "choices=")),
    **dict.fromkeys(GRAMMAR_NAMES, ("grammar", "grammar=")),
    **dict.fromkeys(LENGTH_NAMES, ("max_tokens", "max_tokens=")),
    "response_format": ("schema", "schema= with the JSON Schema, response_format['json_schema']['schema']"),
    "guided_decoding": ("schema", "its schema=, regex=, grammar= or choices="),
    "sampling_params": ("temperature", "its temperature=, max_tokens=, top_p=, seed= and others as arguments"),
    "generation_config": ("temperature", "its temperature=, max_tokens=, top_p= and others as arguments"),
    "structured_outputs": ("schema", "its schema=, regex=, grammar= or choices="),
    "tools": ("grammar", "grammar=constrain.tools(definitions)"),
    "functions": ("grammar", "grammar=constrain.tools(definitions)"),
    "messages": ("prompt", "prompt=, which takes a list of messages, too"),
    "inputs": ("prompt", "prompt="),
    **dict.fromkeys(
        ("system", "system_prompt", "system_message"),
        ("prompt", 'prompt=[{"role": "system", "content": ...}, {"role": "user", "content": ...}]'),
    ),
    "input_ids": ("prompt", "prompt=, which takes a list of token ids, too"),
    "text_inputs": ("prompt", "prompt="),
    "num_return_sequences": ("n", "n="),
    "num_samples": ("n", "n="),
    "best_of": ("n", "n="),
    "num_beams": ("search", "search=constrain.BeamSearch(width=4)"),
    "do_sample": ("temperature", "temperature=0 for the likeliest token of every step, and nothing for sampling"),
    "greedy": ("temperature", "temperature=0"),
    "random_state": ("seed", "seed="),
    "generator": ("seed", "seed="),
    "rng": ("seed", "seed="),
    "eos_token_id": ("eos_ids", "eos_ids=[...]"),
    "stop_token_ids": ("eos_ids", "eos_ids=[...]"),
    "stop_strings": ("stop", "stop="),
    "stop_sequences": ("stop", "stop="),
    "stop_at": ("stop", "stop="),
    "streamer": ("stream", "stream=, a function of each Piece"),
    "callback": ("stream", "stream=, a function of each Piece"),
    "torch_dtype": ("dtype", "dtype="),
    "logits_processor": ("schema", "schema=, regex= or another constraint: generate masks the logits itself"),
    "prefix_allowed_tokens_fn": (
        "schema",
        "schema=, regex= or another constraint; a function of your own is a checker, check=",
    ),
    "whitespace_pattern": ("style", SPELLING),
    "guided_whitespace_pattern": ("style", SPELLING),
    "any_whitespace": ("style", SPELLING),
    "max_whitespace_cnt": ("style", SPELLING),
    "indent": ("style", "style=constrain.Style(whitespace=2), the number of spaces"),
    "separators": ("style", SPELLING),
    "max_retries": ("retries", "retries="),
    **dict.fromkeys(
        ("context", "validation_context"),
        ("retries", "retries=; call a validator of Pydantic that needs a context yourself"),
    ),
    "strict_mode": ("style", "nothing: the schema is taken as it is; additionalProperties: false closes an object"),
    "tokenizer_info": ("vocabulary", "vocabulary=constrain.Vocabulary.from_tokenizer(tokenizer)"),
    "vocab": ("vocabulary", "vocabulary="),
    "tokenizer": ("vocabulary", "vocabulary=constrain.Vocabulary.from_tokenizer(tokenizer)"),
    "value": ("instance", "instance="),
    "data": ("instance", "instance="),
    "vocab_size": ("size", "size="),
    "whitespaces": ("whitespace", "whitespace="),
    "max_digits": ("digits", "digits="),
    "max_states": ("dfa_states", "dfa_states="),
}
"""Names of arguments in other libraries -> our argument, and how to write it. OpenAI, vLLM, SGLang, Outlines, guidance,
XGrammar, llguidance, instructor, transformers, llama.cpp, Ollama; the rows are for functions that have our argument."""

SPELLINGS: Mapping[str, str] = {
    "indent": "whitespace=2, the number of spaces",
    **dict.fromkeys(
        ("whitespace_pattern", "separators", "any_whitespace"), 'whitespace="flexible", "compact" or "any"'
    ),
}
"""Names of options of spelling elsewhere -> what `Style` has."""

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        ("schema", "regex", "grammar", "choices", "type", *SCHEMA_NAMES, *REGEX_NAMES, *CHOICE_NAMES, *GRAMMAR_NAMES),
        "compile it first: constrain.compile(vocabulary, schema=...) or with regex=, grammar=, choices= or type=",
    ),
    **dict.fromkeys(
        ("max_tokens", "temperature", "top_k", "top_p", "seed", "stop", *LENGTH_NAMES),
        "that is for generating: constrain.generate(model, prompt, ..., max_tokens=...)",
    ),
    "whitespace": "that is for style=constrain.Style(whitespace=...)",
    "limits": "that is for compiling: constrain.compile(..., limits=constrain.Limits(...))",
}
"""Names of arguments -> where they belong, for functions that have none of the kind."""

EXAMPLES: Mapping[str, str] = {
    "vocabulary": 'vocabulary=constrain.Vocabulary.from_pretrained("demo")',
    "model": 'model="demo", a folder or a hub id',
    "constraint": "constraint=constrain.compile(vocabulary, schema=...)",
    "schema": "schema={...}, a Path or a type",
}


def explain_keywords(function: F) -> F:
    """Wrap a function so that a TypeError for its arguments says which argument to give instead."""
    signature = inspect.signature(function)
    takes = list(signature.parameters.values())
    if any(one.kind == one.VAR_KEYWORD for one in takes):
        raise TypeError(f"{function.__qualname__} takes any keyword")
    names = frozenset(signature.parameters)
    by_place = [one for one in takes if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [(k, one.name) for k, one in enumerate(by_place) if one.default is one.empty and one.name in EXAMPLES]
    name = function.__qualname__.removesuffix(".__init__")

    def explain(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
        """Return the message for arguments that the function does not have, or for one that it lacks; None if none."""
        wrong = next((word for word in keywords if word not in names), None)
        if wrong is not None:
            return describe_unknown(name, wrong, names)
        if len(arguments) > len(by_place):
            known = [one.name for one in by_place if one.name != "self"]
            more = len(arguments) - len(by_place) + len(known)
            others = [one.name for one in takes if one not in by_place]
            cure = f": give the others by name, such as {others[0]}=" if others else ""
            return f"{name}() takes {' and '.join(known) or 'no arguments'} by position, and got {more} arguments{cure}"
        for place, one in needed:
            if place >= len(arguments) and one not in keywords:
                return f"{name}() needs {one}: give {EXAMPLES[one]}"
        return None

    @wraps(function)
    def explained(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError:  # for the arguments, or from inside: arguments are checked only now, for speed
            message = explain(arguments, keywords)
            if message is None:
                raise
        raise TypeError(message)

    return cast(F, explained)


def check_keywords(function: str, given: Iterable[str], known: frozenset[str]) -> None:
    """Raise TypeError if a function that takes any keyword was given one that it does not know."""
    for name in given:
        if name not in known:
            raise TypeError(describe_unknown(function, name, known))


def explain_class_keywords(made: C) -> C:
    """Wrap `__init__` of a class by `explain_keywords`; for dataclasses, whose `__init__` is generated."""
    type.__setattr__(made, "__init__", explain_keywords(made.__init__))  # type: ignore[misc]
    return made


def describe_unknown(function: str, wrong: str, known: frozenset[str]) -> str:
    """Return the message for a keyword argument that a function does not have."""
    cause = f"{function}() has no argument {shorten_text(wrong, 60)}="
    if wrong in FOREIGN and FOREIGN[wrong][0] in known:
        return f"{cause}: give {FOREIGN[wrong][1]}"
    if wrong in SPELLINGS and "whitespace" in known:
        return f"{cause}: give {SPELLINGS[wrong]}"
    similar = find_similar(wrong, known)
    if similar:
        return f"{cause}: did you mean {similar[0]}=?"
    if wrong in ELSEWHERE:
        return f"{cause}: {ELSEWHERE[wrong]}"
    listed = ", ".join(sorted(known - {"self", "cls"}))
    return f"{cause}: it has {shorten_text(listed, 600)}"


ATTRIBUTES: Mapping[str, str] = {
    **dict.fromkeys(("from_transformers", "from_pretrained", "models", "Transformers"),
                    'constrain.load_model("demo"), or constrain.Vocabulary.from_pretrained("demo")'),
    **dict.fromkeys(("Generator", "Sampler", "gen", "generate_json", "json_generator"),
                    'constrain.generate("demo", prompt, schema=...)'),
    **dict.fromkeys(("select", "choice"), "constrain.choose(model, prompt, options)"),
    **dict.fromkeys(("LLM", "Llama"), 'constrain.Engine("demo"), or constrain.generate("demo", prompt, schema=...)'),
    **dict.fromkeys(("SamplingParams", "GenerationConfig"), "temperature=, max_tokens=, ... to constrain.generate"),
    **dict.fromkeys(("StructuredOutputsParams", "GuidedDecodingParams", "StructuredOutputs"),
                    "schema=, regex=, grammar= or choices= to constrain.generate"),
    **dict.fromkeys(("from_openai", "from_litellm", "from_anthropic", "from_provider", "patch"),
                    "constrain.generate_remote(...) for a model behind an API"),
    **dict.fromkeys(("LlamaGrammar",), "constrain.gbnf(text), or grammar= of constrain.generate"),
    **dict.fromkeys(("JsonSchemaParser", "RegexParser", "compile_json_schema", "compile_regex"),
                    "constrain.compile(vocabulary, schema=...) or with regex=, grammar="),
    **dict.fromkeys(("allocate_token_bitmask", "fill_next_token_bitmask", "bitmask"),
                    "constrain.Matcher.mask, which allocates the array"),
    **dict.fromkeys(("apply_token_bitmask_inplace", "apply_token_bitmask"),
                    "constrain.apply_mask(logits, matcher.mask())"),
    **dict.fromkeys(("json", "json_mode"), 'schema=..., or grammar="json" for any JSON, to constrain.generate'),
    **dict.fromkeys(("JSON", "JsonSchema", "Json"), "constrain.json_schema(schema), or schema= of constrain.generate"),
    **dict.fromkeys(("Regex",), "constrain.regex(pattern), or regex= of constrain.generate"),
    **dict.fromkeys(("CFG", "cfg", "EBNF", "ebnf"), "constrain.lark(text) or constrain.gbnf(text)"),
    **dict.fromkeys(("Choice",), "choices= of constrain.generate and constrain.compile"),
    **dict.fromkeys(("LogitsProcessor", "JSONLogitsProcessor", "RegexLogitsProcessor", "GuideLogitsProcessor"),
                    "constrain.ConstraintLogitsProcessor(constrain.compile(vocabulary, schema=...))"),
    **dict.fromkeys(("TokenizerInfo", "Tokenizer", "LLTokenizer"), "constrain.Vocabulary.from_tokenizer(tokenizer)"),
    **dict.fromkeys(("GrammarCompiler", "CompiledGrammar", "Guide", "Index"), "constrain.compile(vocabulary, ...)"),
    **dict.fromkeys(("GrammarMatcher", "LLMatcher", "TokenEnforcer"), "constrain.compile(vocabulary, ...).matcher()"),
}  # fmt: skip
"""Names of other libraries' modules -> what to write here."""


class ForeignAttribute:
    """An attribute that a class does not have: AttributeError with what to write instead.

    A `__getattr__` of the class would do the same, and make every attribute of its instances slower to read.
    """

    def __init__(self, name: str, cure: str) -> None:
        self.name, self.cure = name, cure

    def __get__(self, instance: Any, owner: type) -> Any:
        cause = f"{owner.__name__} has no attribute {self.name!r}"
        raise AttributeError(f"{cause}: give {self.cure}", name=self.name, obj=instance)


def explain_attributes(names: Mapping[str, str]) -> Callable[[C], C]:
    """Return a class decorator that explains attributes of other libraries' classes. `dir` does not list them.

    names: the attributes, each with what to write instead.
    """

    def decorate(made: C) -> C:
        own = [name for name in names if name in made.__dict__]
        if own:
            raise TypeError(f"{made.__name__} has {own[0]}")
        for name, cure in names.items():
            type.__setattr__(made, name, ForeignAttribute(name, cure))
        type.__setattr__(made, "__dir__", lambda self: sorted({*object.__dir__(self)} - names.keys()))
        return made

    return decorate


def describe_attribute(name: str, known: Iterable[str]) -> str:
    """Return the message for an attribute that the package does not have."""
    cause = f"module 'constrain' has no attribute {name!r}"
    if name in ATTRIBUTES:
        return f"{cause}: give {ATTRIBUTES[name]}"
    similar = [] if name.startswith("_") else find_similar(name, list(known))
    return f"{cause}; did you mean {similar[0]!r}?" if similar else cause


def find_similar(name: str, known: frozenset[str] | list[str]) -> list[str]:
    """Return up to three known names that are similar to a name, the most similar first."""
    return get_close_matches(name, known, 3, 0.7) if len(name) <= 80 else []
