"""Wrong calls of the whole public API: TypeError with the right call suggested, or ConstrainError. Nothing else.

Each argument of each call is replaced by each junk value, the others staying right. A junk value that happens to be
right, such as a dict for a schema, may give an answer.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, seed as hypothesis_seed, settings
from pydantic import BaseModel

import constrain
from constrain import Vocabulary, dialogue, grammars, sampling, testing
from constrain.authoring import targets
from tests.masked_model_factory import RandomModel
from tests.model_factory import TableModel
from tests.stand_in_server import UrlClient

VARIADIC = inspect.Parameter.VAR_KEYWORD


class Person(BaseModel):
    name: str


class Hostile:
    """Raise a distinct error at every access."""

    def __repr__(self) -> str:
        return "x" * 1_000_000


def junk() -> dict[str, Any]:
    """Values that are wrong nearly everywhere; created again each time, since some can be used up."""
    return {
        "None": None, "True": True, "5": 5, "-1": -1, "0": 0, "huge": 10**30, "1.5": 1.5, "nan": math.nan,
        "inf": math.inf, "complex": 1j, "Decimal": Decimal("1.5"), "Fraction": Fraction(1, 3), "''": "", "'x'": "x",
        "surrogate": "\ud800", "nul": "\0", "b''": b"", "b'x'": b"x\xff", "bytearray": bytearray(b"x"), "[]": [],
        "[None]": [None], "[[[]]]": [[[]]], "()": (), "{}": {}, "{1: 2}": {1: 2}, "{'a': object}": {"a": object()},
        "set": {1, "a"}, "object": object(), "Path": Path("/nowhere/at/all"), "type": type, "int": int, "len": len,
        "lambda": lambda *args, **more: None, "model class": Person, "model instance": Person(name="x"),
        "generator": (n for n in range(3)), "range": range(5), "slice": slice(2), "Ellipsis": ...,
        "NotImplemented": NotImplemented, "module": math, "exception": ValueError("x"), "hostile": Hostile(),
        "float array": np.zeros(3), "int array": np.arange(4), "objects": np.array([None, "a"], dtype=object),
        "strings": np.array(["a"]), "3d": np.zeros((2, 2, 2), np.int32), "numpy int": np.int64(3),
        "numpy nan": np.float32("nan"), "memoryview": memoryview(b"abc"),
    }  # fmt: skip


@lru_cache
def vocabulary() -> Vocabulary:
    return Vocabulary.bytes()


@lru_cache
def constraint() -> constrain.Constraint:
    return constrain.compile(vocabulary(), regex="(ab)*c")


def model() -> TableModel:
    return TableModel(257)


def matcher() -> constrain.Matcher:
    made = constraint().matcher()
    made.advance(97)
    return made


def remote(api: Any = "chat") -> constrain.RemoteModel:
    """A remote model that answers ab to everything."""
    choice = SimpleNamespace(message=SimpleNamespace(content="ab"), text="ab", finish_reason="stop", logprobs=None)
    endpoint = SimpleNamespace(create=lambda **_: SimpleNamespace(choices=[choice]))
    client = SimpleNamespace(completions=endpoint, chat=SimpleNamespace(completions=endpoint))
    return constrain.RemoteModel(client, "x", api)


def form() -> constrain.Form:
    return constrain.literal("a")


def search() -> dict[str, Any]:
    return {"lm": model(), "constraint": constraint(), "n": 2, "max_tokens": 9}


def draws() -> Any:
    return {
        "lm": model(), "constraint": constraint(), "sampler": "masked", "n": 1, "rng": np.random.default_rng(0),
        "target": sampling.SamplingTarget(),
        "max_tokens": 9, "checker": None, "spellings": "all",
    }  # fmt: skip


GENERATE = {
    "model": None, "prompt": None, "schema": None, "regex": "ab", "grammar": None, "choices": None, "type": None,
    "tokenizer": None, "style": constrain.Style(), "registry": None, "base_uri": "", "import_paths": (),
    "limits": constrain.Limits(), "sampler": "masked", "particles": None,
    "target": sampling.SamplingTarget(), "check": None, "n": None, "max_tokens": 9,
    "masks": "first",
    "temperature": 1.0, "top_k": None, "top_p": None, "seed": 1, "stream": None, "min_p": None,
    "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": None, "stop": None,
    "eos_ids": None, "retries": 1, "retry_prompt": None, "chat": "plain", "heal": "none",
    "forced": "sample", "show_constraint": None, "dtype": None, "device": None, "device_map": None, "draft": None,
    "search": None, "decide": None,
}  # fmt: skip
WRITE = {
    "name": "x", "schema": None, "regex": "ab", "grammar": None, "choices": None, "type": None, "stop": "c",
    "max_tokens": 9, "temperature": 1.0, "top_k": None, "top_p": None, "min_p": None, "style": constrain.Style(),
    "registry": None, "base_uri": "", "import_paths": (), "limits": constrain.Limits(),
}  # fmt: skip
COMPILE = {"form": None, "schema": None, "regex": None, "grammar": None, "choices": None, "type": None,
           "style": constrain.Style(), "registry": None, "base_uri": "", "import_paths": (),
           "limits": constrain.Limits()}  # fmt: skip
TOOL = {"name": "f", "parameters": {"type": "object", "properties": {}}}
STRATEGY = {"style": constrain.Style(), "registry": None, "limits": constrain.Limits(), "form": "value"}
Call = tuple[Callable[..., Any], Callable[[], dict[str, Any]]]


def processor_call(ids: Any, scores: Any) -> Any:
    return constrain.ConstraintLogitsProcessor(constraint())(ids, scores)


def tensors() -> dict[str, Any]:
    import torch

    return {"ids": torch.zeros((1, 1), dtype=torch.long), "scores": torch.zeros((1, 257))}


def methods(kind: str, made: Callable[[], Any], **rights: dict[str, Any]) -> dict[str, Call]:
    """Rows for methods of what `made` returns, an instance of the class `kind`, by their right arguments."""

    def row(name: str) -> Call:
        def call(**arguments: Any) -> Any:
            return getattr(made(), name)(**arguments)

        return call, lambda: dict(rights[name])

    return {f"{kind}.{name}": row(name) for name in rights}


def saved_table(constraint: Any, path: Any) -> None:
    """Save a table of values in a folder of its own, where path is that of a file in it."""
    with TemporaryDirectory() as folder:
        sampling.save_table(constraint, f"{folder}/{path}" if isinstance(path, str) else path)


def saved(path: Any) -> Any:
    """Save into a temporary folder, so that a junk relative path leaves no file."""
    with TemporaryDirectory() as folder:
        return constraint().save(Path(folder, path) if isinstance(path, (str, Path)) else path)


def drawn_examples(strategy: Any) -> None:
    """Draws from a strategy, which does most of its work then."""
    for seed in range(2):
        generate_one = settings(max_examples=1, database=None, deadline=None, phases=[Phase.generate])
        generate_one(hypothesis_seed(seed)(given(strategy)(lambda value: None)))()


def strategies(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **arguments: drawn_examples(make(**arguments))


def engine_texts(prompts: Any) -> Any:
    with constrain.Engine(model(), vocabulary()) as engine:
        return engine.generate(prompts, regex="a|b", max_tokens=3)


async def read_stream(engine: constrain.Engine, prompts: Any) -> list[Any]:
    return [event async for event in engine.stream(prompts, regex="a|b", max_tokens=3)]


def engine_events(prompts: Any) -> Any:
    with constrain.Engine(model(), vocabulary()) as engine:
        return asyncio.run(read_stream(engine, prompts))


def awaited_texts(prompts: Any) -> Any:
    with constrain.Engine(model(), vocabulary()) as engine:
        return asyncio.run(engine.agenerate(prompts, regex="a|b", max_tokens=3))


CALLS: dict[str, Call] = {
    "compile": (constrain.compile, lambda: {"vocabulary": vocabulary(), "regex": "a"}),
    **{
        f"compile {name}": (constrain.compile, lambda name=name: {"vocabulary": vocabulary(), name: None})
        for name in ("form", "schema", "regex", "grammar", "choices", "type")
    },
    "compile options": (constrain.compile, lambda: {"vocabulary": vocabulary(), **COMPILE, "schema": True}),
    "compile_grammar": (
        constrain.compile_grammar,
        lambda: {"grammar": constraint().grammar, "vocabulary": vocabulary(), "limits": constrain.Limits()},
    ),
    "generate": (constrain.generate, lambda: {**GENERATE, "model": model(), "tokenizer": vocabulary()}),
    **{
        f"generate {name}": (
            constrain.generate,
            lambda name=name: {"model": model(), "tokenizer": vocabulary(), "max_tokens": 9, name: None},
        )
        for name in ("schema", "grammar", "choices", "type")
    },
    "session": (
        constrain.session,
        lambda: {"model": model(), "prompt": None, "tokenizer": vocabulary(), "seed": 1, "max_tokens": 9},
    ),
    "Session": (
        constrain.Session,
        lambda: {"lm": model(), "vocabulary": vocabulary(), "prompt": [97], "seed": 1, "max_tokens": 9},
    ),
    **methods(
        "Session", lambda: constrain.Session(model(), vocabulary()), text={"text": "a"}, fork={"seed": 1},
        write=WRITE, choose={"name": "x", "options": ["a", "b"]},
    ),
    "generate stream": (
        constrain.generate,
        lambda: {"model": model(), "tokenizer": vocabulary(), "regex": ["a", "b"], "stream": None, "seed": None},
    ),
    "Engine": (
        constrain.Engine,
        lambda: {"model": model(), "tokenizer": vocabulary(), "slots": 2, "prefill_tokens": 9, "dtype": None,
                 "device": None, "device_map": None, "draft": None, "prefixes": 1, "cache_bytes": 9,
                 "max_queue": 3},
    ),
    "Engine.generate": (engine_texts, lambda: {"prompts": None}),
    "Engine.agenerate": (awaited_texts, lambda: {"prompts": None}),
    "Engine.stream": (engine_events, lambda: {"prompts": None}),
    **methods(
        "Engine", lambda: constrain.Engine(model(), vocabulary()), session={"prompt": None, "seed": 1, "max_tokens": 9},
        open_model={"prompt": [0], "width": 1},
    ),
    "explain_token": (
        constrain.explain_token, lambda: {"matcher": matcher(), "token": 0},
    ),
    "partial_model": (constrain.partial_model, lambda: {"tp": int}),
    "stream_values": (constrain.stream_values, lambda: {"receive": print}),
    "PromptTemplate": (
        constrain.PromptTemplate, lambda: {"schema": "{prompt}", "regex": "", "grammar": "x", "choices": "{prompt}"},
    ),
    "load_model": (
        constrain.load_model, lambda: {"source": "demo", "dtype": None, "device": "cpu", "device_map": None},
    ),
    "Vocabulary.from_tokens": (
        Vocabulary.from_tokens,
        lambda: {"tokens": [b"a", None], "eos_ids": [1], "special": {"x": 1}, "size": 2, "encode": None,
                 "encode_prompt": None, "leading_space": "kept", "name": "x"},
    ),
    "Vocabulary.from_pretrained": (
        Vocabulary.from_pretrained, lambda: {"source": "demo", "size": None, "eos_ids": None},
    ),
    "Vocabulary.from_tokenizer": (
        Vocabulary.from_tokenizer, lambda: {"tokenizer": None, "size": None, "eos_ids": [1]},
    ),
    "Vocabulary.from_tiktoken": (
        Vocabulary.from_tiktoken,
        lambda: {"source": {b"a": 0, b"b": 1}, "special": {"x": 2}, "eos_ids": [2], "pattern": None, "size": None},
    ),
    "Vocabulary.from_mistral": (
        Vocabulary.from_mistral, lambda: {"source": "/nowhere", "size": None, "eos_ids": None},
    ),
    **methods(
        "Vocabulary", vocabulary, text={"ids": [97]}, decode={"ids": [97]}, transcript={"ids": [97]},
        tokenize={"data": b"a"}, spelled={"index": 97}, fewest={"data": b"a"},
    ),
    "Matcher": (constrain.Matcher, lambda: {"constraint": constraint()}),
    **methods(
        "Matcher", matcher, allows={"token": 98}, advance={"token": 98}, advance_bytes={"text": b"b"},
        prepare={"seconds": 0.0}, rollback={"n": 1}, shortest_completion={"limit": None}, states_after={"tokens": [98]},
        mask={"out": None},
    ),
    "Constraint.save": (saved, lambda: {"path": "it"}),
    "Constraint.load": (
        constrain.Constraint.load,
        lambda: {"path": "/nowhere/at/all", "vocabulary": vocabulary(), "limits": constrain.Limits()},
    ),
    "fill_masks": (
        constrain.fill_masks,
        lambda: {"matchers": [matcher()], "out": np.zeros((1, 9), np.int32), "rows": None, "threads": None},
    ),
    "advance_all": (constrain.advance_all, lambda: {"matchers": [matcher()], "tokens": [98]}),
    "apply_mask": (
        constrain.apply_mask,
        lambda: {"logits": np.zeros(257, np.float32), "masks": matcher().mask(), "rows": None, "threads": None},
    ),
    "repair": (
        constrain.repair,
        lambda: {"text": "x", "constraint": None, "schema": None, "regex": "ab", "grammar": None, "choices": None,
                 "type": None, "style": constrain.Style(), "registry": None, "base_uri": "", "import_paths": (),
                 "limits": constrain.Limits(), "model": None, "tokenizer": None, "prompt": "",
                 "template": "{prompt}{text}", "max_tokens": 9, "most_nodes": 100},
    ),
    "RemoteModel": (
        constrain.RemoteModel, lambda: {"client": UrlClient(""), "name": "x", "api": "chat", "options": {}},
    ),
    "RemoteModel.answer": (remote().answer, lambda: {"prompt": "x", "max_tokens": 4}),
    "RemoteModel.continue_text": (
        remote("completions").continue_text, lambda: {"text": "x", "max_tokens": 4, "alternatives": None},
    ),
    "generate_remote": (
        constrain.generate_remote,
        lambda: {"model": remote(), "prompt": "x", "schema": None, "regex": "ab", "grammar": None, "choices": None,
                 "type": None, "style": constrain.Style(), "registry": None, "base_uri": "", "import_paths": (),
                 "limits": constrain.Limits(), "method": "retry", "tries": 2, "max_tokens": 9, "invalid": "repair",
                 "repair_model": None, "seed": None},
    ),
    "validate": (
        constrain.validate,
        lambda: {"schema": {"items": {"type": "string"}}, "instance": [1], "registry": None, "base_uri": "",
                 "formats": "assert", "limits": constrain.Limits()},
    ),
    "validate text": (constrain.validate, lambda: {"schema": {"type": "string"}, "text": "1"}),
    "infer": (
        constrain.infer, lambda: {"documents": [1], "bounds": "free", "keys": "closed", "formats": "detect"},
    ),
    "tools": (
        constrain.tools,
        lambda: {"definitions": [TOOL], "envelope": "hermes", "choice": "auto", "most": None,
                 "style": constrain.Style()},
    ),
    "structural_tag": (
        constrain.structural_tag,
        lambda: {"source": {"type": "structural_tag", "format": {"type": "any_text"}}, "style": constrain.Style(),
                 "undeclared": "refuse"},
    ),
    "tool_calls": (constrain.tool_calls, lambda: {"text": "x", "envelope": "hermes"}),
    "read_tools": (dialogue.read_tools, lambda: {"definitions": [TOOL]}),
    "literal": (constrain.literal, lambda: {"text": "a"}),
    "regex": (constrain.regex, lambda: {"pattern": "a"}),
    "json_schema": (
        constrain.json_schema, lambda: {"schema": True, "style": constrain.Style(), "registry": None, "base_uri": ""},
    ),
    "gbnf": (
        constrain.gbnf,
        lambda: {"text": 'root ::= "a"', "start": "root", "dialect": "xgrammar", "captures": ["root"]},
    ),
    "lark": (
        constrain.lark,
        lambda: {"text": 'start: "a"', "start": "start", "lexer": "contextual", "grammars": {}, "import_paths": (),
                 "parser": None, "dialect": None, "captures": ["start"]},
    ),
    "lark of llguidance": (
        constrain.lark, lambda: {"text": 'start: "a" @x', "dialect": "llguidance", "grammars": {"x": "b"}},
    ),
    "contains": (
        lambda phrase, alternatives, **options: constrain.contains(phrase, *alternatives, **options),
        lambda: {"phrase": "a", "alternatives": ("b",), "case": "sensitive", "boundaries": "none", "within": "text"},
    ),
    "excludes": (
        lambda phrase, others, **options: constrain.excludes(phrase, *others, **options),
        lambda: {"phrase": "a", "others": ("b",), "case": "sensitive", "boundaries": "none", "within": "text"},
    ),
    "all_of": (constrain.all_of, lambda: {"clauses": ["a", ("b", "c")], "case": "sensitive", "boundaries": "none"}),
    "free_text": (constrain.free_text, lambda: {"least": 0, "most": 3, "without": (), "until": ""}),
    "mark": (constrain.mark, lambda: {"text": "<x>"}),
    "triggered": (
        constrain.triggered, lambda: {"forms": {"<x>": form()}, "least": 0, "most": 1, "after": "text"},
    ),
    "thinking": (
        constrain.thinking,
        lambda: {"form": form(), "open": "<think>", "close": "</think>", "most": None, "thought": "always"},
    ),
    **methods(
        "Form", form, named={"name": "x"}, repeat={"low": 0, "high": 2}, quoted={"style": constrain.Style()},
        compile={"vocabulary": vocabulary(), "limits": constrain.Limits()},
    ),
    "Form +": (lambda other: form() + other, lambda: {"other": "a"}),
    "Form |": (lambda other: form() | other, lambda: {"other": "a"}),
    "Form &": (lambda other: form() & other, lambda: {"other": "a"}),
    "Style": (
        constrain.Style,
        lambda: {"whitespace": "compact", "key_order": "schema", "escapes": "any", "numbers": "any", "digits": 4,
                 "formats": "assert"},
    ),
    "Limits": (
        constrain.Limits, lambda: {"dfa_states": 9, "nesting": 9, "cases": 9, "state_cache_bytes": 9, "work": 9},
    ),
    "ConstraintLogitsProcessor": (
        constrain.ConstraintLogitsProcessor,
        lambda: {"constraint": constraint(), "model": None, "generation_config": None, "tokenizer": None,
                 "max_new_tokens": None, "prompt_length": None, "on_refused": "raise"},
    ),
    "ConstraintLogitsProcessor()": (processor_call, tensors),
    "generate search": (
        constrain.generate,
        lambda: {"model": model(), "tokenizer": vocabulary(), "regex": "(ab)*c", "n": 2, "max_tokens": 9, "seed": 1,
                 "search": constrain.BeamSearch(), "check": None},
    ),
    "beam_search": (constrain.beam_search, lambda: {**search(), "options": constrain.BeamSearch()}),
    "best_first_search": (constrain.best_first_search, lambda: {**search(), "options": constrain.BestFirst()}),
    "stochastic_beam_search": (
        constrain.stochastic_beam_search,
        lambda: {**search(), "options": constrain.StochasticBeams(), "rng": np.random.default_rng(0)},
    ),
    "BeamSearch": (
        constrain.BeamSearch,
        lambda: {"width": 4, "length_penalty": 1.0, "normalization": "wu", "patience": 1.0, "early_stopping": "never",
                 "groups": 1, "diversity": 0.0, "distinct": "text", "phrases": constrain.PhraseBanks(["a"]),
                 "lookahead": constrain.Lookahead(), "critic": None},
    ),
    "MinimumBayesRisk": (
        constrain.MinimumBayesRisk, lambda: {"samples": 4, "utility": "fields", "sampler": "masked"},
    ),
    "PhiDecoding": (
        constrain.PhiDecoding,
        lambda: {"width": 2, "rollouts": 2, "block": 2, "foresight": 2, "temperature": 1.0},
    ),
    "AStarDecoding": (
        constrain.AStarDecoding,
        lambda: {"score": None, "branches": 2, "block": 2, "weight": 1.0, "expansions": 9},
    ),
    "PlanningGuided": (
        constrain.PlanningGuided,
        lambda: {"reward": len, "rollouts": 2, "branches": 2, "exploration": 1.0, "base": 10.0},
    ),
    "Superposed": (constrain.Superposed, lambda: {"drafts": 2, "bigrams": 0.1}),
    "PhraseBanks": (
        constrain.PhraseBanks,
        lambda: {"clauses": ["a"], "method": "clauses", "reward": 0.0, "keep": None, "tolerance": None},
    ),
    "Lookahead": (constrain.Lookahead, lambda: {"steps": 1, "weight": 1.0, "breadth": 2}),
    "BestFirst": (
        constrain.BestFirst,
        lambda: {"max_calls": 9, "beam": 2, "together": 2, "distinct": "tokens", "heuristic": "none", "weight": 1.0},
    ),
    "StochasticBeams": (constrain.StochasticBeams, lambda: {"max_calls": 9}),
    "Gap": (
        constrain.Gap, lambda: {"low": 1, "high": 2, "unit": "tokens", "form": form(), "end_tokens": "allowed"},
    ),
    "Gap.tokens": (constrain.Gap.tokens, lambda: {"count": 2, "form": form()}),
    "infill_check": (
        constrain.infill_check,
        lambda: {"spans": ["a", constrain.Gap.tokens(2)], "constraint": constraint(), "beyond": "refuse",
                 "most_states": 99},
    ),
    "infill_form": (constrain.infill_form, lambda: {"spans": ["a", constrain.Gap()], "form": form()}),
    "infill": (
        constrain.infill,
        lambda: {"lm": model(), "spans": ["a", constrain.Gap(), "c"], "constraint": constraint(), "vocabulary": None,
                 "n": 1, "rng": np.random.default_rng(0), "max_tokens": 9, "sampler": "masked"},
    ),
    "decode_masked": (
        constrain.decode_masked,
        lambda: {"model": RandomModel(257, 0), "spans": [97, None, None], "constraint": constraint(),
                 "rng": np.random.default_rng(0), "order": "random", "per_call": 1, "block": None, "temperature": 1.0,
                 "most_calls": 2, "most_states": 99, "most_builds": 2},
    ),
    "warm_up": (constrain.warm_up, lambda: {"vocabulary": vocabulary()}),
    "choose": (
        constrain.choose,
        lambda: {"model": model(), "prompt": None, "options": ["a", "b"], "tokenizer": vocabulary(), "ends": "token",
                 "tolerance": 0.1, "max_rows": 99},
    ),
    "score": (
        constrain.score,
        lambda: {"model": model(), "prompt": None, "text": "ab", "constraint": None, "tokenizer": vocabulary(),
                 "spellings": "canonical", "ends": "token", "tolerance": 0.1, "max_rows": 99, "n": 4, "seed": 1},
    ),
    "draw": (sampling.draw, draws),
    "estimate": (
        sampling.estimate,
        lambda: {"lm": model(), "constraint": constraint(), "f": None, "sampler": "masked", "n": 4, "batches": 2,
                 "level": 0.9, "rng": np.random.default_rng(0), "max_tokens": 9, "scouts": 0.5},
    ),
    "save_table": (saved_table, lambda: {"constraint": constraint(), "path": "it"}),
    "load_table": (sampling.load_table, lambda: {"constraint": constraint(), "path": "/nowhere/at/all"}),
    "SamplingTarget": (sampling.SamplingTarget, lambda: {"temperature": 1.0, "critic": None, "wrap": None}),
    "estimate_from": (
        sampling.estimate_from, lambda: {"draws": sampling.draw(**draws()), "f": None, "level": 0.9},
    ),
    "add_post_filter": (
        sampling.add_post_filter,
        lambda: {"constraint": constraint(), "sampler": "masked", "checker": None, "spellings": "all"},
    ),
    "trie_key": (
        sampling.trie_key, lambda: {"constraint": constraint(), "model": "m", "prompt": "", "validators": ""},
    ),
    "examples": (grammars.examples, lambda: {"content": "--- accept\na\n"}),
    "read": (grammars.read, lambda: {"name": "json"}),
    "text": (grammars.text, lambda: {"name": "json"}),
    "find_incompatibilities": (
        targets.find_incompatibilities,
        lambda: {"schema": True, "target": "openai", "registry": None},
    ),
    "target_of": (targets.target_of, lambda: {"schema": True, "target": "openai"}),
    "from_schema": (strategies(testing.from_schema), lambda: {"schema": {"type": "null"}, **STRATEGY}),
    "from_regex": (strategies(testing.from_regex), lambda: {"pattern": "a", "limits": constrain.Limits()}),
    "from_grammar": (strategies(testing.from_grammar), lambda: {"grammar": constraint()}),
    "nearly_valid": (
        strategies(testing.nearly_valid), lambda: {"schema": {"type": "null"}, "keywords": None, **STRATEGY},
    ),
}  # fmt: skip
MODULES = (constrain, sampling, dialogue, grammars, targets, testing)
RESULTS = {
    "FinishEvent",
    "Generation",
    "Refusal",
    "RetryEvent",
    "TextEvent",
    "ToolCall",
    "Violation",
    "Constraint",
    "Form",
    "Grammar",
    "Vocabulary",
}
"""Classes that the library makes: users call their methods, not them."""
INNER = {
    "Constraint.state_cache", "Form.grammar", "Form.token_nodes", "Form.names", "Form.read", "Refusal.count",
    "Refusal.index",
    *(f"ConstraintLogitsProcessor.{name}"
      for name in ("are_beams", "check_left", "continues", "goes_on", "is_assistant", "masks", "owners", "position",
                   "starts")),
}  # fmt: skip
"""Methods for the library's own use."""


