"""`constrain check | test | sample | view` on grammars; lark's own parsers are the reference for the examples."""

from __future__ import annotations

import io
import random
import re
import sys
import xml.etree.ElementTree as Xml
from functools import lru_cache
from pathlib import Path

import lark
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("typer")

from constrain import grammars
from constrain.authoring.grammar_tools import find_problems, read_grammar
from constrain.authoring.grammar_tools.grammar_findings import rate_dead_ends
from constrain.authoring.grammar_tools.random_sentences import draw_sentences
from constrain.authoring.grammar_tools.recognition import Recogniser
from constrain.base.errors import ConstrainError
from constrain.cli import app
from constrain.lalr.lexeme_parser import ParseStack, Stack, parse_text
from constrain.lalr.parser_code import Parser
from tests.command_line_factory import Answer, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in a separate folder; files={name: text} are written there first."""
    monkeypatch.chdir(tmp_path)

    def running(*arguments: str, files: dict[str, str] | None = None, stdin: str = "") -> Answer:
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = app.run_command(arguments)
        return Answer(code, *capsys.readouterr())

    return running


# ---- check: what is found ----------------------------------------------------------------------------------------

ELSE = 'start: s\ns: "if" "c" s | "if" "c" s "else" s | "x"\n%ignore " "'
FOUND: dict[str, tuple[str, set[tuple[str, str]], int]] = {
    # grammar: what is found, and how sure it is that what is begun can be finished
    "nothing": ('start: "a" start | "b"', set(), 1),
    "unproductive": ('start: a | "x"\na: a "y"', {("unproductive", "a"), ("left recursion", "a")}, 2),
    "unreachable": ('start: "x"\nb: "z" c\nc: "y"', {("unreachable", "b"), ("unreachable", "c")}, 1),
    "unused": (
        'start: A\nA: "a" PART\nPART: "p"\nC: "c"\n%import common (INT, WS)\n%ignore WS',
        {("unused", "C"), ("unused", "INT")},
        1,
    ),
    "a template": ('start: s{"a"}\ns{x}: x\nt{x}: x', {("unreachable", "t")}, 1),
    "ambiguous": (ELSE, {("ambiguous", "s")}, 2),
    "ambiguous twice": (
        'start: e\ne: e "+" e | e "*" e | "n"',
        {("ambiguous", "e"), ("left recursion", "e")},
        2,
    ),
    "a conflict": ('start: x "b"\nx: | "b" x', {("conflict", "x")}, 2),
    "never wins": ("start: A | B\nA: /[a-z]+/\nB: /[a-f]+/", {("never wins", "B")}, 1),
    "wins by priority": ("start: A | B\nA: /[a-z]+/\nB.1: /[a-f]+/", set(), 1),
    "a keyword": ('start: A | B\nA: /[a-z]+/\nB: "if"', set(), 1),
    "cannot follow": ("start: A B\nA: /[a-z0-9]+/\nB: /[0-9]+/", {("cannot follow", "A")}, 3),
    "may follow": ('start: A B\nA: /[a-z0-9]+/\nB: /[0-9]+/\n%ignore " "', set(), 1),
    "repeated": ("start: A+\nA: /a+/", {("cannot follow", "A")}, 1),
    "ignored": ('start: x+ "b"\nx: "a" U | ";"\nU: "ab"\n%ignore U', {("ignored", "U")}, 2),
    "an ignored literal": ('%ignore " "\nstart: "a" (" " "c")* "b"', {("ignored", '" "')}, 2),
    "an ignored keyword": (
        'start: (N|U)+ ";"\nU: "ab"\nN: /[a-z]+/\n%ignore U',
        {("cannot follow", "N"), ("cannot follow", "U")},
        1,
    ),
    "declared": ("start: A B\nA: /a/\n%declare B", {("declared", "B")}, 1),
}


@pytest.mark.parametrize("name", FOUND)
def test_findings(name: str) -> None:
    text, expected, dead_ends = FOUND[name]
    written = read_grammar(text)
    found = find_problems(written)
    assert {(one.kind, one.names[0]) for one in found} == expected
    assert rate_dead_ends(written, found) == dead_ends
    for one in found:
        assert one.position is not None
        at = text[one.position :]
        assert re.match(r"\w", at) or at.startswith(('"', "%")), (one, at)


def test_terminals_that_a_basic_lexer_cannot_distinguish() -> None:
    text = 'start: A B | C AB\nA: "a"\nB: "b"\nAB: "ab"\nC: "c"'
    assert {one.kind for one in find_problems(read_grammar(text, lexer="basic"))} == {"cannot follow"}
    assert not find_problems(read_grammar(text))


def test_a_ready_grammar_has_nothing_wrong() -> None:
    for name in ("json", "arithmetic", "csv", "toml"):
        ready = grammars.read(name)
        assert not [one for one in find_problems(read_grammar(ready.text, lexer=ready.lexer)) if one.weight != "note"]


# ---- check: texts of two readings --------------------------------------------------------------------------------


def readings(text: str, sentence: str) -> int:
    """Whether lark's Earley parser finds more than one derivation: 2, else 1; 0 if it finds none."""
    parser = lark.Lark(text, parser="earley", lexer="basic", ambiguity="explicit", keep_all_tokens=True)
    try:
        tree = parser.parse(sentence)
    except lark.exceptions.LarkError:
        return 0
    return 2 if list(tree.find_data("_ambig")) else 1


