"""Models that are not on this disk, where the hub has no answer: one request, one message, nothing retried."""

from __future__ import annotations

from typing import Any

import pytest

utils = pytest.importorskip("huggingface_hub.utils")

from constrain.base.errors import ConstrainError, VocabularyError  # noqa: E402
from constrain.integrations.model_hub import locally_first  # noqa: E402


class Session:
    """What huggingface_hub sends requests with; counts them. error: what each raises, or None for an answer."""

    def __init__(self, error: Exception | None) -> None:
        self.error, self.requests = error, 0

    def head(self, url: str, **options: Any) -> None:
        assert url.startswith("https://") and options["timeout"] > 0
        self.requests += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("kind", [VocabularyError, ConstrainError])
@pytest.mark.parametrize("error", [OSError("no route to host"), TimeoutError("timed out"), RuntimeError("x" * 9_000)])
def test_a_hub_that_does_not_answer_is_queried_once(
    error: Exception, kind: type[ConstrainError], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(error)
    monkeypatch.setattr(utils, "get_session", lambda: session)
    asked: list[bool] = []

    def load(local: bool) -> None:
        asked.append(local)
        raise kind("it is not here", hint="a hint")

    with pytest.raises(kind, match="cannot be reached: ") as caught:
        locally_first("owner/name", load)
    assert asked == [True]
    assert session.requests == 1
    assert len(str(caught.value)) < 500
    assert caught.value.hint == "a hint"


def test_a_hub_that_answers_is_queried_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(None)
    monkeypatch.setattr(utils, "get_session", lambda: session)

    def load(local: bool) -> str:
        if local:
            raise ConstrainError("it is not here")
        return "the model"

    assert locally_first("owner/name", load) == "the model"
    assert session.requests == 1


def test_local_models_need_no_hub_request(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(None)
    monkeypatch.setattr(utils, "get_session", lambda: session)
    assert locally_first("owner/name", lambda local: local) is True
    assert session.requests == 0
