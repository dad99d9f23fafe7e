"""docs/how-to/plug-into-engines.md: the blocks of an engine run where it is installed, what the page names exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from constrain.plugins.engine_versions import ENGINE_VERSIONS
from tests.page_reader import page, runs

ROOT = Path(__file__).resolve().parents[2]
TEXT = page("plug-into-engines.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```py\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
MODULES = {"llama-cpp-python": "llama_cpp", "MLX": "mlx_lm"}


def test_the_page_runs_as_written() -> None:
    pytest.importorskip("transformers")
    for block, expected, printed in runs(page("plug-into-engines.md")):
        assert set(expected) <= set(printed), block


@pytest.mark.parametrize("engine", sorted(MODULES))
def test_the_block_of_an_engine_runs(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(MODULES[engine], reason=f"{engine} is not installed: make plugins")
    if engine == "llama-cpp-python":
        pytest.importorskip("gguf")
        from training.export_gguf import export_gguf

        export_gguf(tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[engine], "plug-into-engines.md", "exec"), {})


def test_the_flags_name_classes_that_exist() -> None:
    for module, name in set(re.findall(r"(constrain\.plugins\.\w+):(\w+)", TEXT)):
        path = ROOT / (module.replace(".", "/") + ".py")
        assert f"class {name}(" in path.read_text("utf-8")


def test_each_engine_has_an_environment_and_a_version_in_it() -> None:
    folder = ROOT / "requirements" / "plugins"
    pins = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.txt")))
    for package, (least, below) in ENGINE_VERSIONS.items():
        found = re.search(rf"^{package}==([\d.]+)$", pins, re.MULTILINE)
        assert found, package
        numbers = [tuple(map(int, text.split("."))) for text in (least, found[1], below)]
        assert numbers[0] <= numbers[1] < numbers[2]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    engines = re.search(r"^ENGINES \?= (.*)$", makefile, re.MULTILINE)
    assert engines and all((folder / f"{name}.txt").exists() for name in engines[1].split())
    importlib.import_module("constrain.plugins")
