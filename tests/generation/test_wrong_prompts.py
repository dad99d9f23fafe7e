"""A prompt of the wrong type is named in the error, with its place in a list; other calls are not affected."""

from __future__ import annotations

from typing import Any

import pytest

import constrain


@pytest.mark.parametrize("wrong", [3, b"a", object()])
def test_the_place_of_a_wrong_prompt_in_a_list_is_named(wrong: Any) -> None:
    with constrain.Engine("demo") as engine:
        with pytest.raises(TypeError, match=r"prompts\[1\] is .*: give a text, a list of messages"):
            engine.generate(["a", wrong, "b"], regex="[ab]")
        assert [one.text for one in engine.generate(["a", "b"], regex="ab")] == ["ab", "ab"]


@pytest.mark.parametrize("wrong", [3, object(), ["a", 1], [1.5]])
def test_a_wrong_prompt_of_a_session_is_named(wrong: Any) -> None:
    with constrain.Engine("demo") as engine:
        with pytest.raises(
            TypeError, match=r"the prompt is .*: give a text, a list of messages or a list of token ids"
        ):
            engine.session(wrong)
        assert engine.generate("a", regex="ab").text == "ab"
