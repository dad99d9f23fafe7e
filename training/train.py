"""Train the demo model, a small Llama, in plain PyTorch on the CPU, and export it for transformers.

    python train.py --corpus corpus.jsonl --tokenizer ../constrain/demo --steps 6000 --decay 1500 --out run
    python train.py --corpus corpus.jsonl --tokenizer ../constrain/demo --out run --export ../constrain/demo

Batches are documents of similar length, padded to the next of `LENGTHS`; the loss is on answers (and lightly on a tenth
of the prompt). Muon for the matrices, AdamW for the rest; the rate rises, is constant, and falls linearly to zero in
the last `--decay` steps, so that a run can be shortened by resuming its last checkpoint with a smaller `--steps`.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import signal
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as nn
from muon import Muon
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

LENGTHS = (64, 128, 224, 448)
FINE_LENGTHS = (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448)
"""Lengths of batches if the model is not compiled for each length: less padding."""
PAD, BEGIN, END = 0, 1, 2
PROMPT_SHARE, PROMPT_WEIGHT = 0.25, 0.3


def build_config(vocabulary: int) -> LlamaConfig:
    """Return the configuration of the model: 3.71 million parameters, 7.4 MB in bfloat16."""
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=256,
        intermediate_size=320,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        rms_norm_eps=1e-5,
    )


class Documents:
    """The corpus as tokens. flat: uint16[N]. start: int64[D + 1], offsets of documents. prompt:
    int32[D], their length.
    """

    def __init__(self, corpus: Path, tokenizer: Path) -> None:
        cache = corpus.with_suffix(".npz")
        if not cache.exists() or cache.stat().st_mtime < corpus.stat().st_mtime:
            encode_corpus(corpus, Tokenizer.from_file(str(tokenizer / "tokenizer.json")), cache)
        with np.load(cache) as arrays:
            self.flat, self.start, self.prompt = arrays["flat"], arrays["start"], arrays["prompt"]

    def batches(self, tokens: int, seed: int, steps: tuple[int, ...] = LENGTHS) -> list[tuple[int, np.ndarray]]:
        """Return an epoch: batches (padded length, indices of documents) of about `tokens` tokens in random order."""
        rng = np.random.default_rng(seed)
        lengths = np.diff(self.start)
        found: list[tuple[int, np.ndarray]] = []
        for low, high in zip((0, *steps), steps, strict=False):
            members = rng.permutation(np.flatnonzero((lengths > low) & (lengths <= high)))
            rows = tokens // high
            found += [(high, members[i : i + rows]) for i in range(0, len(members) - rows + 1, rows)]
        return [found[i] for i in rng.permutation(len(found))]

    def batch(self, length: int, members: np.ndarray, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        """Return (inputs int64[B, T], targets int64[B, T], weights float32[B, T])."""
        inputs = np.full((len(members), length), PAD, np.int64)
        weights = np.zeros((len(members), length), np.float32)
        for row, index in enumerate(members):
            begin, end = self.start[index], self.start[index + 1]
            inputs[row, : end - begin] = self.flat[begin:end]
            weights[row, self.prompt[index] - 1 : end - begin - 1] = 1.0
            weights[row, : self.prompt[index] - 1] = PROMPT_WEIGHT * (rng.random(self.prompt[index] - 1) < PROMPT_SHARE)
        targets = np.roll(inputs, -1, axis=1)
        return torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(weights)


class CopyingTask:
    """Synthetic exercises that teach copying early, long before the corpus alone would.

    Half of the rows are repeated random tokens; half are schemas of random keys whose values are booleans and digits,
    so that the answer consists mostly of keys. `pieces`: the random tokens of a row are often all short ones, as in
    names, or all words after a space.
    """

    def __init__(self, tokenizer: Tokenizer, pieces: bool = False) -> None:
        def ids(text: str) -> list[int]:
            found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
            return found

        words = [i for word, i in tokenizer.get_vocab().items() if word.isascii() and word.isalpha() and len(word) > 1]
        self.words = np.array(sorted(words))
        self.joint = ids("_")
        self.open, self.close = ids('Schema: {"type":"object","properties":{"'), ids('"}}}\nAnswer:\n')
        self.kinds = [ids('":{"type":"boolean"},"'), ids('":{"type":"integer"},"')]
        self.values = [[ids('": true, "'), ids('": false, "')], [ids(f'": {digit}, "') for digit in range(1, 10)]]
        self.begin, self.end = ids('{"'), [*ids("}"), END]
        letters = {i: word for word, i in tokenizer.get_vocab().items() if word.lstrip("Ġ").isalpha()}
        short = np.array(sorted(i for i, word in letters.items() if len(word) <= 3))
        spaced = np.array(sorted(i for i, word in letters.items() if word.startswith("Ġ")))
        self.pools = (np.arange(3, 4000), short, spaced) if pieces else (np.arange(3, 4000),)

    def batch(self, length: int, rows: int, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
        inputs = np.full((rows, length), PAD, np.int64)
        weights = np.zeros((rows, length), np.float32)
        for row in range(rows):
            if row % 2:
                period = int(rng.integers(4, length // 2))
                pool = self.pools[row // 2 % len(self.pools)]
                tokens = [BEGIN, *np.resize(pool[rng.integers(0, len(pool), period)], length - 1)]
                start = period + 1
            else:
                tokens, start = self.keys(int(rng.integers(2, 2 + length // 24)), rng)
            tokens = tokens[:length]
            inputs[row, : len(tokens)] = tokens
            weights[row, start - 1 : len(tokens) - 1] = 1.0
        return torch.from_numpy(inputs), torch.from_numpy(np.roll(inputs, -1, axis=1)), torch.from_numpy(weights)

    def keys(self, count: int, rng: np.random.Generator) -> tuple[list[int], int]:
        head, tail = [BEGIN, *self.open], list(self.begin)
        for _ in range(count):
            key = [int(rng.choice(self.words))]
            for _ in range(int(rng.integers(0, 3))):
                key += [*self.joint, int(rng.choice(self.words))]
            kind = int(rng.integers(2))
            head += [*key, *self.kinds[kind]]
            tail += [*key, *self.values[kind][int(rng.integers(len(self.values[kind])))]]
        head = [*head[:-1], *self.close]
        return [*head, *tail[:-1], *self.end], len(head)


def encode_corpus(corpus: Path, tokenizer: Tokenizer, out: Path) -> None:
    flat: list[np.ndarray] = []
    sizes: list[int] = []
    prompts: list[int] = []
    with corpus.open(encoding="utf-8") as file:
        while lines := file.readlines(1 << 24):
            documents = [json.loads(line) for line in lines]
            heads = tokenizer.encode_batch([d["prompt"] for d in documents])
            tails = tokenizer.encode_batch([d["answer"] for d in documents], add_special_tokens=False)
            for head, tail in zip(heads, tails, strict=True):
                ids = [*head.ids, *tail.ids, END]
                if len(ids) <= LENGTHS[-1]:
                    flat.append(np.array(ids, np.uint16))
                    sizes.append(len(ids))
                    prompts.append(len(head.ids))
    np.savez(out, flat=np.concatenate(flat), start=np.cumsum([0, *sizes]), prompt=np.array(prompts, np.int32))
    print(f"{len(sizes)} documents, {sum(sizes)} tokens, {sum(prompts)} of them prompt", flush=True)


@torch.no_grad()
def set_first_weights(model: LlamaForCausalLM, seed: int) -> None:
    """Set the initial weights. The output of each block is zero at first, the embeddings have unit norm.

    One pair of heads is set by hand to copy, as "induction heads" do (Olsson et al. 2022): a head of the first layer
    writes the previous token; a head of the second attends to positions whose previous token is the current one, and
    predicts what follows there. Training learns this only after many millions of tokens, too many for a CPU.
    """
    g = torch.Generator().manual_seed(seed)
    embedding = model.model.embed_tokens.weight
    width, size = embedding.shape[1], 64
    embedding.normal_(generator=g)
    embedding[:, -1] = 4.0  # equal for all tokens, so that queries can depend on the distance only
    model.model.norm.weight.fill_(1 / 16)
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    basis = torch.linalg.qr(torch.randn(width - 1, 2 * size, generator=g))[0]
    read, write = torch.zeros(size, width), torch.zeros(width, size)
    read[:, :-1], write[:-1] = basis[:, :size].T, basis[:, size:]
    constant = torch.zeros(width)
    constant[-1] = 1 / 4
    # Rotary pairs of the sixteen fastest frequencies: their sum of cosines is greatest at the previous position.
    pairs, sharp = torch.arange(16), 10.0
    angle = 10_000.0 ** (-pairs / 32)
    first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
    for attention in (first, second):
        attention.k_proj.weight[:size] = 0
        attention.q_proj.weight[:size] = 0
    first.k_proj.weight[pairs] = sharp * angle.cos()[:, None] * constant
    first.k_proj.weight[pairs + 32] = sharp * angle.sin()[:, None] * constant
    first.q_proj.weight[pairs] = sharp * constant
    first.v_proj.weight[:size] = read
    first.o_proj.weight[:, :size] = 2 * write
    # The slowest frequencies are nearly constant within a document: there, keys and queries compare contents.
    slow = [*range(20, 32), *range(52, 64)]
    some = torch.linalg.qr(torch.randn(size, len(slow), generator=g))[0].T
    second.k_proj.weight[slow] = 1.4 * some @ write.T
    second.q_proj.weight[slow] = 3.6 * some @ read
    second.v_proj.weight[:size] = read
    second.o_proj.weight[:, :size] = 4 * read.T


@torch.no_grad()
def align_embeddings(model: LlamaForCausalLM, tokenizer: Tokenizer, cosine: float = 0.5) -> None:
    """Rotate the embeddings of a word with and without a leading space towards each other.

    A value follows a space in a sentence and a quotation mark in JSON. After the first run the two tokens of a word
    were unrelated (their cosine was 0.03), so that copying had to be learned word by word.
    """
    ids = tokenizer.get_vocab()
    pairs = [(ids[word[1:]], at) for word, at in ids.items() if word[0] == "Ġ" and word[1:] in ids]
    plain, spaced = (list(side) for side in zip(*sorted(pairs), strict=True))
    embedding, angle = model.model.embed_tokens.weight, math.asin(cosine) / 2
    one, other = embedding[plain].clone(), embedding[spaced].clone()
    embedding[plain] = math.cos(angle) * one + math.sin(angle) * other
    embedding[spaced] = math.cos(angle) * other + math.sin(angle) * one


def compute_loss(
    body: torch.nn.Module, head: torch.Tensor, batch: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, float]:
    """Return (weighted mean loss, sum of weights); logits are computed only where the weight is not 0."""
    inputs, targets, weights = batch
    with torch.autocast("cpu", torch.bfloat16):
        hidden = body(input_ids=inputs, use_cache=False).last_hidden_state
        chosen = weights.flatten().nonzero().squeeze(1)
        logits = hidden.flatten(0, 1).index_select(0, chosen) @ head.T
    losses = nn.cross_entropy(logits.float(), targets.flatten()[chosen], reduction="none")
    weight = weights.flatten()[chosen]
    return (losses * weight).sum() / weight.sum(), float(weight.sum())


@torch.no_grad()
def measure_held_out_loss(body: torch.nn.Module, head: torch.Tensor, documents: Documents, most: int) -> float:
    """Return the mean loss of answer tokens in nats."""
    total = weight = 0.0
    for length, members in documents.batches(8192, 0)[:most]:
        inputs, targets, weights = documents.batch(length, members, np.random.default_rng(0))
        loss, size = compute_loss(body, head, (inputs, targets, weights.floor()))
        total, weight = total + float(loss) * size, weight + size
    return total / weight


def export_model(model: LlamaForCausalLM, folder: Path) -> None:
    """Write model.safetensors in bfloat16 without the tied head, config.json, and generation_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.bfloat16().contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    unused = "label2id id2label chunk_size_feed_forward output_attentions output_hidden_states return_dict".split()
    shown = {**model.config.to_dict(), "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}
    shown = {k: v for k, v in shown.items() if v is not None and not k.startswith("_") and k not in unused}
    (folder / "config.json").write_text(json.dumps(shown, indent=2, sort_keys=True) + "\n")
    ends = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": PAD}
    (folder / "generation_config.json").write_text(json.dumps(ends, indent=2) + "\n")


def train_model(args: argparse.Namespace, model: LlamaForCausalLM) -> None:
    documents = Documents(args.corpus, args.tokenizer)
    checks = [Documents(path, args.tokenizer) for path in args.held_out]
    copying = CopyingTask(Tokenizer.from_file(str(args.tokenizer / "tokenizer.json")), pieces=args.start is not None)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    muon = Muon(matrices)
    rates = [args.adam_rate, args.adam_rate / 5]  # of the embedding, of the gains of the norms
    groups = [{"params": [p for p in others if p.ndim == 2]}, {"params": [p for p in others if p.ndim == 1]}]
    adam = torch.optim.AdamW(groups, lr=args.adam_rate, betas=(0.9, 0.98), weight_decay=0.0)
    step = tokens = 0
    saved = args.out / "checkpoint.pt"
    if saved.exists():
        state = torch.load(saved)
        model.load_state_dict(state["model"])
        adam.load_state_dict(state["adam"])
        muon.state, step, tokens = state["muon"], state["step"], state["tokens"]
    body = model.model if args.compile == "no" else torch.compile(model.model, dynamic=args.compile == "dynamic")
    head = model.model.embed_tokens.weight
    stop = False

    def ask_to_stop(*_: object) -> None:
        nonlocal stop
        stop = True

    signal.signal(signal.SIGTERM, ask_to_stop)
    log = (args.out / "loss.csv").open("a", newline="")
    writer = csv.writer(log)
    if log.tell() == 0:
        writer.writerow(
            ("step", "tokens", "rate", "train_loss", *(path.stem + "_loss" for path in args.held_out), "seconds")
        )
    lengths = LENGTHS if args.compile == "yes" else FINE_LENGTHS
    epoch_size = len(documents.batches(args.batch, args.seed, lengths))
    plan: list[tuple[int, np.ndarray]] = []
    recent: list[float] = []
    exercises: list[float] = []
    began = time.process_time()
    while step < args.steps and not stop:
        epoch, place = divmod(step, epoch_size)
        if not plan or place == 0:
            plan = documents.batches(args.batch, args.seed + epoch, lengths)
        length, members = plan[place]
        rng = np.random.default_rng((args.seed, step))
        drill = step < args.copying and step % 5 < 2
        if drill:
            length, members = LENGTHS[1 + step % 5], np.arange(args.batch // LENGTHS[1 + step % 5])
            batch = copying.batch(length, len(members), rng)
        else:
            batch = documents.batch(length, members, rng)
        loss, _ = compute_loss(body, head, batch)
        loss.backward()
        share = min(1.0, (step + 1) / args.warmup, max(0.0, (args.steps - step) / args.decay))
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for group, rate in zip(adam.param_groups, rates, strict=True):
            group["lr"] = rate * share
        adam.step()
        adam.zero_grad()
        muon.step(args.muon_rate * share)
        step, tokens = step + 1, tokens + length * len(members)
        (exercises if drill else recent).append(float(loss.detach()))
        if step % 20 == 0 or step == args.steps:
            due = step % args.every == 0 or step == args.steps or stop
            checked = [f"{measure_held_out_loss(model.model, head, check, 4):.4f}" if due else "" for check in checks]
            mean, passed = sum(recent) / len(recent), time.process_time() - began
            row = (step, tokens, f"{share:.4f}", f"{mean:.4f}", *checked, f"{passed:.0f}")
            writer.writerow(row)
            log.flush()
            print(*row, f"{sum(exercises) / len(exercises):.4f}" if exercises else "", flush=True)
            recent, exercises = [], []
            if due:
                save_checkpoint(saved, model, adam, muon, step, tokens)
    save_checkpoint(saved, model, adam, muon, step, tokens)


def save_checkpoint(
    path: Path, model: LlamaForCausalLM, adam: torch.optim.Optimizer, muon: Muon, step: int, tokens: int
) -> None:
    state = {"model": model.state_dict(), "adam": adam.state_dict(), "muon": muon.state, "step": step, "tokens": tokens}
    torch.save(state, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("run/corpus.jsonl"))
    parser.add_argument("--held-out", type=Path, nargs="+", default=[Path("run/held_out.jsonl")])
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("run"))
    parser.add_argument("--start", type=Path, help="folder of the model.safetensors with the initial weights")
    parser.add_argument("--export", type=Path, help="only write the last checkpoint to this folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--decay", type=int, default=1500)
    parser.add_argument("--copying", type=int, default=0, help="steps in which two batches of five teach copying")
    parser.add_argument("--batch", type=int, default=3072, help="tokens a step")
    parser.add_argument("--muon-rate", type=float, default=0.01)
    parser.add_argument("--adam-rate", type=float, default=1e-2)
    parser.add_argument("--every", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", choices=("yes", "dynamic", "no"), default="yes",
                        help="yes: for each of four lengths; dynamic: once, for finer lengths")  # fmt: skip
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    size = Tokenizer.from_file(str(args.tokenizer / "tokenizer.json")).get_vocab_size()
    model = LlamaForCausalLM(build_config(size))
    # On a CPU the backward pass of the flash kernel takes longer than the rest of the model; eager attention does not.
    model.set_attn_implementation("eager")
    if args.start:
        model.load_state_dict(load_file(args.start / "model.safetensors"), strict=False)  # the tied head is missing
        align_embeddings(model, Tokenizer.from_file(str(args.tokenizer / "tokenizer.json")))
    else:
        set_first_weights(model, args.seed)
    print(f"{model.num_parameters():,} parameters; a uniform guess costs {math.log(size):.2f} nats", flush=True)
    if args.export:
        model.load_state_dict(torch.load(args.out / "checkpoint.pt")["model"])
        export_model(model, args.export)
    else:
        train_model(args, model)


if __name__ == "__main__":
    main()
