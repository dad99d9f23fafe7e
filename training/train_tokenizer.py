"""Train the byte-level BPE of the demo model on the corpus; write tokenizer.json (compact) and tokenizer_config.json.

    python train_tokenizer.py --corpus corpus.jsonl --out ../constrain/demo

No normaliser; every byte is a token, so any text can be written. Pieces (`PIECES`) join runs of JSON punctuation
with the one space that `json.dumps` writes (`": "`, `", "`, `"}, {"`), numbers in pairs of digits, a new line
with its indent, and words with one leading space, so that a key is the same tokens in a schema and in an answer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SPECIAL = ["<|pad|>", "<|begin|>", "<|end|>"]
PIECES = "|".join(
    (
        r"\n *",
        r"[:,]?[\"\[\]{}][\"\[\]{}:,]*(?: [\"\[{]+| (?=[-\d]))?",
        r", (?:[\"\[{]+|(?=[-\d]))",
        r"\d{1,2}",
        r" ?\p{L}+",
        r" ?[^\s\p{L}\d\"\[\]{}]+?(?=[\"\[\]{}])| ?[^\s\p{L}\d\"\[\]{}]+",
        r"\s",
    )
)


def train_tokenizer(size: int, corpus: Path, lines: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )

    def texts() -> object:
        with corpus.open(encoding="utf-8") as file:
            for index, line in enumerate(file):
                if index == lines:
                    return
                document = json.loads(line)
                yield document["prompt"]
                yield document["answer"]

    tokenizer.train_from_iterator(texts(), trainer)
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A $B", special_tokens=[("<|begin|>", begin)]
    )
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--lines", type=int, default=40_000, help="documents to learn merges from")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    document = json.loads(train_tokenizer(args.size, args.corpus, args.lines).to_str())
    # Merges as "a b" instead of ["a", "b"], without indent: half the size. Byte-level tokens contain no spaces.
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    (args.out / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|begin|>",
        "eos_token": "<|end|>",
        "pad_token": "<|pad|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1024,
    }
    (args.out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    print(f"{len(document['model']['vocab'])} tokens, {len(text)} characters")


if __name__ == "__main__":
    main()
