"""The library of grammars: each is read by Lark without conflicts, keeps to its examples, and a judge agrees.

The judge is whatever knows the language independently: `json`, `ast`, `sqlite3`, ... It reads the texts that the grammar
must accept, and sentences drawn at random from the grammar's rules.
"""

from __future__ import annotations

import logging
import random

import pytest
from lark import logger
from lark.exceptions import LarkError

from constrain import grammars
from constrain.errors import ConstrainError
from tests.sentences_made import Maker, parser

REFUSALS = (LarkError, AssertionError, IndexError)
"""Lark's own errors, and the two ways in which its Indenter refuses."""


@pytest.mark.parametrize("name", grammars.names())
def test_examples(name: str) -> None:
    ready = grammars.read(name)
    lark = parser(ready)
    assert len(ready.accepts) >= 3 and len(ready.rejects) >= 3
    for text in ready.accepts:
        lark.parse(text)
    for text in ready.rejects:
        try:
            lark.parse(text)
        except REFUSALS:
            continue
        pytest.fail(f"{name} accepts {text!r}")


@pytest.mark.parametrize("name", grammars.names())
def test_no_conflicts_and_nothing_unproductive(name: str, caplog: pytest.LogCaptureFixture) -> None:
    ready = grammars.read(name)
    with caplog.at_level(logging.DEBUG, logger=logger.name):
        parser(ready, debug=True)
    assert not [record.getMessage() for record in caplog.records if "onflict" in record.getMessage()]
    assert not Maker(ready).unproductive()


@pytest.mark.parametrize("name", grammars.names())
def test_sentences_can_be_drawn(name: str) -> None:
    assert Maker(grammars.read(name)).draw(random.Random(0), 20)
