"""What a Lark grammar may read: modules that ship with lark or constrain, and folders that the call names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import constrain
from constrain import Vocabulary
from constrain.base.errors import ConstrainError, GrammarError, SourceError
from constrain.forms import read_form
from constrain.frontends.lark.lark_imports import MOST_BYTES, ImportReader, ModuleNotFound
from constrain.frontends.lark.lark_loader import load_grammar

VOCABULARY = Vocabulary.bytes()
SECRET = 'A: "secret"\n'
WAYS = ["%import secret.A", "%import .secret.A", "%import .secret (A)", "%import sub.secret.A"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules in it, and one in a separate folder."""
    (tmp_path / "sub").mkdir()
    for place in (tmp_path, tmp_path / "sub"):
        (place / "secret.lark").write_text(SECRET, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_no_file_is_read_unless_the_call_names_its_folder(here: Path, way: str) -> None:
    text = f"{way}\nstart: A\n"
    with pytest.raises(GrammarError, match="import_paths"):
        constrain.compile(VOCABULARY, grammar=text)
    with pytest.raises(GrammarError, match="import_paths"):
        load_grammar(text, source=str(here / "main.lark"))
    (here / "elsewhere").mkdir()
    with pytest.raises(GrammarError):
        constrain.compile(VOCABULARY, grammar=text, import_paths=[here / "elsewhere"])
    matcher = constrain.compile(VOCABULARY, grammar=text, import_paths=[here]).matcher()
    assert matcher.shortest_completion() == b"secret"


@pytest.mark.parametrize("module", ["common.INT", "python.NAME", "unicode.WS", "lark.RULE", "json.start"])
def test_modules_that_ship_are_found_without_a_folder(module: str) -> None:
    name = module.split(".")[1]
    alias = "what" if name.islower() else "WHAT"
    load_grammar(f"%import {module} -> {alias}\nstart: {alias}\n")


def test_only_regular_files_of_bounded_size_inside_the_folder_are_read(here: Path) -> None:
    folder = here / "sub"
    (folder / "out.lark").symlink_to(here / "secret.lark")
    (folder / "in.lark").symlink_to(folder / "secret.lark")
    (folder / "away").symlink_to(here)
    (folder / "dir.lark").mkdir()
    (folder / "large.lark").write_bytes(b"\n" * (MOST_BYTES + 1))
    (folder / "latin.lark").write_bytes(b'A: "\xe9"')
    os.mkfifo(folder / "pipe.lark")
    reader = ImportReader([str(folder)])
    assert reader(None, "in.lark")[1] == SECRET
    outside = ["out.lark", "away/secret.lark", "../secret.lark", str(here / "secret.lark"), "dir.lark", "pipe.lark"]
    for path in [*outside, "large.lark", "latin.lark", "missing.lark", ""]:
        for base in (None, str(here), "import_paths[0]", "import_paths[7]", "lark", "import_paths[0]/../.."):
            with pytest.raises(ModuleNotFound):
                reader(base, path)


def test_a_relative_import_inside_a_module_starts_in_its_folder(here: Path) -> None:
    (here / "sub" / "outer.lark").write_text('B: A "!"\n%import .secret.A\n', "utf-8")
    (here / "secret.lark").unlink()
    made = constrain.lark("%import sub.outer.B\nstart: B\n", import_paths=[here])
    assert made.compile(VOCABULARY).matcher().shortest_completion() == b"secret!"


def test_a_module_that_imports_itself_is_refused(here: Path) -> None:
    (here / "one.lark").write_text('%import .two.B\nA: "a" B\n', "utf-8")
    (here / "two.lark").write_text('%import .one.A\nB: "b" A\n', "utf-8")
    with pytest.raises(GrammarError, match="imports itself"):
        load_grammar("%import .one.A\nstart: A\n", import_paths=[str(here)])


def test_a_saved_form_carries_texts_and_no_folders(here: Path) -> None:
    (here / "sub" / "outer.lark").write_text('B: A "!"\n%import .secret.A\n%import common.INT\n', "utf-8")
    form = constrain.lark("%import .outer.B\nstart: B\n", import_paths=[here, here / "sub"])
    plain = form.plain()
    assert str(here) not in str(plain)
    for file in (here / "sub").iterdir():
        file.unlink()
    (here / "secret.lark").unlink()
    again = read_form(plain)
    assert again.compile(VOCABULARY).matcher().shortest_completion() == b"secret!"
    assert again.plain() == plain
    constrain.compile(VOCABULARY, again).save(here / "saved")
    assert constrain.Constraint.load(here / "saved", VOCABULARY).matcher().shortest_completion() == b"secret!"


def test_a_saved_form_that_names_folders_is_refused(here: Path) -> None:
    plain = constrain.lark("%import .secret.A\nstart: A\n").plain()
    with pytest.raises(SourceError, match="names folders"):
        read_form({**plain, "import_paths": [str(here)]})


def test_a_single_path_is_a_wrong_call(here: Path) -> None:
    with pytest.raises(TypeError, match="sequence of folders"):
        constrain.lark('start: "a"', import_paths=str(here))
    with pytest.raises((TypeError, ConstrainError)):
        constrain.compile(VOCABULARY, grammar='start: "a"', import_paths=str(here))
