"""A local server in the shape of OpenAI's, whose model writes characters independently, and a client for it.

`StandIn(probabilities, end)` serves /v1/chat/completions and /v1/completions while it is open. `UrlClient` has the two
methods of `openai.OpenAI` that constrain calls, over urllib, so that tests need no further package.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen

import numpy as np


class StandIn:
    """A model that ends with probability `end` at each place, and else writes a character. requests: their bodies."""

    def __init__(self, probabilities: Mapping[str, float], end: float, seed: int = 0) -> None:
        self.letters, weights = list(probabilities), np.array(list(probabilities.values()))
        self.weights, self.end = weights / weights.sum(), end
        self.rng = np.random.default_rng(seed)
        self.requests: list[dict[str, Any]] = []
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand_in.requests.append(body)
                reply = json.dumps(stand_in.reply(self.path, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing on stderr."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        text = ""
        while len(text) < body["max_tokens"] and self.rng.random() >= self.end:
            text += self.letters[int(self.rng.choice(len(self.letters), p=self.weights))]
        reason = "length" if len(text) == body["max_tokens"] else "stop"
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if path.endswith("/chat/completions"):
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice |= {"text": text, "logprobs": None}
            if body.get("logprobs") is not None:
                logs = {one: math.log(w * (1 - self.end)) for one, w in zip(self.letters, self.weights)}
                top = dict(sorted(logs.items(), key=lambda pair: -pair[1])[: body["logprobs"]])
                choice["logprobs"] = {
                    "tokens": list(text), "token_logprobs": [logs[one] for one in text],
                    "top_logprobs": [top] * len(text), "text_offset": list(range(len(text))),
                }  # fmt: skip
        kind = "chat.completion" if "message" in choice else "text_completion"
        return {"id": "x", "object": kind, "created": 0, "model": body["model"], "choices": [choice]}

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class UrlClient:
    """`chat.completions.create` and `completions.create` over urllib."""

    def __init__(self, url: str) -> None:
        self.completions = SimpleNamespace(create=lambda **body: post(f"{url}/completions", body))
        chat = SimpleNamespace(create=lambda **body: post(f"{url}/chat/completions", body))
        self.chat = SimpleNamespace(completions=chat)


def post(url: str, body: dict[str, Any]) -> Any:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=30) as reply:
        return json.loads(reply.read(), object_hook=lambda found: Reply(**found))


class Reply(SimpleNamespace):
    """A reply's objects; mappings of tokens to numbers can be read as dicts, too."""

    def items(self) -> Any:
        return vars(self).items()
