"""The commands by name: where each is, and what the list of commands says of it.

A module is imported when its command is called. The list of commands and `--version` need none of them, and so compile
no kernel.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.main import get_command

from .help_pages import CommandPage

__all__ = ["COMMANDS", "EPILOG", "CommandRow", "load_command"]

EPILOG = (
    "Exit codes: 0 success · 1 negative result (invalid instance, unsatisfiable schema, refused token) · "
    "2 invalid usage or input · 3 unsupported by this version, or a limit was exceeded · 130 interrupted by Ctrl-C."
)


class CommandRow(NamedTuple):
    """A command: its module in this package, its function there, and its line in the list of commands."""

    module: str
    function: str
    summary: str


COMMANDS = {
    "generate": CommandRow("generate_command", "generate_texts", "Generate text that satisfies a constraint."),
    "batch": CommandRow("batch_command", "run_batch", "Answer every row of a JSON Lines file; resumable."),
    "serve": CommandRow("serve_command", "serve_model", "Serve a model over HTTP in the shape of OpenAI's server."),
    "play": CommandRow("play_command", "play_with_constraints", "Open a playground: a page to try constraints in."),
    "choose": CommandRow("choose_command", "choose_option", "Print the probabilities of options as answers."),
    "score": CommandRow("score_command", "score_answer", "Print the log-probability of a text, token by token."),
    "repair": CommandRow("repair_command", "repair_answer", "Print the valid text that is nearest to an answer."),
    "check": CommandRow("check_command", "check_schema", "Check a schema: validity, keywords, cost, other products."),
    "validate": CommandRow("validate_command", "validate_instances", "Validate instances against a schema."),
    "sample": CommandRow("sample_command", "print_samples", "Print random valid instances, without a model."),
    "test": CommandRow("test_command", "run_grammar_tests", "Test a grammar with texts to accept and to reject."),
    "view": CommandRow("view_command", "draw_grammar", "Draw railroad diagrams of a grammar."),
    "infer": CommandRow("infer_command", "infer_from_files", "Find a tight schema that all examples satisfy."),
    "explain": CommandRow("explain_command", "explain_constraint", "Explain a keyword, a refused text, or an answer."),
    "compare": CommandRow("compare_command", "compare_pair", "Compare two samplers, styles, schemas or grammars."),
    "demo": CommandRow("demo_command", "run_demo", "Demonstrate generation with the embedded model."),
    "warmup": CommandRow("warm_up_command", "warm_up_kernels", "Compile the kernels now, not at the first use."),
    "cache": CommandRow("cache_command", "show_cache", "Show or remove what is kept on disk."),
    "doctor": CommandRow("doctor_command", "diagnose_tokenizer", "Test a model and tokenizer; say what to set."),
}


def load_command(name: str) -> Any:
    """Return the click command of a name in `COMMANDS`, importing its module.

    The first import after an installation compiles the kernels, which is announced on stderr.
    """
    from .kernel_notice import announce_compilation

    row = COMMANDS[name]
    with announce_compilation():
        function = getattr(import_module(f".{row.module}", __package__), row.function)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name, cls=CommandPage, epilog=EPILOG)(function)
    return get_command(single)
