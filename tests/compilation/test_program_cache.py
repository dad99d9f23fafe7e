"""Programs on disk: the masks of a text are those of a fresh one, whatever is damaged, and wherever the text goes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from constrain import (
    ConstrainError,
    Constraint,
    Limits,
    Style,
    TokenRefused,
    UnsupportedError,
    Vocabulary,
    cache,
    compile,
    free_text,
    json_schema,
    lark,
    mark,
)
from constrain.cache import write_behind
from constrain.compilation.compile_caches import programs
from constrain.program.program import Program
from constrain.program.restored_program import RestoredProgram
from tests.schema_strategies import schemas

VOCABULARY = Vocabulary.bytes()
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 6},
        "kind": {"enum": ["leaf", "node", 3]},
        "more": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True},
        "far": {"type": "object", "properties": {"x": {"type": "number", "minimum": 2}}},
    },
    "required": ["name"],
}
TEXT = b'{"name": "ab", "kind": "leaf", "more": [{"name": "c"}, {"name": "d", "far": {"x": 2.5, "y": null}}], "z": 1}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(programs, "most", 64)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


def masks(constraint: Constraint, text: bytes) -> list[bytes]:
    """Return the mask before each byte of a text and after the last, up to a refused byte."""
    matcher = constraint.matcher()
    found = [matcher.mask().tobytes()]
    for byte in text:
        try:
            matcher.advance(byte)
        except TokenRefused:
            return [*found, b"refused"]
        found.append(matcher.mask().tobytes())
    return found


def list_stored_masks(text: bytes = b"", **source: Any) -> list[bytes]:
    """Compile a source, advance over a text, write the program, and return the masks."""
    constraint = compile(VOCABULARY, **source)
    found = masks(constraint, text)
    programs.flush()
    return found


def list_uncached_masks(text: bytes, **source: Any) -> list[bytes]:
    """The masks along a text of a Constraint that has nothing to do with the store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "most", 0)
        return masks(compile(VOCABULARY, **source), text)


def is_restored(constraint: Constraint) -> bool:
    return type(constraint.program) is RestoredProgram


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"schema": TREE}, TEXT),
        ({"schema": TREE, "style": Style.any()}, TEXT),
        ({"schema": json.dumps(TREE)}, TEXT),
        ({"schema": {"$ref": "urn:t"}, "registry": {"urn:t": TREE}}, TEXT),
        ({"regex": r"(?i)[a-f]{2,5}-\d+"}, b"aBc-12"),
        ({"choices": ["one", "two", "twenty"]}, b"twenty"),
        ({"form": free_text(until="{") + json_schema(TREE)}, b"so: {" + TEXT),
        ({"form": mark("<think>") + json_schema({"type": "integer"})}, b"<think>12"),
    ],
)
def test_masks_along_a_text_are_those_of_a_fresh_one(source: dict[str, Any], text: bytes) -> None:
    wanted = list_stored_masks(text, **source)
    assert wanted == list_uncached_masks(text, **source)
    again = compile(VOCABULARY, **source)
    assert is_restored(again)
    assert masks(again, text) == wanted
    assert is_restored(again), "all that the text needs was kept"


@pytest.mark.parametrize("known", [0, 1, 12, 40, 70])
def test_a_rule_is_linked_late(known: int) -> None:
    """The text goes beyond the stored sets, which keep their meaning because compiling gives the same code again."""
    wanted = list_uncached_masks(TEXT, schema=TREE)
    list_stored_masks(TEXT[:known], schema=TREE)
    again = compile(VOCABULARY, schema=TREE)
    assert is_restored(again)
    state_cache = again.state_cache()
    epoch = state_cache.epoch
    assert masks(again, TEXT) == wanted
    assert type(again.program) is Program
    assert again.state_cache() is state_cache
    assert state_cache.epoch == epoch
    programs.flush()
    third = compile(VOCABULARY, schema=TREE)
    assert masks(third, TEXT) == wanted
    assert is_restored(third), "what was linked late was written behind what was there"


