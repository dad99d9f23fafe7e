"""Limit errors that are kept and raised again."""

from __future__ import annotations

from constrain.base.errors import LimitError
from constrain.engine.length_limits import make_context_error, make_limit_error


def test_a_restated_error_says_the_same() -> None:
    for error in (
        make_limit_error(3, 9, b"a"),
        make_context_error(3, 9, b"a"),
        LimitError("too long", hint="Shorten."),
    ):
        error.is_of_source = True
        again = error.restate()
        assert again is not error and str(again) == str(error)
        assert (again.is_of_source, again.shortest) == (True, error.shortest)
    assert make_limit_error(3, 9, b"a").restate().shortest == (3, 9, b"a")