@lru_cache
def public() -> dict[str, list[str]]:
    """The parameters of every public function, class that users call, and method that takes any, by name."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name in module.__all__:
            made = getattr(module, name)
            if inspect.isclass(made) and issubclass(made, BaseException):
                continue
            if inspect.isfunction(made) or (inspect.isclass(made) and module is constrain and name not in RESULTS):
                found[name] = made
            if inspect.isclass(made) and module is constrain:
                own = {inner: getattr(made, inner, None) for inner in dir(made) if not inner.startswith("_")}
                found |= {f"{name}.{inner}": method for inner, method in own.items() if callable(method)}
    taken = {
        name: [one for one, how in inspect.signature(made).parameters.items() if one != "self" and how.kind != VARIADIC]
        for name, made in found.items()
        if name not in INNER
    }
    return {name: names for name, names in taken.items() if names}


@pytest.mark.parametrize("name", list(public()))
def test_every_parameter_of_the_public_api_has_a_row(name: str) -> None:
    rows = {argument for row, (_, right) in CALLS.items() if row.split(" ")[0] == name for argument in right()}
    assert set(public()[name]) <= rows
    assert rows <= set(public()[name]) | {"options", "other"}, "there is no such parameter"


ALSO = {
    "Constraint.save(path=)": OSError,  # no such folder
    "Constraint.load(path=)": OSError,  # no such file
    "estimate(f=)": ValueError,  # what a function of the caller raises: int of a text without digits
    "estimate_from(f=)": ValueError,
    "save_table(path=)": OSError,  # no such folder
    "load_table(path=)": OSError,  # no such file
    "load_table(constraint=)": OSError,
}
"""Errors that are documented besides."""


def cases() -> Iterator[Any]:
    for name, (call, right) in CALLS.items():
        for argument in right():
            row = f"{name}({argument}=)"
            errors = (constrain.ConstrainError, TypeError, *([ALSO[row]] if row in ALSO else []))
            yield pytest.param(call, right, argument, errors, id=row)


@pytest.mark.parametrize(("call", "right", "argument", "errors"), list(cases()))
def test_a_wrong_argument_is_a_type_error_or_a_constrain_error(
    call: Callable[..., Any], right: Callable[[], dict[str, Any]], argument: str, errors: tuple[type[Exception], ...]
) -> None:
    wrong = []
    for name, value in junk().items():
        arguments = {**right(), argument: value}
        try:
            call(**arguments)
        except errors as error:
            if len(str(error)) > 5000:
                wrong.append(f"{name}: a message of {len(str(error))} characters")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
    assert not wrong, "\n".join(wrong)
