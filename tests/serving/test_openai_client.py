"""The `openai` package, unpatched, against a live server: the scenarios of `clients/openai_client.py`."""

from __future__ import annotations

from fastapi import FastAPI

from tests.serving.clients.openai_client import main
from tests.serving.live_server import serve_live


def test_all_scenarios(served: FastAPI) -> None:
    with serve_live(served) as url:
        main(url)
