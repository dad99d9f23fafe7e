"""The requests of the page: answers, refusals, headers, keys, and that hostile ones delay no others."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import constrain
from constrain.base.work import spend_work
from constrain.playground.page_files import build_gallery, list_page_files
from constrain.playground.play_application import create_play_app
from constrain.playground.playground_routes import add_playground
from constrain.playground.playground_service import MOST_DRAWS, MOST_TEXT, PlaygroundService
from constrain.serving.application import create_app
from constrain.serving.request_log import RequestLog
from constrain.serving.server_settings import ServerSettings
from tests.running_server import PATIENCE, chat_body, wait_until
from tests.serving.live_server import serve_live

COLOURS = {"kind": "regex", "text": "(light )?(red|blue)|white"}
GALLERY = build_gallery()
KEY = "key-of-the-test"


def source_of(example: dict[str, Any]) -> dict[str, Any]:
    return {name: example[name] for name in ("kind", "text", "option") if example[name]}


def ask(client: TestClient, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/playground/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def events(text: str) -> list[dict[str, Any]]:
    parts = [part.partition("data: ")[2] for part in text.split("\n\n") if "data: " in part]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


def code_units(text: str, count: int) -> str:
    """Return the first code units of a text in UTF-16."""
    return text.encode("utf-16-le")[: 2 * count].decode("utf-16-le")


@pytest.mark.parametrize(
    "example", [one for one in GALLERY if one["name"] != "Grammar: sql"], ids=lambda one: one["name"]
)
def test_examples_of_the_gallery_are_answered(bare: TestClient, example: dict[str, Any]) -> None:
    found = ask(bare, "inspect", source=source_of(example), text=example["typed"])
    text = code_units(example["typed"], found["accepted"])
    assert found["accepted"] or not example["typed"]
    completion = ask(bare, "complete", source=source_of(example), text=text)["completion"]
    whole = ask(bare, "inspect", source=source_of(example), text=text + completion)
    assert whole["is_complete"] and whole["refusal"] is None


def test_names_of_the_gallery_are_different() -> None:
    assert len({example["name"] for example in GALLERY}) == len(GALLERY) > 15


def test_steps_of_the_embedded_model(client: TestClient, playing: FastAPI) -> None:
    """The tokens that are taken spell an answer; the probabilities are those of the model."""
    tokens: list[int] = []
    while len(tokens) < 30:
        found = ask(client, "step", source=COLOURS, prompt="Name a colour.", tokens=tokens, seed=1)
        if found["has_ended"]:
            break
        assert sum(bar["masked"] for bar in found["bars"]) == pytest.approx(1, abs=1e-3)
        tokens.append(found["choices"]["likeliest"])
    vocabulary = playing.state.playground.vocabulary
    assert vocabulary.decode(tokens) in {"red", "blue", "light red", "light blue", "white"}
    lm = constrain.load_model("demo").on("Name a colour.\nFormat: (light )?(red|blue)|white\nAnswer:\n")
    row = lm.next_logprobs([[]])[0]
    first = ask(client, "step", source=COLOURS, prompt="Name a colour.", tokens=[])
    assert all(bar["raw"] == pytest.approx(math.exp(row[bar["token"]]), rel=1e-3) for bar in first["bars"])


def test_a_sampler_approaches_the_law(client: TestClient) -> None:
    law = ask(client, "law", source=COLOURS, prompt="Name a colour.")["texts"]
    assert set(law) == {"red", "blue", "light red", "light blue", "white"} and sum(law.values()) == pytest.approx(1)
    body = {"source": COLOURS, "prompt": "Name a colour.", "sampler": "exact", "draws": 100, "max_tokens": 12}
    answer = client.post("/playground/sample", json=body)
    rounds = events(answer.text)
    assert [one["drawn"] for one in rounds] == [*range(8, 100, 8), 100]
    share = {text: count / 100 for text, count in rounds[-1]["counts"].items()}
    assert sum(abs(law[text] - share.get(text, 0)) for text in law) / 2 < 0.15
    assert client.post("/playground/sample", json=body).text == answer.text, "the seed decides"


@pytest.mark.parametrize(
    ("path", "changes", "param"),
    [
        ("inspect", {"source": {"kind": "python", "text": "1"}}, "/source/kind"),
        ("inspect", {"source": {"kind": "schema", "text": "{"}}, "/source/text"),
        ("inspect", {"source": {"kind": "schema", "text": '"schema.json"'}}, "/source/text"),
        ("inspect", {"source": {"kind": "schema", "text": '{"$ref": "file:///etc/passwd"}'}}, "/source/text/$ref"),
        ("inspect", {"source": {"kind": "schema", "text": '{"type": "strin"}'}}, "/source/text/type"),
        ("inspect", {"source": {"kind": "regex", "text": "(a"}}, "/source/text"),
        ("inspect", {"source": {"kind": "regex", "text": "a", "option": "any"}}, "/source/option"),
        ("inspect", {"source": {"kind": "lark", "text": "start: x"}}, "/source/text"),
        ("inspect", {"source": {"kind": "lark", "text": "%import .secret.x\nstart: x"}}, "/source/text"),
        ("inspect", {"source": {"kind": "gbnf", "text": "root ::= x"}}, "/source/text"),
        ("inspect", {"source": {"kind": "tools", "text": "[1]"}}, "/source/text"),
        ("inspect", {"source": {"kind": "schema"}}, "/source/text"),
        ("inspect", {"text": "x" * (MOST_TEXT + 1)}, "/text"),
        ("inspect", {"more": 1}, "/more"),
        ("complete", {"text": "purple"}, "/text"),
        ("step", {"tokens": [-1]}, "/tokens/0"),
        ("step", {"tokens": [True]}, "/tokens/0"),
        ("step", {"tokens": [5, 5]}, "/tokens"),
        ("step", {"bars": 1_000}, "/bars"),
        ("sample", {"sampler": "markov"}, "/sampler"),
        ("sample", {"sampler": "exact", "draws": MOST_DRAWS + 1}, "/draws"),
        ("sample", {"sampler": "exact", "seed": -1}, "/seed"),
        ("sample", {}, "/sampler"),
    ],
)  # fmt: skip
def test_refusals(client: TestClient, path: str, changes: dict[str, Any], param: str) -> None:
    answer = client.post(f"/playground/{path}", json={"source": COLOURS} | changes)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_without_a_model(bare: TestClient) -> None:
    assert bare.get("/playground/about").json()["model"] is None
    assert ask(bare, "inspect", source=COLOURS, text="light ")["expected"] == ['"b"', '"r"']
    for path, more in (("step", {}), ("law", {}), ("sample", {"sampler": "exact"})):
        answer = bare.post(f"/playground/{path}", json={"source": COLOURS, **more})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_model")


def test_bodies_of_other_types_are_refused(bare: TestClient) -> None:
    body = json.dumps({"source": COLOURS, "text": ""})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = bare.post("/playground/inspect", content=body, headers={"content-type": kind})
        assert answer.status_code == 415
    typed = bare.post("/playground/inspect", content=body, headers={"content-type": "application/json; charset=utf-8"})
    assert typed.status_code == 200


def test_files_and_their_headers(bare: TestClient) -> None:
    for path, file in list_page_files().items():
        answer = bare.get(path)
        assert (answer.status_code, answer.content) == (200, file.body)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = bare.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for path in (
        "/playground/../page_files.py",
        "/playground/%2e%2e/page_files.py",
        "/playground/none.js",
        "/playground",
    ):
        assert bare.get(path).status_code == 404


def test_the_page_names_only_its_own_files() -> None:
    """Nothing is loaded from elsewhere, and nothing in the page is a script or style of its own."""
    files = list_page_files()
    page = files["/"].body.decode()
    assert "style=" not in page and "<script>" not in page and "onclick" not in page
    for file in files.values():
        if "json" not in file.headers["Content-Type"]:
            assert b"http" not in file.body.replace(b"http://www.w3.org/2000/svg", b"")


def test_keys_are_asked_for_everything_but_files(playing: FastAPI) -> None:
    client = TestClient(create_play_app(playing.state.playground.engine, ServerSettings(api_keys=(KEY,))))
    assert client.get("/").status_code == client.get("/playground/main.js").status_code == 200
    assert client.get("/playground/about").status_code == 401
    body = {"source": COLOURS, "text": "red"}
    for path in ("inspect", "complete", "step", "law", "sample"):
        assert client.post(f"/playground/{path}", json=body).status_code == 401
    assert client.post("/playground/inspect", json=body, headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_server_has_the_page_only_if_it_was_added(playing: FastAPI) -> None:
    engine = playing.state.playground.engine
    with TestClient(create_app(engine), raise_server_exceptions=False) as plain:
        assert plain.get("/").status_code == plain.get("/playground/about").status_code == 404
    settings = ServerSettings(model_name="mine", default_tokens=20)
    with TestClient(create_app(engine, settings, additions=(add_playground,))) as served:
        assert served.get("/").status_code == 200
        assert served.get("/playground/about").json()["model"] == "mine"
        assert served.post("/v1/chat/completions", json=chat_body(max_tokens=3) | {"model": "mine"}).status_code == 200


def test_limits_of_the_server_hold(playing: FastAPI) -> None:
    lines: list[str] = []
    tight = ServerSettings(
        max_body_bytes=4_000, max_schema_bytes=300, max_prompt_tokens=40, max_tokens=20, compile_work=5_000
    )
    app = create_play_app(playing.state.playground.engine, tight, RequestLog("json", lines.append))
    with TestClient(app, raise_server_exceptions=False) as client:
        cases: list[tuple[str, dict[str, Any], int, str]] = [
            ("inspect", {"text": "x" * 5_000}, 413, "body_too_large"),
            ("inspect", {"source": {"kind": "regex", "text": "x" * 400}}, 400, "limit_exceeded"),
            ("inspect", {"source": {"kind": "regex", "text": "(?!.*a.{12}b).*"}}, 400, "limit_exceeded"),
            ("inspect", {"source": {"kind": "regex", "text": "a*"}, "text": "a" * 2_000}, 400, "limit_exceeded"),
            ("step", {"prompt": "word " * 100}, 400, "limit_exceeded"),
            ("sample", {"sampler": "masked", "max_tokens": 21}, 400, "limit_exceeded"),
        ]
        for path, changes, status, code in cases:
            answer = client.post(f"/playground/{path}", json={"source": COLOURS} | changes)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), (path, changes)
            assert json.loads(lines[-1])["status"] == status
        assert ask(client, "inspect", source=COLOURS, text="red")["is_complete"]
    assert "word" not in "".join(lines) and "light" not in "".join(lines)


def test_the_queue_is_that_of_the_server(playing: FastAPI) -> None:
    app = create_play_app(playing.state.playground.engine, ServerSettings(max_queue=1))
    operations, body = app.state.operations, {"source": COLOURS, "text": ""}
    with TestClient(app) as client:
        operations.admitted = operations.scheduler.slots + 1
        answer = client.post("/playground/inspect", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")
        operations.admitted = 0
        assert client.post("/playground/inspect", json=body).status_code == 200
        assert operations.admitted == 0


def test_sources_that_take_long_delay_no_others(playing: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, is_over = ServerSettings(compile_threads=2, compile_work=1 << 60), threading.Event()
    app = create_play_app(playing.state.playground.engine, settings)
    service: PlaygroundService = app.state.playground
    compile_source = service.compile

    def compile_slowly(source: Any) -> Any:
        while source.text == "slow" and not is_over.wait(0.001):
            spend_work(2_000, "a test")
        return compile_source(source)

    monkeypatch.setattr(service, "compile", compile_slowly)
    with TestClient(app) as client:
        answers: list[int] = []
        threads = [
            run(lambda: answers.append(ask(client, "inspect", source={"kind": "regex", "text": "slow"})["bytes"]))
            for _ in range(6)
        ]
        wait_until(lambda: len(app.state.operations.pool.slow) == 6)
        for _ in range(3):
            assert ask(client, "inspect", source=COLOURS, text="red")["is_complete"]
        is_over.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert answers == [0] * 6


def test_a_client_that_hangs_up_frees_the_model(playing: FastAPI) -> None:
    scheduler, operations = playing.state.playground.engine.scheduler, playing.state.operations
    body = json.dumps({"source": COLOURS, "sampler": "smc", "draws": MOST_DRAWS}).encode()
    with serve_live(playing) as url:
        port = int(url.rpartition(":")[2].removesuffix("/v1"))
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            head = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
            connection.sendall(f"POST /playground/sample HTTP/1.1\r\n{head}\r\n\r\n".encode() + body)
            assert b"200 OK" in connection.recv(100)
            assert operations.admitted == 1
        wait_until(lambda: not (operations.active or operations.admitted or scheduler.used or scheduler.has_work))


def run(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread
