"""Versions of transformers: those that were tested run models, others are refused with both numbers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import constrain
from constrain.integrations import transformers_models, transformers_versions
from constrain.integrations.transformers_versions import (
    TRANSFORMERS,
    check_transformers_version,
    name_cache_argument,
)

ROOT = Path(__file__).resolve().parents[2]


def pretend(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    """Let a version of transformers be installed, or none."""

    def answer(package: str) -> str:
        if found is None:
            raise PackageNotFoundError(package)
        return found

    monkeypatch.setattr(transformers_versions, "version", answer)


@pytest.mark.parametrize("found", [None, "5.0", "5.0.0rc1", "5.23.0", "5.99.dev0"])
def test_tested_versions_are_accepted(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    pretend(monkeypatch, found)
    check_transformers_version()


@pytest.mark.parametrize("found", ["4.57.6", "4.99", "6.0.0", "10.1"])
def test_other_versions_are_refused_at_the_first_use(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    pretend(monkeypatch, found)
    transformers_models._load.cache_clear()  # a loaded model has passed the check
    vocabulary = constrain.Vocabulary.bytes()
    uses = (
        lambda: constrain.load_model("demo", dtype="float64"),
        lambda: constrain.ConstraintLogitsProcessor(constrain.compile(vocabulary, regex="a")),
    )
    for use in uses:
        with pytest.raises(constrain.UnsupportedError) as caught:
            use()
        message = str(caught.value)
        assert f"transformers {found} is installed" in message and "5.0" in message
        assert f'pip install "transformers>={TRANSFORMERS[0]},<{TRANSFORMERS[1]}"' in message


def test_the_requirement_says_the_same() -> None:
    assert f'"transformers>={TRANSFORMERS[0]},<{TRANSFORMERS[1]}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_cache_has_the_name_of_the_version() -> None:
    class Newer:
        def forward(self, input_ids: object, cache: object = None) -> None: ...

    class Older:
        def forward(self, input_ids: object, past_key_values: object = None) -> None: ...

    assert [name_cache_argument(one()) for one in (Newer, Older)] == ["cache", "past_key_values"]
