"""Conversion of direct left and right recursion to repetition: `list: list "," item | item` is item ("," item)*.

The least solution of R = R a | b is b a*, and that of R = a R | b is a* b, whether or not a and b contain R: the usual
removal of left recursion, and of right recursion by symmetry. If a ends with R, as in `sum: sum "+" sum | x`, that R is
replaced by b, giving x ("+" x)*: the same language with fewer derivations.

Right recursion is kept where the rule contains a Member: an intersection may have to split a repetition into rules for
its states, and a rule with Members must be referenced last (see `nodes.Unique`).
"""

from __future__ import annotations

from collections.abc import Hashable

from .nodes import EMPTY, Member, Node, Repeat, Rule
from .smart_constructors import flatten_choice, flatten_sequence, make_choice, make_sequence
from .visitor import walk_nodes

__all__ = ["unroll_recursion"]


def unroll_recursion(name: Hashable, body: Node) -> Node:
    """Return the body of rule `name` without direct left recursion or, if there is none, without direct right
    recursion.
    """
    options = [flatten_sequence(option) for option in flatten_choice(body)]
    myself = Rule(name)
    options = [option for option in options if option != (myself,)]
    first = [option for option in options if option and option[0] == myself]
    if first:
        begins = make_choice(make_sequence(option) for option in options if not option or option[0] != myself)
        again = make_choice(make_sequence(_ended(option[1:], myself, begins)) for option in first)
        return Repeat(begins, 1) if begins == again else make_sequence((begins, Repeat(again)))
    last = [option for option in options if option and option[-1] == myself]
    if last and not any(isinstance(node, Member) for node in walk_nodes(body)):
        again = make_choice(make_sequence(option[:-1]) for option in last)
        ends = make_choice(make_sequence(option) for option in options if not option or option[-1] != myself)
        return Repeat(again, 1) if ends == again else make_sequence((Repeat(again), ends))
    return make_choice(make_sequence(option) for option in options) if options else EMPTY


def _ended(steps: tuple[Node, ...], myself: Rule, begins: Node) -> tuple[Node, ...]:
    """Replace a final reference to the rule itself by its non-recursive options."""
    return (*steps[:-1], begins) if steps[-1] == myself else steps