AMBIGUOUS = {
    "else": ELSE,
    "sums": 'start: e\ne: e "+" e | "(" e ")" | "n"',
    "two lists": 'start: a | b\na: "x" a | "x"\nb: b "x" | "x"',
    "deep": 'start: "(" start ")" | e\ne: e e | "x" | "y" "z"',
    "empty ones": 'start: "b" m n "c"\nm: "x" | \nn: "x" | "y" |',
    "a common beginning": 'start: a "k" | b\na: "x" "y"\nb: "x" "y" c\nc: "k" | "m"',
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_the_text_of_an_ambiguity_has_two_readings(name: str) -> None:
    text = AMBIGUOUS[name]
    shown = [
        t
        for one in find_problems(read_grammar(text, lexer="basic"))
        for what, t in one.examples
        if what == "ambiguous text"
    ]
    assert shown
    assert {readings(text, sentence) for sentence in shown} == {2}


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Small grammars, most with conflicts; no rule is another one alone, as lark drops the readings of cycles."""
    symbols = st.sampled_from(['"a"', '"b"', '"c"', "start", "x", "y"])
    option = st.lists(symbols, min_size=2, max_size=3).map(" ".join)
    lines = []
    for name, leaf in (("start", '"a"'), ("x", '"b"'), ("y", '"c"')):
        options = {leaf, *draw(st.lists(option, min_size=1, max_size=3))} - {name}
        lines.append(f"{name}: {' | '.join(sorted(options))}")
    return "\n".join(lines)


@settings(max_examples=25, deadline=None)
@given(rules())
def test_problems_found_in_random_grammars_are_real(text: str) -> None:
    try:
        written = read_grammar(text, lexer="basic")
    except ConstrainError:
        return
    found = find_problems(written)
    for one in found:
        for what, sentence in one.examples:
            if what == "ambiguous text":
                assert readings(text, sentence) == 2
            elif what == "derived by the rules, but rejected":
                assert readings(text, sentence)
    if not written.overruled:  # then there is no ambiguity at all
        for sentence in ("a", "ab", "abc", "aab", "aa", "ba", "bab", "aba", "cab"):
            assert readings(text, sentence) < 2


def test_gbnf_is_searched_character_by_character() -> None:
    text = 'root ::= word+\nword ::= [a-z]+ | "if"\nlost ::= "x"'
    kinds = {(one.kind, one.names[0]) for one in find_problems(read_grammar(text, kind="gbnf"))}
    assert {("ambiguous", "word"), ("unreachable", "lost")} <= kinds
    assert not find_problems(read_grammar('root ::= [a-z]+ ("=" [0-9]{1,3})?', kind="gbnf"))


# ---- check: what a user sees -------------------------------------------------------------------------------------


def test_every_finding_has_a_position(run: Run) -> None:
    answer = run("check", "g.lark", files={"g.lark": ELSE + '\nlost: "y"\n'})
    assert answer.code == 0
    assert "ambiguous text: if c if c x else x" in answer.out
    assert "rule `lost` is not reachable from `start`  (line 4, column 1)" in answer.out
    assert "shortest    x" in answer.out
    assert run("check", "g.lark", "--strict").code == 1
    document = run("check", "g.lark", "--json").document
    assert [one["kind"] for one in document["findings"]] == ["ambiguous", "unreachable"]
    assert document["satisfiable"] and document["shortest"] == "x" and document["dead_ends"] == 2
    assert document["sizes"]["lalr_states"] > 5


def test_all_errors_are_reported_at_once(run: Run) -> None:
    lines = ["start: item+", 'item: name "=" vlaue', "name: NAEM", "value: 'x' | NUMBER", 'other: ("b"']
    text = "\n".join([*lines, "NUMBER: /[0-9+/", "%ignore WS\n"])
    answer = run("check", "g.lark", "--json", files={"g.lark": text})
    assert answer.code == 2
    assert [error["line"] for error in answer.document["errors"]] == [2, 3, 4, 5, 6, 7]
    assert all(error["hint"] for error in answer.document["errors"])


def test_an_unknown_grammar_name_lists_the_known_ones(run: Run) -> None:
    for command in ("check", "test", "view"):
        lost = run(command, "nosuch.lark", *(("--accept", "t.txt") if command == "test" else ()), files={"t.txt": "x"})
        assert (
            lost.code == 2
            and "no built-in grammar of that name" in lost.err
            and "The built-in grammars are arithmetic, " in lost.err
        )


def test_exit_codes(run: Run) -> None:
    empty = run("check", "e.lark", files={"e.lark": 'start: "a" start'})
    assert empty.code == 1 and "so nothing is accepted" in empty.out
    clash = run("check", "c.lark", files={"c.lark": 'start: a "x" "y" | b "x" "z"\na: "k"\nb: "k"'})
    assert clash.code == 2 and "no priority decides" in clash.out and "derived by the rules, but rejected" in clash.out
    assert run("check", "c.lark", "--lexer", "dynamic").code == 0
    assert run("check", "m.lark").code == 2
    assert run("check", "c.gbnf", files={"c.gbnf": "root ::= foo"}).code == 2
    assert run("check", "other.lark", "--start", "b", files={"other.lark": 'a: "x"\nb: a a'}).code == 0


# ---- test --------------------------------------------------------------------------------------------------------


def test_texts_are_accepted_and_refused(run: Run) -> None:
    files = {
        "g.lark": ELSE,
        "yes/1.txt": "if c x",
        "yes/2.txt": "x",
        "no.txt": "if c",
        "lines.txt": "x\nif c x else x\n",
    }
    assert run("test", "g.lark", "--accept", "yes", "--reject", "no.txt", files=files).code == 0
    assert run("test", "g.lark", "--accept", "lines.txt", "--lines").code == 0
    wrong = run("test", "g.lark", "--accept", "no.txt", "--reject", "yes/2.txt")
    assert wrong.code == 1
    assert "no.txt: refused\n  the end of the text is refused at line 1, column 5\n    if c\n        ^\n" in wrong.out
    assert 'expected: "if" or "x"' in wrong.out
    assert "yes/2.txt: accepted, but should be rejected" in wrong.out and "0 of 2 as expected" in wrong.out
    assert run("test", "g.lark").code == 2


def test_a_lexeme_that_was_begun_is_named(run: Run) -> None:
    answer = run("test", "json", "--accept", "t.txt", files={"t.txt": '{"a": nul}'})
    assert 'in nul, which begins at line 1, column 7; it may become "null"' in answer.out
    refusal = run("test", "json", "--accept", "t.txt", "--json").document["texts"][0]["refusal"]
    assert refusal["lexeme"] == ['"null"'] and refusal["refusal"]["column"] == 10


def test_a_last_line_end_may_be_left_out(run: Run) -> None:
    files = {"g.lark": ELSE, "t.txt": "x\n"}
    assert "--strip leaves it out" in run("test", "g.lark", "--accept", "t.txt", files=files).out
    assert run("test", "g.lark", "--accept", "t.txt", "--strip").code == 0


@pytest.mark.parametrize("name", ["json", "arithmetic", "toml", "csv"])
def test_the_reader_and_the_machine_agree(name: str) -> None:
    """`parse_text` finds a text complete exactly where the matcher does, and stops nowhere after that."""
    ready, rng = grammars.read(name), random.Random(5)
    trial = Recogniser(read_grammar(ready.text, lexer=ready.lexer))
    assert trial.parser is not None
    texts = [*ready.accepts, *ready.rejects]
    for text in list(texts):
        if text:
            cut = rng.randrange(len(text))
            texts += [text[:cut], text[:cut] + rng.choice('a"1,[]{}= \n') + text[cut:]]
    for text in texts:
        reading = parse_text(trial.parser, text.encode())
        assert (reading.stopped is None) == trial.accepts(text.encode()), text


# ---- sample ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["json", "arithmetic", "email", "lisp"])
def test_sentences_are_those_of_the_grammar(name: str) -> None:
    ready = grammars.read(name)
    parser = lark.Lark(ready.text, parser="lalr", lexer=ready.lexer)
    found = draw_sentences(read_grammar(ready.text, lexer=ready.lexer), random.Random(1), 80)
    drawn = [next(found).decode() for _ in range(25)]
    assert len(set(drawn)) == 25 and max(map(len, drawn)) > 20
    for text in drawn:
        parser.parse(text)


def test_sampling_ends_and_repeats(run: Run) -> None:
    files = {
        "g.lark": 'start: "a" start start | "b"',
        "two.lark": '!start: "a" | "b"',
        "nl.lark": 'start: ("x" "\\n")+',
    }
    first = run("sample", "g.lark", "-n", "8", "--seed", "3", files=files)
    assert first.code == 0 and len(set(first.out.split())) == 8
    assert run("sample", "g.lark", "-n", "8", "--seed", "3").out == first.out
    assert max(map(len, run("sample", "g.lark", "-n", "8", "--seed", "3", "--size", "9").out.split())) <= 9
    few = run("sample", "two.lark", "-n", "5", "--json")
    assert sorted(few.document["sentences"]) == ["a", "b"] and "2 instead of 5" in few.err
    blocks = run("sample", "nl.lark", "-n", "3", "--seed", "1").out
    assert run("test", "nl.lark", "--examples", "b.examples", files={"b.examples": blocks}).code == 0
    gbnf = run("sample", "g.gbnf", "-n", "4", "--seed", "1", files={"g.gbnf": 'root ::= [a-z]{2,4} ("=" root)?'})
    assert all(re.fullmatch(r"[a-z]{2,4}(=[a-z]{2,4})*", line) for line in gbnf.out.split())


# ---- view --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["json", "arithmetic", "iso8601"])
def test_diagrams_are_complete(run: Run, name: str) -> None:
    assert run("view", name, "-o", "a.svg").code == 0
    tree = Xml.parse("a.svg")
    ids = {node.get("id") for node in tree.iter() if node.get("id")}
    links = {node.get("href", "#")[1:] for node in tree.iter("{http://www.w3.org/2000/svg}a")}
    assert links <= ids
    written = read_grammar(grammars.text(name))
    own = {f"rule-{n}" for n in written.productions.nonterminals if not n.startswith("__")}
    assert own <= ids
    width, height = float(tree.getroot().get("width", 0)), float(tree.getroot().get("height", 0))
    for box in tree.iter("{http://www.w3.org/2000/svg}rect"):
        if box.get("x"):
            assert 0 <= float(box.get("x", 0)) <= width - float(box.get("width", 0))
            assert 0 <= float(box.get("y", 0)) <= height
    assert run("view", name, "-o", "a.html").code == 0
    assert "prefers-color-scheme: dark" in Path("a.html").read_text("utf-8")


def test_every_notation_is_drawn(run: Run) -> None:
    text = (
        'start: a [b] (a | "x"i)* c{a}? B~2..3 -> name\n | \na.2: "p".."q" | B+\n?b: ("," a)* B\nc{x}: x ("," x)*\n'
        'B: /<&/i | "b" ~ 2\n%declare D\nd: D\n%ignore /\\s/\n'
    )
    files = {"g.lark": text, "g.gbnf": 'root ::= "a" ([a-z]* | "<" root{2,3})? <[7]>\n'}
    assert run("view", "g.lark", "-o", "g.svg", files=files).code == 0
    drawn = "".join(Xml.parse("g.svg").getroot().itertext())
    for piece in ('"x"i', "/<&/i", "2–3×", '"p" to "q"', "template of x", "priority 2", "c{a}"):
        assert piece in drawn
    svg = run("view", "g.gbnf")
    assert svg.code == 0 and "[a-z]" in "".join(Xml.fromstring(svg.out).itertext())
    assert run("view", "g.lark", "-o", "g.pdf").code == 2


def stack_after(parser: Parser, stack: Stack, terminal: int) -> Stack | None:
    """The definition: pop the right side of each rule that is reduced, push where its left side leads."""
    table = parser.table
    for _ in range(10_000):
        act = int(table.action[stack[-1], terminal])
        if act >= 0:
            return (*stack, act - 1) if act else None
        stack = stack[: len(stack) - int(table.length[-act - 1])]
        stack = (*stack, int(table.goto[stack[-1], table.left[-act - 1]]))
    return None


@lru_cache
def parser_of(name: str) -> Parser:
    """The parser of one of the grammars that are installed."""
    return read_grammar(grammars.text(name)).parser


@given(st.sampled_from(["json", "arithmetic", "lisp", "python"]), st.data())
def test_a_stack_that_is_changed_in_place(name: str, data: st.DataObject) -> None:
    """Accept and refuse the same as the definition, and return to a saved state."""
    parser = parser_of(name)
    stack = ParseStack(parser)
    kept = now = tuple(stack.states)
    for _ in range(data.draw(st.integers(0, 30))):
        step = data.draw(st.sampled_from(["feed", "feed", "feed", "keep", "undo"]))
        if step == "undo":
            assert stack.undo() == kept
            now = kept
        elif step == "keep":
            stack.commit()
            kept = now
        else:
            afters = {t: stack_after(parser, now, t) for t in range(parser.terminals)}
            taken = [t for t, after in afters.items() if after is not None]
            terminal = data.draw(st.sampled_from(taken * 3 + [t for t in afters if t not in taken] or [0]))
            assert stack.feed(terminal) == (afters[terminal] is not None)
            now = afters[terminal] or now
        assert tuple(stack.states) == now
