"""The captures of generated texts as values: a dict from names to texts, JSON values and lists of them."""

from __future__ import annotations

from typing import Any

from ..base.options import Limits
from ..captures.capture_program import CaptureProgram, build_capture_program, has_names
from ..captures.capture_search import Capture, find_captures, show_tokens
from ..decoding.outcomes import Outcome
from ..forms import Form, lark, regex
from ..forms.llguidance_text import uses_llguidance_syntax
from ..forms.sources import SchemaText
from ..integrations.python_values import parse_json, to_value
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import ConstraintRequest

__all__ = ["build_request_program", "capture_bytes", "read_captures"]


def build_request_program(request: ConstraintRequest, vocabulary: Vocabulary, limits: Limits) -> CaptureProgram | None:
    """Return the program that finds the captures of a request; None if its constraint names nothing."""
    form = request.grammar if isinstance(request.grammar, Form) else None
    if isinstance(request.grammar, str) and uses_llguidance_syntax(request.grammar):
        form = lark(request.grammar)
    if isinstance(request.regex, str):
        form = regex(request.regex)
    if form is None or not has_names(form):
        return None
    return build_capture_program(form, vocabulary, limits)


def read_captures(program: CaptureProgram, outcome: Outcome) -> dict[str, Any]:
    """Return the captures of a finished text by name.

    Parameters
    ----------
    program : CaptureProgram
        Of the form that the text matches.
    outcome : Outcome
        The text.

    Returns
    -------
    dict of str to object
        See `Generation.captures`; empty for a text that is not complete.
    """
    data = b"".join(program.vocabulary.spelled(token) for token in outcome.tokens)[outcome.skipped :]
    if outcome.stop is not None:
        data = cut_spelled(program.vocabulary, data, len(outcome.data))
    return capture_bytes(program, data)


def cut_spelled(vocabulary: Vocabulary, data: bytes, length: int) -> bytes:
    """Return the beginning of `data`, in which special tokens are spelled by names in bytes, that has `length` bytes
    with these tokens by name.
    """
    end = len(data)
    while len(show_tokens(vocabulary, data[:end])) > length:
        end -= 1
    return data[:end]


def capture_bytes(program: CaptureProgram, data: bytes) -> dict[str, Any]:
    """Return the captures of a text by name, see `read_captures`; special tokens are spelled by names in bytes."""
    found = find_captures(program, data)
    if found is None:
        return {}
    values: dict[str, Any] = {name: [] for name, is_list in program.names.items() if is_list}
    for one in found:
        if program.names[one.name]:
            values[one.name].append(capture_value(one))
        else:
            values[one.name] = capture_value(one)
    return values


def capture_value(capture: Capture) -> Any:
    """Return the value of a capture: of the Python type of its form, the JSON value of a schema, or the text.

    Raise a ValueError if a validator of the type rejects the value.
    """
    if not isinstance(capture.form, SchemaText):
        return capture.text
    if capture.form.python_type is not None:
        return to_value(capture.form.python_type, capture.text)
    return parse_json(capture.text)
