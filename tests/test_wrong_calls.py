"""Wrong calls of the whole public API: TypeError with the right call suggested, or ConstrainError. Nothing else.

Each argument of each call is replaced by each junk value, the others staying right. A junk value that happens to be
right, such as a dict for a schema, may give an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import constrain
from constrain import Vocabulary, dialogue, grammars
from tests.models_made import TableModel


class Person(BaseModel):
    name: str


class Hostile:
    """Answers no question without an error of its own kind."""

    def __repr__(self) -> str:
        return "x" * 1_000_000


def junk() -> dict[str, Any]:
    """Values that are wrong nearly everywhere; made anew each time, since some can be used up."""
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


def form() -> constrain.Form:
    return constrain.literal("a")


def draws() -> Any:
    return {
        "lm": model(), "constraint": constraint(), "sampler": "masked", "n": 1, "rng": np.random.default_rng(0),
        "max_tokens": 9, "checker": None, "spellings": "all",
    }  # fmt: skip


GENERATE = {
    "model": None, "prompt": None, "schema": None, "regex": "ab", "grammar": None, "choices": None, "type": None,
    "tokenizer": None, "style": constrain.Style(), "registry": None, "limits": constrain.Limits(), "sampler": "masked",
    "particles": None, "check": None, "n": None, "max_tokens": 9, "temperature": 1.0, "top_k": None, "top_p": None,
    "seed": 1, "stream": None,
}  # fmt: skip
COMPILE = {"form": None, "schema": None, "regex": None, "grammar": None, "choices": None, "type": None,
           "style": constrain.Style(), "registry": None, "limits": constrain.Limits()}  # fmt: skip


def processor_call(ids: Any, scores: Any) -> Any:
    return constrain.ConstraintLogitsProcessor(constraint())(ids, scores)


def tensors() -> dict[str, Any]:
    import torch

    return {"ids": torch.zeros((1, 1), dtype=torch.long), "scores": torch.zeros((1, 257))}


TOOL = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CALLS: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
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
    "from_tokens": (
        Vocabulary.from_tokens,
        lambda: {"tokens": [b"a", None], "eos_ids": [1], "special": {"x": 1}, "size": 2, "encode": None,
                 "encode_prompt": None, "leading_space": "kept", "name": "x"},
    ),
    "from_pretrained": (
        Vocabulary.from_pretrained, lambda: {"source": "demo", "size": None, "eos_ids": None},
    ),
    "from_tokenizer": (Vocabulary.from_tokenizer, lambda: {"tokenizer": None, "size": None, "eos_ids": [1]}),
    "from_tiktoken": (
        Vocabulary.from_tiktoken,
        lambda: {"source": {b"a": 0, b"b": 1}, "special": {"x": 2}, "eos_ids": [2], "pattern": None, "size": None},
    ),
    "from_mistral": (Vocabulary.from_mistral, lambda: {"source": "/nowhere", "size": None, "eos_ids": None}),
    **{
        f"vocabulary.{name}": (lambda value, name=name: getattr(vocabulary(), name)(value), lambda: {"value": None})
        for name in ("text", "decode", "transcript", "tokenize", "spelled", "fewest")
    },
    **{
        f"matcher.{name}": (lambda value, name=name: getattr(matcher(), name)(value), lambda: {"value": None})
        for name in ("allows", "advance", "advance_bytes", "rollback", "shortest_completion", "states_after")
    },
    "fill_masks": (
        constrain.fill_masks,
        lambda: {"matchers": [matcher()], "out": np.zeros((1, 9), np.int32), "rows": None, "threads": None},
    ),
    "apply_mask": (
        constrain.apply_mask,
        lambda: {"logits": np.zeros(257, np.float32), "masks": matcher().mask(), "rows": None, "threads": None},
    ),
    "infer": (
        constrain.infer, lambda: {"documents": [1], "bounds": "free", "keys": "closed", "formats": "detect"},
    ),
    "tools": (
        constrain.tools,
        lambda: {"definitions": [TOOL], "envelope": "hermes", "choice": "auto", "most": None,
                 "style": constrain.Style()},
    ),
    "tool_calls": (constrain.tool_calls, lambda: {"text": "x", "envelope": "hermes"}),
    "read_tools": (dialogue.read_tools, lambda: {"definitions": [TOOL]}),
    "literal": (constrain.literal, lambda: {"text": "a"}),
    "regex": (constrain.regex, lambda: {"pattern": "a"}),
    "json_schema": (
        constrain.json_schema, lambda: {"schema": True, "style": constrain.Style(), "registry": None},
    ),
    "gbnf": (constrain.gbnf, lambda: {"text": 'root ::= "a"', "start": "root"}),
    "lark": (constrain.lark, lambda: {"text": 'start: "a"', "start": "start"}),
    "free_text": (constrain.free_text, lambda: {"least": 0, "most": 3, "without": (), "until": ""}),
    "mark": (constrain.mark, lambda: {"text": "<x>"}),
    "triggered": (
        constrain.triggered, lambda: {"begins": {"<x>": form()}, "most": 1, "after": "free"},
    ),
    "thinking": (constrain.thinking, lambda: {"answer": form()}),
    "form.repeat": (lambda low, high: form().repeat(low, high), lambda: {"low": 0, "high": 2}),
    "form +": (lambda other: form() + other, lambda: {"other": "a"}),
    "form |": (lambda other: form() | other, lambda: {"other": "a"}),
    "form &": (lambda other: form() & other, lambda: {"other": "a"}),
    "form.quoted": (lambda style: form().quoted(style), lambda: {"style": constrain.Style()}),
    "form.compile": (
        lambda vocabulary, limits: form().compile(vocabulary, limits=limits),
        lambda: {"vocabulary": vocabulary(), "limits": constrain.Limits()},
    ),
    "Style": (
        constrain.Style,
        lambda: {"whitespace": "compact", "key_order": "schema", "escapes": "any", "numbers": "any", "digits": 4,
                 "formats": "assert"},
    ),
    "Limits": (constrain.Limits, lambda: {"dfa_states": 9, "nesting": 9, "cases": 9, "work": 9}),
    "processor": (
        constrain.ConstraintLogitsProcessor,
        lambda: {"constraint": constraint(), "model": None, "generation_config": None, "tokenizer": None,
                 "max_new_tokens": None, "prompt_length": None, "on_refused": "raise"},
    ),
    "processor call": (processor_call, tensors),
    "draw": (constrain.sampling.draw, draws),
    "estimate": (
        constrain.sampling.estimate,
        lambda: {"lm": model(), "constraint": constraint(), "rng": np.random.default_rng(0), "max_tokens": 9},
    ),
    "rehearse": (constrain.rehearse, lambda: {"vocabulary": vocabulary()}),
    "grammars.read": (grammars.read, lambda: {"name": "json"}),
    "grammars.text": (grammars.text, lambda: {"name": "json"}),
}  # fmt: skip


def cases() -> Iterator[Any]:
    for name, (call, right) in CALLS.items():
        for argument in right():
            yield pytest.param(call, right, argument, id=f"{name}({argument}=)")


@pytest.mark.parametrize(("call", "right", "argument"), list(cases()))
def test_a_wrong_argument_is_a_type_error_or_a_constrain_error(
    call: Callable[..., Any], right: Callable[[], dict[str, Any]], argument: str
) -> None:
    wrong = []
    for name, value in junk().items():
        arguments = {**right(), argument: value}
        try:
            call(**arguments)
        except (constrain.ConstrainError, TypeError) as error:
            if len(str(error)) > 5000:
                wrong.append(f"{name}: a message of {len(str(error))} characters")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
    assert not wrong, "\n".join(wrong)
