"""Saved, pickled, copied: the same masks; and whatever a stranger writes into a saved file, a typed error at most."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain import (
    ConstrainError,
    Constraint,
    LimitError,
    Limits,
    Matcher,
    SchemaError,
    SourceError,
    Style,
    UnsupportedError,
    Vocabulary,
    compile,
    compile_grammar,
    free_text,
    gbnf,
    json_schema,
    lark,
    literal,
    regex,
    thinking,
    tools,
    triggered,
)
from constrain.base.json_documents import find_deeper
from constrain.compilation.saved_constraint import digest_text
from constrain.grammar.nodes import Grammar, Literal
from constrain.vocabulary.vocabulary import encode_bytes

VOCABULARY = Vocabulary.bytes()
pytestmark = pytest.mark.filterwarnings("ignore::constrain.SchemaWarning")  # of keywords that were flipped
ORDERED = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "null"}}, "required": ["b", "a"]}
TOOL = {"name": "go", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
SOURCES: list[dict[str, Any]] = [
    {"schema": ORDERED},
    {"schema": ORDERED, "style": Style(key_order="any", whitespace=2)},
    {"schema": '{"type": "string", "maxLength": 3}'},
    {"schema": True},
    {"schema": {"$ref": "urn:n"}, "registry": {"urn:n": {"type": "null"}}},
    {"regex": "[a-z]+", "limits": Limits(dfa_states=10)},
    {"choices": ["yes", "no"]},
    {"form": free_text(until="{") + json_schema(ORDERED) + "!"},
    {"form": (literal("a") | regex("b+")).repeat(1, 3).quoted()},
    {"form": ~regex("a*") & regex("[ab]{1,4}")},
    {"form": triggered({"<c>": json_schema({"type": "integer"})}, after="end")},
    {"form": thinking(literal("x"))},
    {"form": gbnf('root ::= "a" root | "b"')},
    {"form": lark("start: A\n%declare A", grammars={"A": regex("a+")})},
    {"form": lark('start: "x" A\nA: /a+/', lexer="dynamic")},
    {"form": tools([TOOL])},
]


def walk(constraint: Constraint, seed: int, steps: int = 40) -> list[bytes]:
    """Masks along a random text."""
    rng, matcher, found = random.Random(seed), constraint.matcher(), []
    for _ in range(steps):
        mask = matcher.mask()
        found.append(mask.tobytes())
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if not len(allowed) or matcher.is_finished:
            break
        matcher.advance(int(rng.choice(allowed.tolist())))
    return found


def save_to_folder(constraint: Constraint, folder: Path) -> Constraint:
    constraint.save(folder / "it")
    return Constraint.load(folder / "it", VOCABULARY, limits=Limits())


WAYS: dict[str, Callable[[Constraint, Path], Constraint]] = {
    "save": save_to_folder,
    "pickle": lambda constraint, folder: pickle.loads(pickle.dumps(constraint)),
    "copy": lambda constraint, folder: copy.copy(constraint),
    "deepcopy": lambda constraint, folder: copy.deepcopy(constraint),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_masks_are_the_same_afterwards(way: Callable[..., Constraint], source: dict[str, Any], tmp_path: Path) -> None:
    constraint = compile(VOCABULARY, **source)
    again = way(constraint, tmp_path)
    assert again.source == constraint.source
    assert again.limits == constraint.limits
    for seed in range(3):
        assert walk(again, seed) == walk(constraint, seed)


def test_the_order_of_keys_is_preserved(tmp_path: Path) -> None:
    again = save_to_folder(compile(VOCABULARY, schema=ORDERED), tmp_path)
    assert again.matcher().shortest_completion() == b'{"b":0,"a":null}'


def test_a_file_is_private_and_replaces_a_link(tmp_path: Path) -> None:
    constraint = compile(VOCABULARY, regex="a")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "it").symlink_to(victim)
    before = os.umask(0)
    try:
        constraint.save(tmp_path / "it")
    finally:
        os.umask(before)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "it").is_symlink()
    assert (tmp_path / "it").stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["it", "victim"]


def test_saving_over_a_file_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile(VOCABULARY, regex="a").save(tmp_path / "it")
    before = (tmp_path / "it").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        compile(VOCABULARY, regex="b").save(tmp_path / "it")
    assert (tmp_path / "it").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_load_raises_for_special_and_oversized_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero", "/dev/null"):
        with pytest.raises(SourceError, match="not a saved constraint"):
            Constraint.load(path, VOCABULARY)
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)  # a sparse file
    with pytest.raises(SourceError, match="bytes"):
        Constraint.load(tmp_path / "huge", VOCABULARY)
    with pytest.raises(FileNotFoundError):
        Constraint.load(tmp_path / "none", VOCABULARY)


def write(path: Path, body: Any) -> Path:
    """A file with a right digest, as anybody can write it."""
    return write_text(path, json.dumps(body))


def write_text(path: Path, text: str) -> Path:
    path.write_text(json.dumps({"format": "constrain 1", "digest": digest_text(text)}) + "\n" + text + "\n", "utf-8")
    return path


def body_of(constraint: Constraint, path: Path) -> Any:
    constraint.save(path)
    return json.loads(path.read_text("utf-8").split("\n")[1])


def test_a_file_cannot_raise_limits(tmp_path: Path) -> None:
    body = body_of(compile(VOCABULARY, regex="[ab]*a[ab]{4}", limits=Limits(dfa_states=50)), tmp_path / "it")
    body["limits"] = dict.fromkeys(body["limits"], 10**15)
    again = Constraint.load(write(tmp_path / "it", body), VOCABULARY)
    assert again.limits == Limits()
    mine = Limits(dfa_states=40, work=10_000)
    assert Constraint.load(tmp_path / "it", VOCABULARY, limits=mine).limits == mine
    body["limits"] = {"dfa_states": 3}
    assert Constraint.load(write(tmp_path / "it", body), VOCABULARY, limits=mine).limits == replace(mine, dfa_states=3)


@pytest.mark.parametrize("name", ["import_paths", "path", "file", "modules", "limits", "vocabulary", "on_link"])
def test_a_file_names_nothing_that_compile_would_read(tmp_path: Path, name: str) -> None:
    body = body_of(compile(VOCABULARY, regex="a"), tmp_path / "it")
    body["source"][name] = ["/etc"]
    with pytest.raises(SourceError):
        Constraint.load(write(tmp_path / "it", body), VOCABULARY)


def test_a_file_cannot_name_folders_for_imports(tmp_path: Path) -> None:
    (tmp_path / "secret.lark").write_text('A: "s"\n')
    body = body_of(compile(VOCABULARY, lark("start: A\nA: /a/")), tmp_path / "it")
    body["source"]["form"] |= {"text": "%import secret.A\nstart: A\n", "import_paths": [str(tmp_path)]}
    with pytest.raises(SourceError, match="folders"):
        Constraint.load(write(tmp_path / "it", body), VOCABULARY)


@pytest.mark.parametrize("depth", [300, 100_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_deep_file_ends_in_a_limit(tmp_path: Path, depth: int, brackets: str) -> None:
    first, last = ("[", "]") if brackets == "[]" else ('{"not":', "}")
    text = (
        '{"source": {"schema": {"const": ' + first * depth + "1" + last * depth + '}}, "limits": {}, "vocabulary": ""}'
    )
    write_text(tmp_path / "it", text)
    with pytest.raises(LimitError, match="nest"):
        Constraint.load(tmp_path / "it", VOCABULARY)
    with pytest.raises(ConstrainError):
        Constraint.load(tmp_path / "it", VOCABULARY, limits=Limits(nesting=1_000_000))


@given(st.recursive(st.text(alphabet='"\\[]{}a', max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_nesting_depth_is_computed_exactly(value: Any) -> None:
    def depth(one: Any) -> int:
        return 1 + max(map(depth, one), default=0) if isinstance(one, list) else 0

    text, levels = json.dumps(value), depth(value)
    assert find_deeper(text, levels) == -1
    if levels:
        assert text[find_deeper(text, levels - 1)] in "[{"


def loads(path: Path) -> None:
    """Loads a file: a working constraint, or one of our errors."""
    try:
        constraint = Constraint.load(path, VOCABULARY, limits=Limits(work=200_000))
        matcher = constraint.matcher()
        matcher.mask()
    except ConstrainError as error:
        assert len(str(error)) < 8_000
        return
    assert matcher.mask().dtype == np.int32


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_truncated_at_every_byte(source: dict[str, Any], tmp_path: Path) -> None:
    compile(VOCABULARY, **source).save(tmp_path / "it")
    whole = (tmp_path / "it").read_bytes()
    for length in range(len(whole) - 1):
        (tmp_path / "it").write_bytes(whole[:length])
        with pytest.raises(SourceError):
            Constraint.load(tmp_path / "it", VOCABULARY)


WRONG = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "\ud800",
    [],
    [None],
    {},
    {"kind": "Text"},
    {"a": 1},
    ["a", 1],
    float("nan"),
]


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON document."""
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from list_paths(one, (*path, key))


