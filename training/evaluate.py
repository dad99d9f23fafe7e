"""Evaluate the demo model without constraints: perplexity, and how often its answers are correct.

    python evaluate.py --model ../constrain/demo --held-out run/held_out.jsonl --count 200

For prompts with a schema: the share of answers that are JSON, and that satisfy the schema (`jsonschema`, formats
asserted); for regular expressions and choices, the share that match. Greedy and sampled at temperature 1.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path

import jsonschema
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def judge_answer(prompt: str, answer: str) -> tuple[str, bool, bool]:
    """Return (kind, well-formed, correct)."""
    form = next((line for line in prompt.split("\n") if line.startswith(("Schema: ", "Format: ", "Choices: "))), "")
    kind, _, shown = form.partition(": ")
    if kind == "Schema":
        try:
            value = json.loads(answer)
        except ValueError:
            return kind, False, False
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        return kind, True, jsonschema.Draft202012Validator(json.loads(shown), format_checker=checker).is_valid(value)
    if kind == "Format":
        return kind, True, re.fullmatch(shown, answer) is not None
    if kind == "Choices":
        return kind, True, answer in shown.split(" | ")
    return "Prose", True, bool(answer.strip())


@torch.no_grad()
def compute_perplexity(model: torch.nn.Module, tokenizer: object, documents: list[dict[str, str]]) -> float:
    """Return the perplexity per token of the answers, with their end tokens."""
    total, count = 0.0, 0
    for document in documents:
        head = tokenizer(document["prompt"])["input_ids"]  # type: ignore[operator]
        ids = torch.tensor([head + tokenizer(document["answer"], add_special_tokens=False)["input_ids"] + [2]])  # type: ignore[operator]
        logs = model(input_ids=ids).logits[0, len(head) - 1 : -1].float().log_softmax(-1)
        total -= float(logs.gather(1, ids[0, len(head) :, None]).sum())
        count += ids.shape[1] - len(head)
    return math.exp(total / count)


def generate_answers(model: torch.nn.Module, tokenizer: object, prompts: list[str], sampled: str) -> list[str]:
    found: list[str] = []
    for i in range(0, len(prompts), 40):
        batch = tokenizer(prompts[i : i + 40], return_tensors="pt", padding=True, padding_side="left")  # type: ignore[operator]
        batch.pop("token_type_ids", None)
        out = model.generate(**batch, max_new_tokens=250, do_sample=sampled == "sampled", temperature=1.0, top_k=0)  # type: ignore[operator]
        found += tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)  # type: ignore[attr-defined]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, default=Path("run/held_out.jsonl"))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--show", type=int, default=12, help="answers to print")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    documents = [json.loads(line) for line in args.held_out.open(encoding="utf-8")][: args.count]
    print(f"perplexity of the answers: {compute_perplexity(model, tokenizer, documents):.3f}")
    for sampled in ("greedy", "sampled"):
        tally: dict[str, list[int]] = {}
        texts = generate_answers(model, tokenizer, [document["prompt"] for document in documents], sampled)
        for document, text in zip(documents, texts, strict=True):
            kind, formed, right = judge_answer(document["prompt"], text)
            row = tally.setdefault(kind, [0, 0, 0])
            row[0], row[1], row[2] = row[0] + 1, row[1] + formed, row[2] + right
        for kind, (count, formed, right) in sorted(tally.items()):
            shares = f"{formed / count:6.1%} well formed, {right / count:6.1%} right"
            print(f"{sampled:8} {kind:8} {count:4} answers, {shares}")
        for document, text in list(zip(documents, texts, strict=True))[: args.show]:
            print(document["prompt"] + text + "\n")


if __name__ == "__main__":
    main()
