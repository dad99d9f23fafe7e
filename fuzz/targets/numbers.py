"""Numbers: keywords with exact bounds and multiples, and numbers in all spellings of JSON.

numbers  random bounds, multiples and constants with many digits and exponents, compared with the exact reference
"""

from __future__ import annotations

from hypothesis import strategies as st

import constrain
from tests.text_acceptance import accepts_text

from ..target import Target, suppress_our_errors
from ..walk import BYTES, walk
from .schema import ANY, compare_verdicts

__all__ = ["TARGETS", "literals"]

digits = st.one_of(
    st.sampled_from(["0", "1", "5", "9", "10", "99", "25", "125", "1000"]), st.integers(0, 10**9).map(str)
)
fractions = st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,6}", fullmatch=True))
exponents = st.one_of(
    st.just(""),
    st.just(""),
    st.builds(
        "{}{}{}".format,
        st.sampled_from("eE"),
        st.sampled_from(["", "+", "-"]),
        st.sampled_from(["0", "1", "2", "3", "05", "10", "22", "300"]),
    ),
)
literals = st.builds("{}{}{}{}".format, st.sampled_from(["", "-"]), digits, fractions, exponents)
positive = st.builds(
    "{}{}".format,
    st.sampled_from(["1", "2", "3", "25", "7", "1000", "123456789"]),
    st.sampled_from(["", "", ".5", ".01", ".25", "e3", "e-2", ".123456789"]),
)
keyword = st.one_of(
    st.builds(
        '"{}": {}'.format, st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), literals
    ),
    st.builds('"multipleOf": {}'.format, positive),
    st.sampled_from(['"type": "integer"', '"type": "number"']),
    st.builds('"const": {}'.format, literals),
    st.builds('"enum": [{}, {}]'.format, literals, literals),
    st.builds('"not": {{"multipleOf": {}}}'.format, positive),
    st.builds('"not": {{"minimum": {}}}'.format, literals),
)
schemas = st.lists(keyword, min_size=1, max_size=3, unique_by=lambda one: one.split(":")[0]).map(
    lambda some: "{" + ", ".join(some) + "}"
)


def check(drawn: tuple[str, list[str], int]) -> None:
    """Check the verdict on each number as it is spelled, and on texts of random walks."""
    schema, numbers, seed = drawn
    try:
        constraint = constrain.compile(BYTES, schema=schema, style=ANY)
    except constrain.UnsatisfiableError:
        for number in numbers:
            compare_verdicts(schema, number, False)
        return
    except constrain.LimitError:
        return
    with suppress_our_errors():
        numbers = [*numbers, *(made.decode() for k in range(3) if (made := walk(constraint, seed + k, 12)) is not None)]
    for number in numbers:
        with suppress_our_errors():
            compare_verdicts(schema, number, accepts_text(constraint, number.encode()))


TARGETS = (
    Target(
        "numbers",
        "bounds, steps and constants with exact values",
        st.tuples(schemas, st.lists(literals, min_size=1, max_size=8), st.integers(0, 2**16)),
        check,
        corpus=(('{"multipleOf": 0.01, "minimum": 0.1}', ["0.1", "0.10", "0.3", "0.029", "1e-2"], 3),),
    ),
)
