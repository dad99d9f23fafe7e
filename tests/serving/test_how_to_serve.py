"""docs/how-to/serve-a-model.md runs as written against a live server, and its table is that of the server."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI

from constrain.serving.request_fields import REQUEST_FIELDS
from tests.page_reader import page, runs
from tests.serving.live_server import serve_live

PAGE = page("serve-a-model.md")


def test_the_page_runs_as_written(served: FastAPI, tmp_path: Path) -> None:
    with serve_live(served) as url:
        copy = tmp_path / PAGE.name
        copy.write_text(PAGE.read_text("utf-8").replace("http://127.0.0.1:8000/v1", url), "utf-8")
        for block, expected, printed in runs(copy):
            assert [line.strip() for line in printed] == expected, block


def test_the_table_has_every_field() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert rows == [(field.name, field.endpoints, field.role, field.note) for field in REQUEST_FIELDS]
