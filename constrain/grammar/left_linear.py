"""Rules that only repeat become repetitions: `list: list "," item | item` is item ("," item)*.

R = R a | b has the least solution b a*, and R = a R | b has a* b, whatever a and b are, R in them or not: the usual
removal of left recursion, and of right recursion by symmetry. Where a ends with R, as in `sum: sum "+" sum | x`, that R
is b: x ("+" x)*, which is the same texts in fewer ways.
"""

from __future__ import annotations

from collections.abc import Hashable

from .nodes import EMPTY, Node, Repeat, Rule
from .visitor import flatten_choice, flatten_sequence, make_choice, make_sequence

__all__ = ["unroll_recursion"]


def unroll_recursion(name: Hashable, body: Node) -> Node:
    """The body of a rule, without itself as the first step, or the last one, of an option."""
    options = [flatten_sequence(option) for option in flatten_choice(body)]
    myself = Rule(name)
    options = [option for option in options if option != (myself,)]
    first = [option for option in options if option and option[0] == myself]
    if first:
        begins = make_choice(make_sequence(option) for option in options if not option or option[0] != myself)
        again = make_choice(make_sequence(_ended(option[1:], myself, begins)) for option in first)
        return Repeat(begins, 1) if begins == again else make_sequence((begins, Repeat(again)))
    last = [option for option in options if option and option[-1] == myself]
    if last:
        again = make_choice(make_sequence(option[:-1]) for option in last)
        ends = make_choice(make_sequence(option) for option in options if not option or option[-1] != myself)
        return Repeat(again, 1) if ends == again else make_sequence((Repeat(again), ends))
    return make_choice(make_sequence(option) for option in options) if options else EMPTY


def _ended(steps: tuple[Node, ...], myself: Rule, begins: Node) -> tuple[Node, ...]:
    return (*steps[:-1], begins) if steps[-1] == myself else steps
