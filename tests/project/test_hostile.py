"""`bench.hostile`: its outcomes are correct for each kind of failure; some of its rows, run as it runs them."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

import constrain
from bench.hostile.__main__ import OURS, format_row, judge_row, prepare_engines, run_peer, warm_constrain
from bench.hostile.answers import WrongAnswer
from bench.hostile.peers import ENGINES
from bench.hostile.rows import ROWS, Row

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and memory are read from proc(5)")


@pytest.fixture(scope="module")
def ready() -> None:
    """What a run of the bench prepares before it forks."""
    warm_constrain()


def row(check: Callable[..., Any], **more: Any) -> Row:
    return Row("a row", "here", "ours", check=check, **more)


def spin() -> None:
    while True:
        pass


def grow() -> None:
    held = []
    while True:
        held.append(bytes(64 << 20))


def die() -> None:
    faulthandler.disable()  # pytest's would print a stack that looks like a fault of the tests
    os.kill(os.getpid(), signal.SIGSEGV)


def refuse() -> None:
    constrain.compile(constrain.Vocabulary.bytes(), schema={"type": "nothing"})


def wrong() -> None:
    raise WrongAnswer("1 + 1 is 3")


@pytest.mark.parametrize(
    ("check", "verdict", "detail"),
    [
        (lambda: None, "answered", ""), (refuse, "refused", "SchemaError"), (wrong, "wrong", "1 + 1 is 3"),
        (lambda: {}["key"], "error", "KeyError"), (grow, "memory", "MiB"), (die, "crash", "SIGSEGV"),
    ],
)  # fmt: skip
def test_verdicts(check: Callable[..., Any], verdict: str, detail: str) -> None:
    found = judge_row(row(check), OURS, {})
    assert found.verdict == verdict and detail in found.detail, found
    assert ("a row" in format_row(row(check), {OURS: found})) and (verdict in format_row(row(check), {OURS: found}))


def test_a_hang_is_ended() -> None:
    assert judge_row(row(spin, seconds=0.5), OURS, {}).verdict == "hang"


def test_a_refusal_may_be_wrong() -> None:
    assert judge_row(row(refuse, refusal="wrong"), OURS, {}).verdict == "wrong"


def test_rows_have_distinct_names_and_an_origin() -> None:
    names = [one.name for one in ROWS]
    assert len(set(names)) == len(names)
    assert all(one.origin for one in ROWS)
    for section in ("1.1", "1.2", "1.3", "1.4", "1.5", "1.7", "1.8", "1.9", "1.10", "1.11", "1.12", "1.13", "2", "3"):
        assert any(one.origin == f"faults {section}" for one in ROWS), section


TRIVIAL = {"schema": '{"type": "string"}', "regex": "ab+", "gbnf": 'root ::= "a"', "lark": 'start: "a"'}


@pytest.mark.parametrize("name", list(ENGINES))
def test_peers_answer_what_is_trivial_and_refuse_what_is_broken(name: str) -> None:
    ready = prepare_engines([name])
    if not ready:
        pytest.skip(f"{name} is not installed")
    assert {"schema", "regex"} <= ready[name].keys()
    for kind, use in ready[name].items():
        assert run_peer(use, TRIVIAL[kind]) == ("answered", ""), kind
        assert run_peer(use, '{"type": (')[0] in ("refused", "error"), kind


QUICK = (
    "%import of a file",
    "a saved file with",
    "logits of another",
    "const, 100,000",
    "regex groups, 100,000",
    "60 GBNF",
    "a NUL",
    "a key twice",
    "odd settings",
    "odd stop strings",
    "score: odd texts",
    "score: a text of 1 MB, all",
    "particles of a billion",
    "infill: odd",
)


@pytest.mark.parametrize("one", [one for one in ROWS if one.name.startswith(QUICK)], ids=lambda one: one.name)
def test_quick_rows(one: Row, ready: None) -> None:
    found = judge_row(one, OURS, {})
    assert found.verdict in ("answered", "refused"), found
