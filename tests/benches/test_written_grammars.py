"""The grammars of Java and Go of the benchmark: what Lark accepts, and that masks agree with Lark about edits."""

from __future__ import annotations

import random

import pytest

from bench.grammars import agreement, our_verdicts
from bench.grammars.edits import draw_edit
from bench.grammars.languages import WRITTEN, draw_sentences, load_language
from bench.grammars.oracle import Oracle
from constrain.vocabulary.vocabulary import Vocabulary
from tests.text_acceptance import accepts_text

GO = """package main

import "fmt"

type Point struct {
\tX int
\tY int
}

func (p *Point) Move(dx, dy int) error {
\tfor i := 0; i < 10; i++ {
\t\tp.X += dx * -2
\t}
\tif err := f(p, []int{1, 2}); err != nil {
\t\treturn err
\t}
\tswitch p.X {
\tcase 1, 2:
\t\tfmt.Println("one", p.X) // a comment
\tdefault:
\t\tgo func() { g(1) }()
\t}
\tfor k, v := range m {
\t\tx[k] = v
\t}
\treturn nil
}
"""
JAVA = """package a.b;
import java.util.List;

public class Foo<T> extends Bar implements Baz {
  private static final int MAX = 3;
  private List<String> names = new ArrayList<>();

  public Foo(int x) { this.x = x; }

  public int sum(int[] xs, final List<T> l) throws IOException {
    int total = 0; /* a comment */
    for (int i = 0; i < xs.length; i++) { total += xs[i]; }
    for (String s : names) { System.out.println(s + "x"); }
    if (total > MAX && !done) { return (int) total; } else if (x == null) { throw new Error("bad"); } else { total--; }
    try { run(); } catch (IOException | Error e) { e.printStackTrace(); } finally { close(); }
    Function<Integer, Integer> f = y -> y * 2;
    switch (x) { case 1: foo(); break; default: ; }
    return x ? 1 : 2;
  }
}
"""
TEXTS = {"go": GO, "java": JAVA}
WRONG = {
    "go": [
        "func f() {}",
        "package a\nfunc f( {\n}",
        "package a\nfunc f() { if x { }",
        "package a\nvar x int y",
        "package for",
    ],
    "java": [
        "class a {}",
        "class A { int x }",
        "class A { int f() { if (x) y(); } }",
        "class A { int for; }",
        "class A {",
    ],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_grammars_accept_the_examples_only(name: str) -> None:
    language = load_language(name)
    judge = Oracle(language.text, language.start, language.lexer, language.indented)
    assert judge.accepts(TEXTS[name].encode())
    assert not any(judge.accepts(text.encode()) for text in WRONG[name])


@pytest.mark.parametrize("name", WRITTEN)
def test_masks_agree_with_lark_about_edits(name: str) -> None:
    language, content = load_language(name), TEXTS[name].encode()
    judge = Oracle(language.text, language.start, language.lexer, language.indented)
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    made = agreement.compile_language(language, vocabulary)
    assert our_verdicts.walk_text(made, list(content)).complete
    rng, kept = random.Random(0), 0
    for _ in range(150):
        edited = draw_edit(content, rng).apply(content)
        whole = judge.accepts(edited)
        assert accepts_text(made, edited) == whole, edited
        kept += whole
    assert 10 < kept < 140
    for text in draw_sentences(name, 4, 0):
        assert accepts_text(made, text.content) and judge.accepts(text.content)
