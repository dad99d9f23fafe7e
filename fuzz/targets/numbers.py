"""Numbers: keywords with exact bounds and steps, and numbers spelled in every way that JSON has.

numbers  random bounds, steps and constants with many digits and exponents; the exact reference is the judge
"""

from __future__ import annotations

from hypothesis import strategies as st

import constrain

from ..target import Target, ours_only
from ..walk import BYTES, accepts, walk
from .schema import ANY, compare

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
    """Check each number as it is spelled, and the texts that masks lead to."""
    schema, numbers, seed = drawn
    try:
        constraint = constrain.compile(BYTES, schema=schema, style=ANY)
    except constrain.UnsatisfiableError:
        for number in numbers:
            compare(schema, number, False)
        return
    except constrain.LimitError:
        return
    with ours_only():
        numbers = [*numbers, *(made.decode() for k in range(3) if (made := walk(constraint, seed + k, 12)) is not None)]
    for number in numbers:
        with ours_only():
            compare(schema, number, accepts(constraint, number.encode()))


TARGETS = (
    Target(
        "numbers",
        "bounds, steps and constants with exact values",
        st.tuples(schemas, st.lists(literals, min_size=1, max_size=8), st.integers(0, 2**16)),
        check,
        corpus=(('{"multipleOf": 0.01, "minimum": 0.1}', ["0.1", "0.10", "0.3", "0.029", "1e-2"], 3),),
    ),
)
