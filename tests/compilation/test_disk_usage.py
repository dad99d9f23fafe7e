"""The folder of disk caches is bounded by kind of file, and `constrain cache` shows and removes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrain import Vocabulary, compile, lark
from constrain.cli import app
from constrain.compilation.compile_caches import flush_caches, programs, recent
from constrain.compilation.disk_usage import clear_disk, list_kinds, measure_disk
from constrain.forms import form
from constrain.frontends.lark import parser_cache
from constrain.program import program_cache
from constrain.vocabulary import learned_row_cache, lexeme_table_cache, mask_table_cache, vocabulary_cache
from constrain.vocabulary.vocabulary_cache import CachedVocabulary

TOKENS = [bytes([byte]) for byte in range(256)] + [b"w%d" % number for number in range(2_000)]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(programs, "most", 1024)
    return tmp_path / "store"


def fill_store(number: int) -> None:
    """Write a file of each kind, others for each number."""
    form._grammar.cache_clear()
    recent.clear()
    vocabulary = Vocabulary.from_tokens([*TOKENS, b"x%d" % number, b""], eos_ids=[len(TOKENS) + 1])
    CachedVocabulary(b"%d" % number, []).store(vocabulary, {})
    matcher = compile(vocabulary, schema={"type": "string", "pattern": f"^[a-{chr(110 + number)}]+$"}).matcher()
    matcher.advance_bytes(b'"a')
    matcher.mask()
    compile(vocabulary, grammar=lark(f'start: "{"x" * (number + 1)}" A\nA: /[a-z]+/\n')).matcher().mask()
    flush_caches()


BOUNDS: dict[str, Callable[[pytest.MonkeyPatch, int], None]] = {
    ".vocabulary": lambda patch, most: patch.setattr(vocabulary_cache, "MOST_FILES", most),
    ".table": lambda patch, most: patch.setattr(mask_table_cache, "MOST_FILES", most),
    ".rows": lambda patch, most: patch.setattr(learned_row_cache, "MOST_FILES", most),
    ".program": lambda patch, most: patch.setattr(programs, "most", most),
    ".parser": lambda patch, most: patch.setattr(parser_cache, "MOST_FILES", most),
    ".lexemes": lambda patch, most: patch.setattr(lexeme_table_cache, "MOST_FILES", most),
}


def test_every_kind_is_measured_and_nothing_else_is_removed(store: Path) -> None:
    assert [(usage.files, usage.bytes_used) for usage in measure_disk(store)] == [(0, 0)] * len(BOUNDS)
    fill_store(0)
    (store / "other").write_bytes(b"123")
    usages = measure_disk(store)
    assert {usage.kind.suffix for usage in usages if usage.files} == BOUNDS.keys()
    sizes = [path.stat().st_size for path in store.iterdir()]
    assert sum(usage.bytes_used for usage in usages) == sum(sizes) - 3
    assert clear_disk(store) == sum(sizes) - 3
    assert [path.name for path in store.iterdir()] == ["other"]
    assert clear_disk(store) == 0


def test_the_bounds_are_those_of_the_documentation(root: Path) -> None:
    text = (root / "docs" / "how-to" / "use-the-command-line.md").read_text("utf-8")
    assert f"{sum(kind.most_bytes for kind in list_kinds()) >> 20} MiB" in text


@pytest.mark.parametrize("suffix", BOUNDS)
def test_the_latest_files_of_each_kind_remain(suffix: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "SWEEP", 2)  # that is, after every second file
    monkeypatch.setattr(programs, "_written", 0)
    BOUNDS[suffix](monkeypatch, 2)
    seen = list[set[str]]()
    for number in range(4):
        fill_store(number)
        seen.append({path.name for path in store.glob(f"*{suffix}")})
        for path in store.iterdir():  # so that those of the next number are later, however coarse the clock
            os.utime(path, (path.stat().st_mtime - 60, path.stat().st_mtime - 60))
    assert all(len(names) <= (3 if suffix == ".program" else 2) for names in seen)
    assert not seen[3] & seen[0] and seen[3] - seen[2]


def test_the_command_shows_and_removes(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill_store(0)

    def run(*arguments: str) -> Any:
        assert app.run_command(["cache", *arguments]) == 0
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in arguments else out

    found = run("--json")
    assert found["folder"] == str(store) and found["removed_bytes"] == 0
    used = sum(kind["bytes"] for kind in found["kinds"])
    assert used and all(0 < kind["bytes"] <= kind["most_bytes"] for kind in found["kinds"])
    assert all(0 < kind["files"] <= kind["most_files"] for kind in found["kinds"])
    assert "lexemes of grammars" in run() and str(store) in run().replace("\n", "")
    assert "removed" in run("--clear")
    assert run("--clear", "--json") == {**run("--json")} and not any(kind["files"] for kind in run("--json")["kinds"])


def test_the_command_without_a_store(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSTRAIN_STORE", "off")
    assert app.run_command(["cache", "--json", "--clear"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": None, "kinds": [], "removed_bytes": 0}
    assert app.run_command(["cache"]) == 0
    assert "nothing is kept" in capsys.readouterr().out
