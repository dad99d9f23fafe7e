"""Arguments of `generate` of the wrong kind, and values that a type refuses: one clear error each, nothing lost."""

from __future__ import annotations

import re
from typing import Any

import pytest

import constrain
from constrain import ConstrainError, ConstraintLogitsProcessor, ValueRefused

pytest.importorskip("torch")
pydantic = pytest.importorskip("pydantic")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"style": "compact"}, "style is 'compact'"),
        ({"limits": 5}, "limits is 5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": "a"}, "seed is 'a'"),
        ({"n": 2.5}, "n is 2.5"),
        ({"n": True}, "n is True"),
        ({"max_tokens": "9"}, "max_tokens is '9'"),
        ({"stream": True}, "stream is True"),
        ({"prompt": b"hi"}, "prompt is b'hi'"),
        ({"prompt": 5}, "prompt is 5"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConstrainError, match=re.escape(says)):
        constrain.generate("demo", **{"prompt": "x", "choices": ["a"], **arguments})


def test_choices_and_patterns_are_texts() -> None:
    with pytest.raises(ConstrainError, match="choices must be texts"):
        constrain.generate("demo", choices=[1, 2])  # type: ignore[list-item]
    with pytest.raises(ConstrainError, match="text of a pattern"):
        constrain.generate("demo", regex=re.compile("a"))  # type: ignore[call-overload]


def test_a_value_that_a_validator_refuses_keeps_its_text() -> None:
    class Picky(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        x: bool

        @pydantic.field_validator("x")
        @classmethod
        def never(cls, value: bool) -> bool:
            raise ValueError("not even this")

    with pytest.raises(ValueRefused, match="not even this") as caught:
        constrain.generate("demo", schema=Picky, seed=1)
    assert caught.value.text.replace(" ", "").startswith('{"x":')


def test_choices_may_be_an_iterator() -> None:
    assert constrain.generate("demo", "x", choices=(text for text in "ab"), seed=1).text in "ab"
    assert constrain.generate("demo", "x", choices=map(str, [1, 2]), seed=1, sampler="smc").text in "12"
    first, second = constrain.generate("demo", ["x", "y"], choices=iter("ab"), seed=1)
    assert {first.text, second.text} <= {"a", "b"}
    with constrain.Engine("demo") as engine:
        assert engine.generate("x", choices=iter(["yes", "no"]), seed=1).text in ("yes", "no")


def test_a_processor_takes_constraints_only() -> None:
    with pytest.raises(ConstrainError, match="not a Constraint"):
        ConstraintLogitsProcessor([{"type": "integer"}])  # type: ignore[list-item]


def test_repr_of_constraint_and_matcher() -> None:
    constraint = constrain.compile(constrain.Vocabulary.bytes(), regex="ab?")
    matcher = constraint.matcher()
    assert repr(constraint) == "Constraint(regex='ab?')"
    assert repr(matcher) == "Matcher(b'', not complete)"
    matcher.advance(ord("a"))
    assert repr(matcher) == "Matcher(b'a', complete)"
    matcher.advance_bytes(b"b")
    assert repr(matcher) == "Matcher(b'ab', finished)"


def test_the_typed_options_are_the_parameters() -> None:
    """What type checkers see of `generate` and `Engine` is what they take."""
    from inspect import Parameter, signature

    from constrain.generation.engine_call import EngineOptions, prepare_call
    from constrain.generation.pipeline import generate
    from constrain.generation.text_options import TextOptions

    taken = set(signature(generate).parameters) - {"model", "prompt", "type", "n"}
    assert taken == set(TextOptions.__annotations__)
    parameters = signature(prepare_call).parameters.items()
    assert {name for name, one in parameters if one.kind == Parameter.KEYWORD_ONLY} >= set(
        EngineOptions.__annotations__
    )
