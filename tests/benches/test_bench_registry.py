"""The registry of benches: each bench is in it and in the README, and shared options mean the same everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.options import SHARED, build_parser, read_cases
from bench.registry import BENCHES, load_main

BENCH = Path(__file__).parents[2] / "bench"


def test_the_list_names_every_bench(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    for name, bench in BENCHES.items():
        assert f"{bench.question}\n    python -m bench {name}" in listed


def test_every_module_with_a_main_is_registered() -> None:
    mains = {path for path in BENCH.rglob("*.py") if re.search(r"^def main\(arguments", path.read_text("utf-8"), re.M)}
    names = {".".join(path.relative_to(BENCH).with_suffix("").parts).removesuffix(".__main__") for path in mains}
    assert names - {"__main__"} == set(BENCHES)


def test_the_readme_has_every_question_and_command() -> None:
    text = (BENCH / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*?) \| `python -m bench (\S+?)(?: [^`]*)?`", text, re.M)
    assert {name: question for question, name in rows} == {name: bench.question for name, bench in BENCHES.items()}


def test_an_unknown_bench_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["maskbnch"]) == 2
    assert "no bench 'maskbnch'" in capsys.readouterr().err


@pytest.mark.parametrize("name", BENCHES)
def test_help_ends_with_the_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        load_main(name)(["--help"])
    assert "\ncolumns: " in capsys.readouterr().out


def test_shared_options_and_changed_defaults(tmp_path: Path) -> None:
    parser = build_parser("maskbench", "doc", *SHARED, engines=["a", "b"], sample=7)
    options = parser.parse_args(["--engines", "b", "--data", str(tmp_path / "none.jsonl")])
    assert (options.engines, options.sample, options.seed, options.bench) == (["b"], 7, 0, "maskbench")
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--engines", "c"])
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--all", "--sample", "3"])
    with pytest.raises(SystemExit, match="2"):
        read_cases(options)
