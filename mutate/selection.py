"""Select the files to mutate, and the tests to run for a file.

First the nearest tests: for a Python file by names and imports; for kernels, which tests do not import, and for
samplers that are tested under another name, by the tables here. Then tests that are known to run files of the package.
Of these only tests that reach the mutant are run (`fork_server`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

__all__ = ["ROOT", "list_files", "choose_nearest_tests", "choose_further_tests"]

ROOT = Path(__file__).resolve().parent.parent
MUTATED = (
    "constrain/kernels/*.py",
    "constrain/frontends/json_schema/algebra/*.py",
    "constrain/frontends/json_schema/core/schema_sets.py",
    "constrain/frontends/json_schema/shapes/*.py",
    "constrain/frontends/json_schema/arrays/*.py",
    "constrain/frontends/json_schema/objects/*.py",
    "constrain/frontends/json_schema/numbers/*.py",
    "constrain/sampling/*.py",
    "constrain/sampling/core/*.py",
    "constrain/sampling/research/*.py",
    "constrain/authoring/samples/*.py",
    "constrain/engine/text_enumeration.py",
    "constrain/integrations/transformers_language_model.py",
)
"""Kernels, the algebra of shapes, and sampling; the last two are parts of sampling in other packages."""
LEFT_OUT = (
    "__init__.py", "__main__.py", "layout.py", "context_layout.py", "program_layout.py", "record_layout.py",
    "table_layout.py",
)  # fmt: skip
"""Files of constants, which have no code to mutate."""
ENGINE = (
    "test_mask_oracle",
    "test_left_linear",
    "test_matcher_laws",
    "test_completion",
    "test_cache_growth",
    "test_bounded_steps",
)
SAMPLING = (
    "test_sampling_*", "test_awrs*", "test_smc", "test_markov", "test_without_replacement", "test_success_trie",
    "test_generate*", "test_random_instances", "test_distinct_instances", "test_wrong_calls",
    "test_model_match", "test_decoding",
    "test_population", "test_ngram", "test_weight_stats", "test_readable_texts",
)  # fmt: skip
FURTHER: dict[str, tuple[str, ...]] = {
    "constrain/kernels/": (
        "test_fill_masks", "test_python_values", "test_lark_random", "test_random_instances",
        "test_special_tokens", "test_scanner",
        "test_reference_*", "test_unique_members", "test_dfa_wide", "test_state_cache", "test_long_runs",
        "test_json_schema_strings",
        "test_json_schema_refs", "test_mask_real", "test_gbnf", "test_exactly_one", "test_lalr", "test_rows",
        "test_success_trie", "test_json_schema_unique", "test_names_taken", "test_lark", "test_free_text_forms",
        "test_kernel_*",
    ),
    "constrain/frontends/json_schema/": (
        "test_json_schema_*", "test_exactly_one", "test_schema_suite", "test_schema_*", "test_forms_algebra",
        "test_work_of_schemas", "test_python_values", "test_random_instances",
    ),
    "constrain/sampling/": SAMPLING,
    "constrain/authoring/samples/": SAMPLING,
    "constrain/engine/text_enumeration.py": SAMPLING,
    "constrain/integrations/transformers_language_model.py": (
        "test_generate*", "test_model_match", "test_transformers",
    ),
}  # fmt: skip
"""Further tests that run a file, for mutants that survive the nearest tests."""
KERNELS: dict[str, tuple[str, ...]] = {
    "parsing": (
        "test_kernel_parsing", "test_kernel_tables", "test_kernel_lexemes", "test_scanner", "test_lark", "test_lalr",
    ),
    "lexemes": ("test_kernel_lexemes", "test_scanner", "test_lark"),
    "lexeme_masks": ("test_kernel_lexemes", "test_kernel_masks", "test_scanner", "test_lark"),
    "object_states": ("test_kernel_object_states", "test_reference_objects", "test_mask_oracle"),
    "string_keys": ("test_kernel_string_keys", "test_spellings", "test_reference_objects"),
    "interned_names": (
        "test_kernel_interned_names", "test_kernel_tables", "test_reference_objects", "test_names_taken",
    ),
    "unique_members": (
        "test_kernel_unique_members", "test_kernel_tables", "test_unique_members", "test_json_schema_unique",
        "test_distinct_instances",
    ),
    "logits": ("test_apply_mask", "test_sampling_masked"),
    "draws": ("test_draws", "test_sampling_laws", "test_awrs"),
    "mask_deltas": ("test_kernel_mask_deltas", "test_rows", "test_fill_masks"),
    "leaves": (
        "test_kernel_leaves", "test_kernel_trie", "test_spellings", "test_reference_text", "test_python_values",
        "test_mask_oracle",
    ),
    "trie": ("test_kernel_trie", "test_spellings", "test_vocabulary", "test_rows"),
    "matcher_calls": ("test_kernel_matcher_calls", "test_matcher_laws", "test_state_cache"),
    "growth": ("test_kernel_growth", "test_kernel_tables", "test_kernel_stacks", "test_state_cache"),
    "string_cursors": ("test_kernel_string_cursors", "test_kernel_tables", "test_completion"),
    "sets": ("test_kernel_sets", "test_unique_members"),
    "interned_sets": ("test_kernel_sets", "test_unique_members"),
    "token_steps": ("test_kernel_trie_walks", "test_kernel_sets", "test_kernel_masks", "test_kernel_lexemes"),
    "leaf_masks": ("test_kernel_masks", "test_kernel_trie_walks", "test_names_taken", "test_fill_masks"),
    "trie_walks": ("test_kernel_trie_walks", "test_kernel_sets", "test_kernel_masks", "test_kernel_lexemes"),
    "closure": ("test_kernel_closure", "test_kernel_sets"),
    "stacks": ("test_kernel_stacks",),
    "masks": ("test_kernel_masks", "test_kernel_lexemes", "test_fill_masks"),
}  # fmt: skip
SAMPLERS: dict[str, tuple[str, ...]] = {
    "token_automaton": ("test_sampling_laws",),
    "asap": ("test_sampling_asap", "test_sampling_bad_input"),
    "awrs": ("test_awrs", "test_awrs_texts", "test_sampling_rules"),
    "distinct_instances": ("test_distinct_instances", "test_sampling_rules"),
    "text_enumeration": ("test_text_enumeration", "test_distinct_instances"),
    "hmm_product": ("test_sampling_edges",),
    "hidden_exploration": ("test_truncated_products", "test_distillation"),
    "hidden_markov": ("test_sampling_edges", "test_sampling_rules", "test_sampling_hidden"),
    "markov_exact": ("test_sampling_edges", "test_markov", "test_ngram"),
    "masked_sampling": ("test_sampling_edges", "test_sampling_masked", "test_sampling_rules"),
    "token_masses": ("test_sampling_edges", "test_sampling_rules", "test_distinct_instances"),
    "particles": ("test_sampling_edges", "test_population", "test_smc"),
    "pimh": ("test_sampling_edges", "test_sampling_rules", "test_smc"),
    "populations": ("test_population", "test_smc"),
    "random_instances": ("test_sampling_edges",),
    "readable_texts": (
        "test_sampling_edges", "test_readable_texts", "test_random_instances", "test_distinct_instances",
    ),
    "smc": ("test_population", "test_smc"),
    "weight_statistics": ("test_weight_stats",),
    "success_trie": ("test_sampling_edges",),
    "transformers_language_model": ("test_model_cache",),
    "twists": ("test_population", "test_smc"),
    "success_walks": ("test_sampling_asap", "test_sampling_exact", "test_sampling_bad_input"),
}  # fmt: skip
NEVER = (
    "test_fuzz",
    "test_architecture",
    "test_readme",
    "test_cli",
    "test_bench",
    "test_how_to",
    "test_demo",
    "test_model_cache",
)
MOST, FEW = 8, 3
"""Number of test files in the first round, for a mutant of a kernel and for one of a Python file."""


def list_files() -> list[str]:
    """Return the files whose mutants are drawn, below the checkout."""
    found = sorted(path for pattern in MUTATED for path in ROOT.glob(pattern) if path.name not in LEFT_OUT)
    return [str(path.relative_to(ROOT)) for path in found]


def choose_further_tests(file: str) -> list[str]:
    """Return further test files, for a mutant that survives those of `choose_nearest_tests`."""
    near = choose_nearest_tests(file)
    patterns = next(patterns for folder, patterns in FURTHER.items() if file.startswith(folder))
    names = [str(path.relative_to(ROOT)) for one in patterns for path in sorted((ROOT / "tests").rglob(f"{one}.py"))]
    return [name for name in dict.fromkeys(names) if name not in near]


def choose_nearest_tests(file: str) -> list[str]:
    """Return test files, those most likely to fail first."""
    stem = Path(file).stem
    if file.startswith("constrain/kernels/"):
        names = [*KERNELS.get(stem, ()), *ENGINE]
        return [list_tests()[name] for name in dict.fromkeys(names) if name in list_tests()][:MOST]
    known = () if file.startswith("constrain/frontends/") else SAMPLERS.get(stem, ())
    scored = sorted(((measure_closeness(ROOT / path, file), stem) for stem, path in list_tests().items()), reverse=True)
    close = [name for score, name in scored if score > 0 and not name.startswith(NEVER)]
    return [list_tests()[name] for name in dict.fromkeys((*known, *close))][:FEW]


def measure_closeness(test: Path, file: str) -> float:
    """Score how closely a test file concerns a file: by its name, its imports and its calls."""
    stem, folder = Path(file).stem, Path(file).parent.name
    text = read_text(test)
    score = 20.0 * (stem in test.stem) + 8.0 * (stem.rstrip("s") in test.stem) + 4.0 * (folder in test.stem)
    dotted = file.removesuffix(".py").replace("/", ".")
    score += 10.0 * (dotted in text) + 5.0 * bool(
        re.search(rf"from {re.escape(dotted.rpartition('.')[0])} import [^\n]*\b{stem}\b", text)
    )
    return score + len(list_names(test).intersection(list_definitions(ROOT / file)))


@lru_cache(maxsize=1)
def list_tests() -> dict[str, str]:
    """Return the path of each test file below the checkout, by its stem."""
    return {path.stem: str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py"))}


@lru_cache(maxsize=1_000)
def read_text(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text("utf-8")


@lru_cache(maxsize=1_000)
def list_names(path: Path) -> frozenset[str]:
    """Return the names in a file."""
    return frozenset(re.findall(r"\w+", read_text(path)))


@lru_cache(maxsize=1_000)
def list_definitions(path: Path) -> frozenset[str]:
    """Return the names of the functions and classes that a file defines at its top."""
    return frozenset(re.findall(r"^(?:def|class) ([A-Za-z]\w{4,})", read_text(path), re.M))
