"""Measure syncode in an interpreter of its own, as its dependencies conflict with ours: JSON in, JSON out.

    PYTHON -m bench.grammars.syncode_peer < job.json > answer.json

job: {"vocabulary": ranks file, "grammar": one of syncode's own names, "texts": [[token, ...], ...], "seconds": limit of
the corpus, "again": whether a mask store on disk may be used}. answer: {"first": ms from the grammar to the first mask,
"masks": [µs, ...], "lost": texts with a token that it refuses, "texts": number of texts begun}. A mask is one call of
its logits processor over 128,256 scores: syncode has no other API, and the work of `advance` is part of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from ..corpus import SIZE, SPECIAL, SPLIT


def build_tokenizer(path: str) -> Any:
    """Build a transformers tokenizer from a ranks file."""
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter

    made = TikTokenConverter(vocab_file=path, pattern=SPLIT, additional_special_tokens=list(SPECIAL)).converted()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end_of_text|>")


def main() -> None:
    """Read the job and write the answer."""
    job = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of syncode must not mix with the answer
    import torch
    from syncode import Grammar, SyncodeLogitsProcessor

    torch.set_num_threads(1)
    made = build_tokenizer(job["vocabulary"])
    scores = torch.zeros(1, SIZE)
    empty = torch.zeros((1, 0), dtype=torch.long)
    began = time.perf_counter()
    processor = SyncodeLogitsProcessor(Grammar(job["grammar"]), made, use_cache=job["again"])
    processor.reset()
    processor(empty, scores.clone())
    answer: dict[str, Any] = {"first": (time.perf_counter() - began) * 1e3, "masks": [], "lost": 0, "texts": 0}
    print(f"first mask after {answer['first'] / 1e3:.1f} s", file=sys.stderr, flush=True)
    end = time.monotonic() + job["seconds"]
    for tokens in job["texts"]:
        if time.monotonic() > end:
            break
        answer["texts"] += 1
        processor.reset()
        processor.grammar_engine.start_from = 0
        ids = torch.tensor([tokens], dtype=torch.long)
        for length, token in enumerate(tokens):
            given = scores.clone()
            begin = time.perf_counter()
            masked = processor(ids[:, :length], given)
            answer["masks"].append((time.perf_counter() - begin) * 1e6)
            if masked[0, token] < 0:
                answer["lost"] += 1
                break
            if time.monotonic() > end:
                break
    json.dump(answer, out)
    out.close()


if __name__ == "__main__":
    main()
