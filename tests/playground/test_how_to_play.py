"""docs/how-to/use-the-playground.md: its commands exist, its Python runs, its numbers and buttons are the page's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.main import get_command

from constrain.cli import app
from constrain.playground.playground_service import MOST_DRAWS, MOST_TEXT
from constrain.playground.sampler_rounds import MOST_TEXTS
from tests.page_reader import page, runs
from tests.serving.live_server import serve_live

PAGE = page("use-the-playground.md")
TEXT = PAGE.read_text("utf-8")


def test_the_page_runs_as_written(playing: FastAPI, tmp_path: Path) -> None:
    with serve_live(playing) as url:
        copy = tmp_path / PAGE.name
        copy.write_text(TEXT.replace("http://127.0.0.1:8000/", url.removesuffix("v1")), "utf-8")
        for block, expected, printed in runs(copy):
            assert [line.strip() for line in printed] == expected, block


def test_its_commands_are_understood() -> None:
    group: Any = get_command(app.app)
    commands = re.findall(r"^\$ constrain (\w+)([^#\n]*)", TEXT, re.M)
    assert len(commands) == 3
    for name, options in commands:
        group.get_command(None, name).make_context(name, options.split())


def test_its_numbers_and_pictures() -> None:
    assert f"{MOST_TEXT:,} bytes" in TEXT and f"{MOST_DRAWS} draws" in TEXT and f"at most {MOST_TEXTS} texts" in TEXT
    pictures = re.findall(r"\.\./(playground/[\w-]+\.png)", TEXT)
    assert len(pictures) == 4
    for picture in pictures:
        assert 0 < (PAGE.parents[1] / picture).stat().st_size < 200_000


def test_its_buttons_are_those_of_the_page(bare: TestClient) -> None:
    html = bare.get("/").text
    for label in re.findall(r"\*([A-Z][a-z ]+)\*", TEXT):
        assert label in html or label.lower() in html.lower() or label in ("As drawn",), label
