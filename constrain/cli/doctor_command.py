"""`constrain doctor`: check a model and its tokenizer together, and say what to set."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..integrations.model_diagnosis import Finding, ModelDiagnosis, diagnose_model
from . import display
from .source_options import JsonFlag, silence_transformers

__all__ = ["diagnose_tokenizer"]

MARKS = {"fine": "ok   ", "note": "note ", "fault": "FAULT"}


def diagnose_tokenizer(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="demo, a folder, a tokenizer file or a hub id.")],
    as_json: JsonFlag = False,
) -> None:
    """Check a model and its tokenizer together: bytes, end tokens, padding, chat template, widths; what to set.

    The bytes of the tokens must spell the texts that they encode. Of the weights only the shapes are read. The exit
    code is 1 if something has to be set.
    """
    silence_transformers()
    with display.show_progress("reading and testing the tokenizer …"):
        diagnosis = diagnose_model(model)
    if as_json:
        display.as_json(diagnosis_json(diagnosis))
    else:
        print_diagnosis(diagnosis)
    raise typer.Exit(display.FINE if diagnosis.is_fine else display.NO)


def diagnosis_json(diagnosis: ModelDiagnosis) -> dict[str, Any]:
    """Return a diagnosis as JSON data."""
    vocabulary = diagnosis.vocabulary
    findings = [asdict(one) for one in diagnosis.findings]
    answer: dict[str, Any] = {"name": diagnosis.name, "fine": diagnosis.is_fine, "findings": findings}
    if vocabulary is None:
        return answer | {"self_test": "failed"}
    texts = [token for token in vocabulary.tokens if token]
    return answer | {
        "name": vocabulary.name, "size": vocabulary.size, "with_text": len(texts),
        "repeats": sum(n - 1 for n in Counter(texts).values()), "special": len(vocabulary.special),
        "end_ids": list(vocabulary.eos_ids), "missing_bytes": sorted(vocabulary.missing_bytes),
        "leading_space": vocabulary.leading_space, "longest": max(map(len, texts), default=0),
        "fingerprint": vocabulary.fingerprint, "self_test": "passed",
    }  # fmt: skip


def print_diagnosis(diagnosis: ModelDiagnosis) -> None:
    """Print the findings, each with why it matters and what to set, and the fingerprint of the vocabulary."""
    rows = [row for finding in diagnosis.findings for row in finding_rows(finding)]
    if diagnosis.vocabulary is not None:
        rows.append(("      fingerprint", diagnosis.vocabulary.fingerprint))
    display.print_facts(rows)
    faults = sum(one.status == "fault" for one in diagnosis.findings)
    if diagnosis.vocabulary is not None:
        display.print_answer("self-test passed: the bytes of the tokens spell the texts that they encode")
    if faults:
        display.print_answer((f"{faults} of {len(diagnosis.findings)} checks found a fault", "bold red"))


def finding_rows(finding: Finding) -> list[tuple[str, str]]:
    """Return a finding as rows of a name and a description."""
    rows = [(f"{MARKS[finding.status]} {finding.check}", finding.what)]
    rows += [("", f"why: {finding.why}")] if finding.why else []
    return rows + ([("", f"set: {finding.setting}")] if finding.setting else [])
