"""PythonChecker and TypeChecker: no prefix of valid source is refused; what cannot be continued is."""

from __future__ import annotations

import ast
import json
import tokenize
from pathlib import Path
from random import Random

import pytest

from constrain.base.errors import ConstrainError
from constrain.checking import PythonChecker, TypeChecker, Verdict
from constrain.checking.python_tokens import find_lexical_end

CHECKER = PythonChecker()


def library_sources(seed: int, count: int) -> list[str]:
    """Statements from modules of the standard library."""
    rng, found = Random(seed), list[str]()
    files = sorted(Path(json.__file__).parent.glob("*.py")) + sorted(Path(ast.__file__).parent.glob("[a-e]*.py"))
    while len(found) < count:
        with tokenize.open(rng.choice(files)) as file:
            source = file.read()
        lines = source.splitlines(keepends=True)
        for node in rng.sample(ast.parse(source).body, 1):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            text = "".join(lines[first - 1 : node.end_lineno])
            if len(text) < 1500:
                found.append(text)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_no_prefix_of_a_module_is_dead(seed: int) -> None:
    rng = Random(seed)
    for source in library_sources(seed, 60):
        ast.parse(source)
        assert CHECKER.check(source) is Verdict.COMPLETE
        for k in rng.sample(range(len(source)), min(len(source), 40)):
            assert CHECKER.check(source[:k]) is not Verdict.DEAD, source[:k]


WRITTEN = [
    "x = 1 if y else 2\n",
    "def f(a, /, b: int = 0, *args, c=1, **more) -> int:\n    return a ** -b // 2\n",
    "try:\n    pass\nexcept* ValueError as e:\n    raise\nfinally:\n    del e\n",
    "match x:\n    case {'a': [1, *_], **rest} if rest:\n        pass\n    case Point(x=0) | -1.5 + 2j:\n        ...\n",
    "class A(B, metaclass=M):\n    '''Doc\n    string'''\n    @property\n    async def f(self): return await self.x\n",
    "x = [i for i in range(3) if i not in (1,)] ; y: int\nif (z := x) != y: pass\nelif x <= y >> 2: pass\nelse: pass\n",
    'a, *b = f\'{x!r:>{w}} {{}} {d["k"]:%H}\' rf\'\' "\\"" if 0 else None\n',
    "a = r'\\\\' + f'{a}' f\"{b:{c}}\" \\\n    + '\\N{BULLET}' # done\n",
    "from . import a\nfrom ... import b as c\nfrom .x.y import (d,\n  e)\nlambda *, k=...: (yield)\n",
    "for x, in ((1,), (2,)):\n\tif x:\n\t\tcontinue\n\telse:\n\n\t\tbreak\n# end\n"
    "with a as b, c: x @= 0x_f1 | 0b1 & 1_0.e-5j\n",
    "print(1if 0else 2, not-1, a - +b)\n",
]


@pytest.mark.filterwarnings("ignore:invalid decimal literal")
@pytest.mark.parametrize("source", WRITTEN)
def test_no_prefix_of_written_source_is_dead(source: str) -> None:
    try:
        ast.parse(source)
    except SyntaxError:
        source = source.replace("except*", "except")  # Python 3.10
    ast.parse(source)
    for k in range(len(source) + 1):
        assert CHECKER.check(source[:k]) is not Verdict.DEAD, source[:k]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1 y", "if x:\ny", "if x:\n  y\n z", "x = 'abc\n", "def f(a)) ", "x = # f", "try:\n pass\nx", "a b",
        "print 1",
        "x = 1\n  y", "1 = x", "x = $", "f(a for a in b, c", "1abc", "(a b", "[1 2", "if x = 1", "x + =", "else ",
        "x = )",
        "x\0", "'\ud800", "for x of", "import a,,", "b'a' 'b' + ", "def f():\n\treturn 1\n        x",
    ],
)  # fmt: skip
def test_dead_texts(text: str) -> None:
    assert CHECKER.check(text) is Verdict.DEAD


@pytest.mark.parametrize(
    "text",
    ["", "x", "x = 1\n", "# only a comment", "if x: pass", "def f(): return 1\n  ", "'''a\n'''", "pass;"],
)
def test_complete_texts(text: str) -> None:
    assert CHECKER.check(text) is Verdict.COMPLETE


@pytest.mark.parametrize(
    "text", ["x =", "if x:", "(", "'a", "'''a\n", "@", "x.", "x !", "def", "1e", "x = \\", "class A:\n  "]
)
def test_unfinished_texts(text: str) -> None:
    assert CHECKER.check(text) is Verdict.OK


def test_lexical_ends() -> None:
    ends = {"a = 'x": "string", "a = 'x\n": "broken", "a # x": "comment", "a\n  ": "line", "(a\n": "space",
            "a1": "word", "1.5": "number", "a +": "operator", "'x'": "space", "f'{a": "string"}  # fmt: skip
    assert {text: find_lexical_end(text).kind for text in ends} == ends


def test_types_are_checked_where_a_text_may_end() -> None:
    asked = list[str]()

    def find_errors(source: str) -> list[str]:
        asked.append(source)
        return ["no"] if "bad" in source else []

    checker = TypeChecker(preamble="import a", find_errors=find_errors)
    assert checker.check("x = 1") is Verdict.COMPLETE
    assert checker.check("bad = 1") is Verdict.OK
    assert checker.check("bad =") is Verdict.OK
    assert checker.check("x = = ") is Verdict.DEAD
    assert asked == ["import a\nx = 1", "import a\nbad = 1"]


def test_mypy_checks_types() -> None:
    pytest.importorskip("mypy")
    checker = TypeChecker(
        preamble="def area(width: int, height: int) -> int: ...", options=["--disable-error-code=empty-body"]
    )
    assert checker.check("x = area(1, 2)") is Verdict.COMPLETE
    assert checker.check("x = area(1, 'a')") is Verdict.OK


def test_without_mypy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mypy.api", None)
    with pytest.raises(ConstrainError, match="not installed"):
        TypeChecker()


def test_arguments() -> None:
    with pytest.raises(TypeError, match="options"):
        TypeChecker(options="--strict", find_errors=lambda source: [])
    with pytest.raises(TypeError, match="find_errors"):
        TypeChecker(find_errors=3)  # type: ignore[arg-type]
