"""The kernel that writes objects has the words of the general code."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from constrain import Style
from constrain.automata.dfa import Dfa
from constrain.frontends.json_schema.core.whitespace import spacing_at
from constrain.grammar.nodes import Chars, Grammar, JsonString, Literal, NameClass, Node, Number, Object, Property, Rule
from constrain.program.object_code import append_general_object, append_object
from constrain.program.program import Program

STYLES = [Style(), Style.any(), Style(whitespace="compact"), Style(whitespace=2)]
VALUES: list[Node] = [
    JsonString(Dfa.any_text()), Rule("x"), Rule("y"), Chars(Dfa.from_strings(["q"])), Literal(b"true"),
    Number(Dfa.from_strings(["1", "22"])),
]  # fmt: skip
NAMES = st.text('ab!#"\\é😀 ', max_size=5)


@st.composite
def objects(draw: st.DrawFn) -> Object:
    style, value = draw(st.sampled_from(STYLES)), st.sampled_from(VALUES)
    names = draw(st.lists(NAMES, max_size=70, unique=True))
    classes = [Dfa.any_text(), Dfa.from_strings(["abc"])]
    spacing = spacing_at(style, 1)
    return Object(
        tuple(Property(name, draw(value), draw(st.booleans())) for name in names),
        tuple(NameClass(draw(st.sampled_from(classes)), draw(value)) for _ in range(draw(st.integers(0, 2)))),
        draw(st.sampled_from((spacing.layout, spacing.texts))),
        draw(st.integers(0, 2)),
        draw(st.none() | st.integers(0, 9)),
        style.key_order,
        style.escapes,
        draw(st.sampled_from(((), ("abc",)))),
    )


@settings(deadline=None)
@given(objects(), st.integers(0, 3))
def test_both_ways_write_the_same_words(node: Object, before: int) -> None:
    programs = [Program(Grammar(Rule("start"), {})) for _ in range(2)]
    for program in programs:
        program.append([0] * before)
    entries = append_object(node, programs[0]), append_general_object(node, programs[1])
    assert entries[0] == entries[1]
    assert programs[0].words == programs[1].words
    assert programs[0].leaves == programs[1].leaves
    assert programs[0].cells() == programs[1].cells()


def test_many_long_names() -> None:
    names = ["x" * (k % 7) + str(k) for k in range(3_000)]
    node = Object(
        tuple(Property(name, VALUES[k % len(VALUES)], k % 3 == 0) for k, name in enumerate(names)),
        (NameClass(Dfa.any_text(), VALUES[0]),),
        spacing_at(Style(), 0).layout,
    )
    programs = [Program(Grammar(Rule("start"), {})) for _ in range(2)]
    assert append_object(node, programs[0]) == append_general_object(node, programs[1])
    assert programs[0].words == programs[1].words