@given(schemas)
def test_any_schema(tmp_path_factory: pytest.TempPathFactory, schema: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, str(tmp_path_factory.getbasetemp() / "any"))
        try:
            constraint = compile(VOCABULARY, schema=schema)
        except ConstrainError:
            return
        text = constraint.matcher().shortest_completion(200)
        programs.flush()
        again = compile(VOCABULARY, schema=schema)
        assert text is not None
        assert masks(again, text) == masks(constraint, text)
        assert again.matcher().shortest_completion(200) == text


def test_restored_program_builds_its_grammar_on_demand() -> None:
    list_stored_masks(TEXT[:5], schema=TREE)
    grammar = compile(VOCABULARY, schema=TREE).grammar
    assert grammar.rules[grammar.start.name]  # type: ignore[union-attr]
    again = compile(VOCABULARY, schema=TREE)
    assert is_restored(again)
    wanted = compile(Vocabulary.bytes(), schema=TREE, limits=Limits(nesting=99)).matcher().shortest_completion()
    assert again.matcher().shortest_completion() == wanted
    assert type(again.program) is Program


def test_state_caches_are_evicted_if_the_code_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front end that were not the same each time would cost time, and no mask would be wrong."""
    wanted = list_uncached_masks(TEXT, schema=TREE)
    list_stored_masks(TEXT[:12], schema=TREE)
    again = compile(VOCABULARY, schema=TREE)
    matcher = again.matcher()
    matcher.advance_bytes(TEXT[:9])
    monkeypatch.setattr(RestoredProgram, "_link_again", lambda self, made: None)
    epoch = again.state_cache().epoch
    found = []
    for byte in TEXT[9:]:
        found.append(matcher.mask().tobytes())
        matcher.advance(byte)
    assert found == wanted[9:-1]
    assert again.state_cache().epoch == epoch + 1
    assert again.program.generation == 1
    programs.flush()
    assert not is_restored(compile(VOCABULARY, schema=TREE)), "what does not come out again is not kept"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "other", "long", "foreign"])
def test_a_damaged_file_is_rebuilt(folder: Path, damage: str) -> None:
    wanted = list_stored_masks(TEXT, schema=TREE)
    (path,) = folder.glob("*.program")
    data = path.read_bytes()
    list_stored_masks(regex="a")
    (other,) = (one.read_bytes() for one in folder.glob("*.program") if one != path)
    middle = len(data) // 2 + 1
    flipped = data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :]
    damages = {"cut": data[: middle // 4 * 4], "flip": flipped, "empty": b"", "text": b"{}\n", "other": other,
               "long": data + bytes(4), "foreign": data}  # fmt: skip
    path.write_bytes(damages[damage])
    if damage == "foreign":
        path.chmod(0o666)
    again = compile(VOCABULARY, schema=TREE)
    assert not is_restored(again)
    assert masks(again, TEXT) == wanted
    programs.flush()
    assert path.read_bytes() == data
    assert is_restored(compile(VOCABULARY, schema=TREE))


@pytest.mark.parametrize("place", range(5))
def test_a_program_with_an_invalid_head_is_refused(folder: Path, place: int) -> None:
    """With a right digest, even: numbers of a head are looked at before they are used."""
    list_stored_masks(TEXT, schema=TREE)
    (path,) = folder.glob("*.program")
    content = cache.read_sealed(path, cache.digest_code())
    assert content is not None
    for value in (-1, 1 << 30):
        words = np.frombuffer(content, np.int32).copy()
        words[place] = value
        programs.flush()  # what an earlier compilation writes would replace these words
        assert cache.write_sealed(path, cache.digest_code(), [words.data])
        assert not is_restored(compile(VOCABULARY, schema=TREE))


def test_lark_parsers_have_their_own_cache(folder: Path) -> None:
    list_stored_masks(form=lark("start: A\nA: /a+/"))
    list_stored_masks(form=lark("start: A\nA: /a+/", lexer="dynamic"))
    assert not list(folder.glob("*.program"))


def test_code_of_another_version_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    list_stored_masks(regex="ab")
    assert is_restored(compile(VOCABULARY, regex="ab"))
    monkeypatch.setattr(cache, "digest_code", lambda: b"another version.")
    assert not is_restored(compile(VOCABULARY, regex="ab"))


def test_tokens_are_those_of_the_vocabulary() -> None:
    """What a mark is in one vocabulary, it need not be in another."""
    form = mark("<a>") + "!"
    with_it = Vocabulary.from_tokens([*VOCABULARY.tokens, None], (256,), special={"<end>": 256, "<a>": 257})
    for vocabulary in (VOCABULARY, with_it):
        made = compile(vocabulary, form)
        made.matcher().mask()
        programs.flush()
        again = compile(vocabulary, form)
        assert is_restored(again)
        assert again.matcher().allows(257 if vocabulary is with_it else ord("<"))


def test_old_programs_are_pruned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "most", 5)
    for k in range(70):
        list_stored_masks(choices=[str(k)])
    assert 5 <= len(list(folder.glob("*.program"))) <= 5 + 32


def test_disabled_program_cache_stores_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "most", 0)
    list_stored_masks(regex="a")
    assert not folder.exists()
    monkeypatch.setattr(programs, "most", 5)
    monkeypatch.setenv(cache.VARIABLE, "off")
    list_stored_masks(regex="a")
    assert not is_restored(compile(VOCABULARY, regex="a"))


def test_no_right_to_write_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "below"))
    assert list_stored_masks(regex="a") == masks(compile(VOCABULARY, regex="a"), b"")


def test_errors_come_each_time() -> None:
    for _ in range(2):
        with pytest.raises(UnsupportedError):
            compile(VOCABULARY, regex=r"(a*)\1")


def test_writing_is_deferred_to_a_background_thread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    behind = write_behind.WriteBehind(programs._write, programs.writing.progress)
    monkeypatch.setattr(programs, "writing", behind)
    monkeypatch.setattr(write_behind.time, "sleep", naps.append)
    begun = []
    monkeypatch.setattr(write_behind, "start_new_thread", lambda run, arguments: begun.append(run))
    compile(VOCABULARY, regex="a").matcher().mask()
    compile(VOCABULARY, regex="b").matcher().mask()
    assert len(begun) == 1, "one thread for all that comes in its pause"
    assert not folder.exists()
    begun[0]()
    assert naps == [write_behind.PAUSE]
    assert len(list(folder.glob("*.program"))) == 2


CHILD = """
import sys
from constrain import Vocabulary, compile
from constrain.compilation.compile_caches import programs, recent
schema, text = sys.argv[1], sys.argv[2].encode()
for _ in range(20):
    recent.clear()
    matcher = compile(Vocabulary.bytes(), schema=schema).matcher()
    for byte in text:
        matcher.mask()
        matcher.advance(byte)
    programs.flush()
print(matcher.is_complete)
"""


def test_processes_write_at_once(folder: Path) -> None:
    """Two processes write one file, each a different part first; the final file is complete."""
    texts = (TEXT, b'{"name": "q", "far": {"x": 7}}')
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, cache.VARIABLE: str(folder), "PYTHONPATH": str(root)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, json.dumps(TREE), text.decode()],
            env=environment, cwd=root, stdout=subprocess.PIPE, text=True,
        )
        for text in texts
    ]  # fmt: skip
    for one in running:
        said, _ = one.communicate(timeout=240)
        assert said == "True\n"
    assert len(list(folder.iterdir())) == 1
    again = compile(VOCABULARY, schema=json.dumps(TREE))
    assert is_restored(again)
    for text in texts:
        assert masks(again, text) == list_uncached_masks(text, schema=TREE)