def replace_at(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    value = copy.copy(value)
    value[path[0]] = replace_at(value[path[0]], path[1:], other)
    return value


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_a_wrong_type_anywhere(source: dict[str, Any], tmp_path: Path) -> None:
    body = body_of(compile(VOCABULARY, **source), tmp_path / "it")
    rng = random.Random(0)
    for path in list_paths(body):
        for other in WRONG if path[:1] != ("source",) or len(path) < 4 else rng.sample(WRONG, 4):
            loads(write(tmp_path / "it", replace_at(body, path, other)))
        if path:
            *most, last = path
            holder = body
            for key in most:
                holder = holder[key]
            fewer = copy.copy(holder)
            del fewer[last]
            loads(write(tmp_path / "it", replace_at(body, tuple(most), fewer)))
            if isinstance(holder, dict):
                loads(write(tmp_path / "it", replace_at(body, tuple(most), {**holder, "other": 1})))


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_random_flips_under_a_right_digest(source: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps(body_of(compile(VOCABULARY, **source), tmp_path / "it"))
    rng = random.Random(1)
    for _ in range(150):
        place = rng.randrange(len(text))
        loads(
            write_text(
                tmp_path / "it", text[:place] + rng.choice('"\\{}[]:,0é\x00-') + text[place + rng.randrange(2) :]
            )
        )


def test_a_constraint_without_a_source_raises(tmp_path: Path) -> None:
    constraint = compile_grammar(Grammar(Literal(b"a"), {}), VOCABULARY)
    for how in (lambda: constraint.save(tmp_path / "it"), lambda: pickle.dumps(constraint)):
        with pytest.raises(UnsupportedError, match="Grammar nodes"):
            how()
    assert copy.deepcopy(constraint) is constraint
    with pytest.raises(UnsupportedError, match="JSON"):
        pickle.dumps(compile(VOCABULARY, schema={"type": "number", "maximum": Decimal("1.5")}))
    with pytest.raises(SchemaError, match="JSON value"):
        compile(VOCABULARY, schema={"type": "null", "default": {1, 2}})


# ---- vocabularies and matchers


def test_a_vocabulary_is_pickled_completely() -> None:
    tokens = [b"a", b"", None, b"\xff\x00", b"a", "é".encode(), None, None]
    special = {"<s>": 2, "<end>": 6}
    made = Vocabulary.from_tokens(tokens, [6], special=special, leading_space="stripped", name="n", encode=encode_bytes)
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    for name in ("tokens", "eos_ids", "special", "names", "blob", "fingerprint", "encode", "leading_space", "name"):
        assert getattr(again, name) == getattr(made, name)
    assert again.offsets.tolist() == made.offsets.tolist()
    assert pickle.loads(pickle.dumps(made)) is again, "one table of masks for all copies"
    assert copy.copy(made) is copy.deepcopy(made) is made
    local = Vocabulary.from_tokens(tokens, [6], encode=lambda text: [0])
    assert pickle.loads(pickle.dumps(local)).encode is None


def test_a_matcher_is_copied_where_it_stands() -> None:
    rng = random.Random(3)
    constraint = compile(VOCABULARY, schema=ORDERED)
    for _ in range(20):
        matcher = constraint.matcher()
        matcher.advance_bytes(b"{")
        for _ in range(rng.randrange(14)):
            allowed = np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))
            if len(allowed):
                matcher.advance(int(rng.choice(allowed.tolist())))
        for other in (copy.copy(matcher), copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))):
            assert type(other) is Matcher
            assert other.tokens == matcher.tokens
            assert other.is_finished == matcher.is_finished
            assert other.mask().tobytes() == matcher.mask().tobytes()
            other.rollback(1)
            assert len(other.tokens) <= len(matcher.tokens)


def serve(inbox: Any, outbox: Any) -> None:
    for constraint, matcher in iter(inbox.get, None):
        outbox.put((walk(constraint, 5), matcher.mask().tobytes(), matcher.tokens))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_through_a_queue(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    context: Any = multiprocessing.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    worker = context.Process(target=serve, args=(inbox, outbox), daemon=True)
    worker.start()
    for source in SOURCES[:4]:
        constraint = compile(VOCABULARY, **source)
        matcher = constraint.matcher()
        matcher.advance(int(np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))[0]))
        inbox.put((constraint, matcher))
        masks, mask, tokens = outbox.get(timeout=300)
        assert masks == walk(constraint, 5)
        assert (mask, tokens) == (matcher.mask().tobytes(), matcher.tokens)
    inbox.put(None)
    worker.join(60)


def test_threads_load_at_once(tmp_path: Path) -> None:
    compile(VOCABULARY, schema=ORDERED).save(tmp_path / "it")
    wanted = walk(compile(VOCABULARY, schema=ORDERED), 2)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(walk(Constraint.load(tmp_path / "it", VOCABULARY), 2)))
        for _ in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [wanted] * 8
