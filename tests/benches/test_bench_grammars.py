"""The benchmark of grammars: incremental results along a text are those of complete parses."""

from __future__ import annotations

import random
from functools import cache

import pytest

from bench.grammars import agreement, our_verdicts
from bench.grammars.edits import Edit, draw_edit
from bench.grammars.languages import LANGUAGES, Language, Text, draw_sentences, list_library_files, load_language
from bench.grammars.oracle import Oracle
from bench.grammars.translate import Inexpressible, to_ebnf, to_llguidance, without_looks
from constrain.engine.constraint import Constraint
from constrain.vocabulary.vocabulary import Vocabulary
from tests.text_acceptance import accepts_text

LINES = Language(
    "lines",
    r"""
start: (_NEWLINE | line)*
line: NAME "=" value _NEWLINE | NAME ":" _NEWLINE _INDENT line+ _DEDENT
value: NAME | STRING | "(" value* ")"
NAME: /[a-z]+/
STRING: /'(?!'').*?(?<!\\)'|'''.*?'''/s
LPAR: "("
RPAR: ")"
_NEWLINE: /(\n[ \t]*)+/
%ignore / +/
%declare _INDENT _DEDENT
""",
    "start",
    "contextual",
    True,
    True,
)
TEXT = b"a = b\nblock:\n  c = (d 'e\nf')\n  inner:\n    g = '''h\n\n'i' '''\n  j = k\n\nlast = (l m\n  n)\n" * 3


@cache
def build_oracle(name: str) -> Oracle:
    language = LINES if name == "lines" else load_language(name)
    return Oracle(language.text, language.start, language.lexer, language.indented)


@cache
def compile_over_bytes(name: str) -> Constraint:
    """Compile a language over the 256 bytes."""
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    return agreement.compile_language(LINES if name == "lines" else load_language(name), vocabulary)


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: list[int]) -> bytes:
        return bytes(tokens)


@pytest.mark.parametrize("seed", range(3))
def test_incremental_results_are_those_of_complete_parses(seed: int) -> None:
    """Edits of an indented text, with strings over several lines: the end of the effect of an edit is found
    correctly.
    """
    judge, made, rng = build_oracle("lines"), compile_over_bytes("lines"), random.Random(seed)
    trace, checkpoints = judge.trace(TEXT), our_verdicts.Checkpoints(made, TEXT)
    kept = 0
    for _ in range(250):
        edit = draw_edit(TEXT, rng)
        whole = judge.accepts(edit.apply(TEXT))
        assert trace.accepts(edit) == whole, edit
        assert checkpoints.accepts(edit) == whole == accepts_text(made, edit.apply(TEXT)), edit
        kept += whole
    assert 25 < kept < 225


def test_an_edit_inserts_removes_or_replaces_one_byte() -> None:
    rng = random.Random(0)
    edits = [draw_edit(b"abc", rng) for _ in range(300)]
    assert {len(edit.apply(b"abc")) for edit in edits} == {2, 3, 4}
    assert all(edit.removed + len(edit.inserted) in (1, 2) and len(edit.inserted) <= 1 for edit in edits)
    assert draw_edit(b"", rng).apply(b"") and Edit(1, 1, b"x").apply(b"abc") == b"axc"


def test_outcomes_of_a_text() -> None:
    judge, made = build_oracle("json"), compile_over_bytes("json")

    def found(content: bytes) -> agreement.Comparison:
        return agreement.compare_text(Text("t", content), judge, made, Bytes(), 40, 0)  # type: ignore[arg-type]

    good = found(b'{"a": [1, 2.5e3, "\xc3\xa9"]}')
    assert (good.verdict, good.edits, good.differences, good.mistakes) == ("accepted", 40, 0, 0)
    assert good.tokens == good.size and 0 < good.kept < 40 and good.checked == 1
    assert found(b"[1,]").verdict == "refused" and found(b"\xff").verdict == "not UTF-8"
    assert found(b"[1,]").edits == 0


def test_a_disagreement_is_counted_and_reported() -> None:
    """Our constraint is of another grammar: digits may begin with 0."""
    language = Language("n", "start: N\nN: /[1-9][0-9]*|0/", "start", "contextual", False, True)
    wider = Language("n", "start: N\nN: /[0-9]+/", "start", "contextual", False, True)
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    judge = Oracle(language.text, "start", "contextual", False)
    made = agreement.compile_language(wider, vocabulary)
    found = agreement.compare_text(Text("t", b"1000"), judge, made, Bytes(), 400, 0)  # type: ignore[arg-type]
    assert found.verdict == "accepted" and found.differences > 0 and found.mistakes == 0
    assert found.examples[0]["lark"] is False and found.examples[0]["ours"] is True
    narrower = agreement.compile_language(language, vocabulary)
    swapped = Oracle(wider.text, "start", "contextual", False)
    stopped = agreement.compare_text(Text("t", b"01"), swapped, narrower, Bytes(), 9, 0)  # type: ignore[arg-type]
    assert stopped.verdict == "differ" and "token 1 is not in the mask" in stopped.examples[0]["what"]


@pytest.mark.slow
def test_languages_have_texts() -> None:
    assert sum(1 for _ in list_library_files(tests=False)) > 300
    assert not any("/tests/" in f"/{text.name}" for text in list_library_files(tests=False))
    drawn = list(draw_sentences("json", 3, 0))
    assert [text.content for text in drawn] == [text.content for text in draw_sentences("json", 3, 0)]
    assert "python-lark" in LANGUAGES and load_language("python-lark").start == "file_input"


def test_grammars_are_translated_for_the_peers() -> None:
    assert without_looks(r"(?!a(b)[)])x[(?!](?<!\\)\(?(?=y)z") == r"x[(?!]\(?z"
    assert without_looks("(?a:(?i:ab))(?a)c") == "(?:(?i:ab))c"
    with pytest.raises(Inexpressible, match="indentation"):
        to_ebnf(LINES)
    json, ebnf = to_llguidance(load_language("json")), to_ebnf(load_language("json"))
    assert "%ignore" in json and "(?!" not in json
    assert ebnf.startswith("root ::= blank ") and "start" not in ebnf
    xgrammar, llguidance = pytest.importorskip("xgrammar"), pytest.importorskip("llguidance")
    for name in ("json", "sql"):
        xgrammar.Grammar.from_ebnf(to_ebnf(load_language(name)))
        grammar = llguidance.LLMatcher.grammar_from_lark(to_llguidance(load_language(name)))
        assert not llguidance.LLMatcher.validate_grammar(grammar)
