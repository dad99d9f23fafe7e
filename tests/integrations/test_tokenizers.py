"""The bytes of every kind of tokenizer: they spell any text; what is not exact is refused."""

from __future__ import annotations

import base64
import json
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import VocabularyError, VocabularyWarning
from constrain.integrations.end_tokens import NAMES
from constrain.vocabulary.vocabulary import Vocabulary
from tests import tokenizer_factory as make

TEXTS = st.text(st.one_of(st.sampled_from(' \n\t{}[]":,\\the_of0123456789é你😀'), st.characters(codec="utf-8")))
UNSEEN = "\u2581"
"""SentencePiece takes this character for a space, in the text as in its tokens: the one text that it cannot spell."""


@lru_cache(maxsize=8)
def vocabulary_of(name: str) -> Vocabulary:
    maker, eos = make.MADE[name]
    return Vocabulary.from_tokenizer(make.wrapped(maker(), eos))


@pytest.mark.parametrize("name", make.MADE)
@given(text=TEXTS)
def test_the_bytes_of_the_tokens_are_the_text(name: str, text: str) -> None:
    vocabulary = vocabulary_of(name)
    unseen = set(vocabulary.special) | (set() if name == "byte_level_bpe" else {UNSEEN})
    if not any(other in text for other in unseen):
        ids = vocabulary.encode(text)  # type: ignore[misc]
        joined = vocabulary.text(ids)
        assert joined == text.encode() or (vocabulary.strips_leading_space and joined == b" " + text.encode())
    assert vocabulary.text(vocabulary.tokenize(text.encode())) == text.encode()


@pytest.mark.parametrize("name", make.MADE)
@given(data=st.binary(max_size=12))
def test_any_bytes_can_be_spelled(name: str, data: bytes) -> None:
    vocabulary = vocabulary_of(name)
    assert not vocabulary.missing_bytes
    assert vocabulary.text(vocabulary.tokenize(data)) == data


@pytest.mark.parametrize("name", make.MADE)
def test_tokens_are_what_they_add_in_the_middle_of_a_text(name: str) -> None:
    """Against the tokenizer's own decoding: between two anchors, a token adds exactly its bytes."""
    maker, _ = make.MADE[name]
    tokenizer, vocabulary = maker(), vocabulary_of(name)
    anchor = vocabulary.fewest(b"x")[0]
    for index, token in enumerate(vocabulary.tokens):
        if token is not None:
            shown = tokenizer.decode([anchor, index, anchor], skip_special_tokens=False)
            assert shown == f"x{token.decode('utf-8', 'replace')}x" or not token.isascii(), (index, token)


def test_a_leading_space_is_recorded_and_preserved() -> None:
    """`▁the` is " the": a constrained text "the" takes the token without the space, and decodes to itself."""
    vocabulary = vocabulary_of("sentencepiece_bpe")
    assert vocabulary.strips_leading_space
    assert vocabulary.text(vocabulary.encode("the")) == b" the"  # type: ignore[misc]
    ids = vocabulary.tokenize(b"the")
    assert vocabulary.text(ids) == b"the" and vocabulary.decode(ids) == "the"
    assert vocabulary.decode(vocabulary.tokenize(b" the")) == " the"
    assert not vocabulary_of("sentencepiece_unigram").strips_leading_space


def test_special_tokens_never_match_text_and_added_ones_match_their_content() -> None:
    vocabulary = vocabulary_of("byte_level_bpe")
    assert vocabulary.tokens[vocabulary.special["<|turn|>"]] is None
    assert vocabulary.tokens.count(b"<tool>") == 1 and vocabulary.tokens.count("é!".encode()) == 1
    assert vocabulary.text(vocabulary.encode("a<tool>é!<|turn|>b")) == "a<tool>é!b".encode()  # type: ignore[misc]
    assert vocabulary.text(vocabulary.tokenize(b"<|turn|>")) == b"<|turn|>", "spelled, not spoken"


@pytest.mark.parametrize("name", make.MADE)
def test_the_bare_tokenizer_gives_the_same_vocabulary(name: str) -> None:
    maker, _ = make.MADE[name]
    tokenizer, wrapped = maker(), vocabulary_of(name)
    assert Vocabulary.from_tokenizer(tokenizer, eos_ids=wrapped.eos_ids) == wrapped


def test_truncation_and_padding_of_a_tokenizer_do_not_cut_texts() -> None:
    tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str())
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_ids=[0])
    assert vocabulary.text(vocabulary.encode("a long text, not cut")) == b"a long text, not cut"  # type: ignore[misc]
    assert tokenizer.truncation is not None and tokenizer.padding is not None, "the caller's stays as it was"


def test_a_tokenizer_without_byte_fallback_knows_what_it_lacks() -> None:
    vocabulary = Vocabulary.from_tokenizer(make.wrapped(make.metaspace_unigram(), "</s>", unk_token="<unk>"))
    assert vocabulary.strips_leading_space and vocabulary.eos_ids == (1,)
    assert vocabulary.tokens[vocabulary.special["<unk>"]] is None
    assert 7 in vocabulary.missing_bytes
    assert vocabulary.text(vocabulary.tokenize(b"the city")) == b"the city"
    with pytest.raises(VocabularyError, match="no tokens"):
        vocabulary.tokenize(b"\x07")


def test_a_piece_that_looks_like_a_byte_is_one_only_where_the_decoder_says_so() -> None:
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("<0x41>", -1.0), ("\u2581", -2.0), *((c, -3.0) for c in "Aabc<>0x41")]
    tokenizer = make.Tokenizer(make.models.Unigram(pieces, 0, False))
    tokenizer.pre_tokenizer = make.pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = make.decoders.Metaspace(prepend_scheme="never")
    assert Vocabulary.from_tokenizer(tokenizer, eos_ids=[1]).tokens[2:4] == (b"<0x41>", b" ")
    tokenizer.decoder = make.decoders.Sequence([make.decoders.ByteFallback(), make.decoders.Metaspace()])
    assert Vocabulary.from_tokenizer(tokenizer, eos_ids=[1]).tokens[2:4] == (b"A", b" ")


def test_the_ready_made_classes_of_tokenizers() -> None:
    made = make.tokenizers.implementations.ByteLevelBPETokenizer()
    made.train_from_iterator(make.texts(), vocab_size=300, special_tokens=["<s>"], show_progress=False)
    vocabulary = Vocabulary.from_tokenizer(made, eos_ids=[0])
    assert vocabulary.text(vocabulary.tokenize("é {\n".encode())) == "é {\n".encode()


def test_byte_level_without_a_declared_decoder_is_still_read() -> None:
    tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str())
    state = json.loads(tokenizer.to_str())
    state["decoder"] = None
    again = make.Tokenizer.from_str(json.dumps(state))
    assert Vocabulary.from_tokenizer(again, eos_ids=[0, 1]).tokens == vocabulary_of("byte_level_bpe").tokens


# ---- end tokens and the width of the logits


def test_end_tokens_are_declared_and_a_name_only_warns() -> None:
    assert vocabulary_of("byte_level_bpe").eos_ids == (0,)
    tokenizer = make.wrapped(make.MADE["sentencepiece_unigram"][0](), "<eos>")
    with pytest.warns(VocabularyWarning, match="<end_of_turn>"):
        turn = Vocabulary.from_tokenizer(tokenizer)
    assert turn.eos_ids == (turn.special["<eos>"],)


@pytest.mark.parametrize("declared", NAMES)
def test_each_name_warns_and_ends_nothing(declared: str) -> None:
    """Whichever of the usual names a tokenizer declares: it ends there and nowhere else."""
    tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str())  # a copy: others use the cached one
    tokenizer.add_special_tokens(list(NAMES))
    with pytest.warns(VocabularyWarning):
        vocabulary = Vocabulary.from_tokenizer(make.wrapped(tokenizer, declared))
    assert vocabulary.eos_ids == (vocabulary.special[declared],)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = [vocabulary.special[name] for name in NAMES[:3]]
        assert Vocabulary.from_tokenizer(make.wrapped(tokenizer, declared), eos_ids=ends).eos_ids == tuple(sorted(ends))
    with pytest.raises(VocabularyError, match="declares no end token"):
        Vocabulary.from_tokenizer(tokenizer)


def test_a_missing_end_token_is_an_error_that_says_what_to_do() -> None:
    tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str().replace("<|end|>", "<|begin|>"))
    with pytest.raises(VocabularyError, match="eos_ids="):
        Vocabulary.from_tokenizer(tokenizer)
    assert Vocabulary.from_tokenizer(tokenizer, eos_ids=[0]).eos_ids == (0,)
    with pytest.raises(VocabularyError, match="end token 100000"):
        Vocabulary.from_tokenizer(tokenizer, eos_ids=[100_000])


def test_wider_logits_than_the_tokenizer() -> None:
    vocabulary = Vocabulary.from_tokenizer(make.wrapped(make.byte_level_bpe(), "<|end|>"), size=512)
    assert vocabulary.size == 512 and vocabulary.tokens[498:] == (None,) * 14


def saved(folder: Path, **configs: dict[str, Any]) -> Path:
    make.wrapped(make.byte_level_bpe(), "<|end|>").save_pretrained(folder)
    for name, content in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_a_folder_gives_end_tokens_and_width(tmp_path: Path) -> None:
    config = {"model_type": "llama", "vocab_size": 640, "eos_token_id": 7}
    assert Vocabulary.from_pretrained(saved(tmp_path)).eos_ids == (0,)
    one = Vocabulary.from_pretrained(saved(tmp_path, config=config))
    assert one.size == 640 and one.eos_ids == (0, 7)
    several = Vocabulary.from_pretrained(saved(tmp_path, config=config, generation_config={"eos_token_id": [1, 3]}))
    assert several.eos_ids == (0, 1, 3)
    assert Vocabulary.from_pretrained(tmp_path, eos_ids=[1], size=700).eos_ids == (1,)
    with pytest.raises(VocabularyError, match="end token 700"):
        Vocabulary.from_pretrained(saved(tmp_path, generation_config={"eos_token_id": 700}))


def test_a_tokenizer_file_by_itself(tmp_path: Path) -> None:
    file = saved(tmp_path) / "tokenizer.json"
    assert Vocabulary.from_pretrained(file, eos_ids=[0]) == vocabulary_of("byte_level_bpe")


# ---- what cannot be exact


def test_word_piece_is_refused_by_name() -> None:
    for tokenizer in (make.word_piece(), make.wrapped(make.word_piece(), "[SEP]")):
        with pytest.raises(VocabularyError, match="WordPiece"):
            Vocabulary.from_tokenizer(tokenizer)


def test_decoders_that_look_beyond_a_token_are_refused_by_name() -> None:
    for decoder in (make.decoders.BPEDecoder(), make.decoders.CTC(), make.decoders.Strip("x", 1, 1)):
        tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str())
        tokenizer.decoder = decoder
        with pytest.raises(VocabularyError, match=type(decoder).__name__):
            Vocabulary.from_tokenizer(tokenizer, eos_ids=[0])


def test_a_tokenizer_that_loses_text_fails_the_self_test() -> None:
    """Words without their spaces: nothing is refused by name, so the probes must catch it."""
    words = make.Tokenizer(make.models.WordLevel({"Hello": 0, "world": 1, "a": 2, ",": 3, "!": 4, "<s>": 5, " ": 6}))
    words.pre_tokenizer = make.pre_tokenizers.Whitespace()
    with pytest.raises(VocabularyError, match="WordLevel"):
        Vocabulary.from_tokenizer(words, eos_ids=[5])


def test_a_wrong_byte_map_fails_the_self_test() -> None:
    tokenizer = make.Tokenizer.from_str(make.byte_level_bpe().to_str())
    tokenizer.decoder = make.decoders.Fuse()  # says that pieces are plain text, which "Ġ" is not
    with pytest.raises(VocabularyError, match=r"do not spell"):
        Vocabulary.from_tokenizer(tokenizer, eos_ids=[0])


@pytest.mark.parametrize("name", ["./nowhere", "/no/where/tokenizer.json", "missing.tiktoken", "a/b/c"])
def test_a_missing_file_is_named(name: str) -> None:
    with pytest.raises(VocabularyError, match="there is no file") as caught:
        Vocabulary.from_pretrained(name)
    assert name in str(caught.value)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="no tokenizer"):
        Vocabulary.from_pretrained(tmp_path)
    for name, says in {
        "x.bin": "a name that constrain knows",
        "x.tiktoken": "is not a rank file",
        "tokenizer.json": "is not JSON",
        "tekken.json": "is not JSON",
        "x.model": "is not a SentencePiece model",
    }.items():
        file = tmp_path / name
        file.write_bytes(b"? ?")
        with pytest.raises(VocabularyError, match=says):
            Vocabulary.from_pretrained(file)
    with pytest.raises(VocabularyError, match="int is not a tokenizer"):
        Vocabulary.from_tokenizer(3)


# ---- tiktoken, SentencePiece, Tekken


RANKS = {bytes((value,)): value for value in range(256)} | {b"th": 256, b"the": 257, b" the": 258, b"\xc3\xa9": 259}


def test_ranks_as_a_mapping_and_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "made.tiktoken"
    file.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in RANKS.items()))
    special = {"<|endoftext|>": 260, "<|x|>": 262}
    one = Vocabulary.from_tiktoken(file, special=special)
    assert one.size == 263 and one.eos_ids == (260,) and one.tokens[258:] == (b" the", b"\xc3\xa9", None, None, None)
    assert one.encode is None and one.tokenize(" théthe".encode()) == [32, 256, 259, 257]
    assert one == Vocabulary.from_tiktoken(RANKS, special=special)
    with pytest.raises(VocabularyError, match="eos_ids="):
        Vocabulary.from_pretrained(file)
    assert Vocabulary.from_pretrained(file, size=264, eos_ids=[263]).eos_ids == (263,)


def test_a_tiktoken_encoding() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken.Encoding(
        "made", pat_str=r"\s?\S+|\s+", mergeable_ranks=RANKS, special_tokens={"<|endoftext|>": 262}
    )
    vocabulary = Vocabulary.from_tokenizer(encoding)
    assert vocabulary.tokens[260:] == (None, None, None) and vocabulary.eos_ids == (262,)
    assert vocabulary.tokenize(b"in the") == [*b"in", 258]
    with pytest.raises(VocabularyError, match="eos_ids="):
        Vocabulary.from_tokenizer(
            tiktoken.Encoding("made", pat_str=r"\s?\S+|\s+", mergeable_ranks=RANKS, special_tokens={})
        )


@pytest.mark.parametrize("prefix", ["space", "none"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_models_and_the_slow_tokenizers_on_them(kind: str, prefix: str, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.model"
    file.write_bytes(make.sentencepiece_model(kind, prefix))
    vocabulary = Vocabulary.from_pretrained(file)
    assert vocabulary.strips_leading_space == (prefix == "space")
    assert not vocabulary.missing_bytes and vocabulary.eos_ids == (2,)
    assert vocabulary.tokens[vocabulary.special["[INST]"]] is None and b"<tool>" in vocabulary.tokens
    assert vocabulary.text(vocabulary.tokenize("é <tool>\n".encode())) == "é <tool>\n".encode()
    transformers = pytest.importorskip("transformers")
    slow = Vocabulary.from_tokenizer(transformers.BertGenerationTokenizer(str(file), eos_token="</s>"))
    assert slow.tokens[: vocabulary.size] == vocabulary.tokens


def data_of_mistral(name: str) -> Path:
    package = pytest.importorskip("mistral_common", reason="needs mistral-common, whose package carries vocabularies")
    file = Path(package.__file__).parent / "data" / name
    if not file.is_file():
        pytest.skip(f"this mistral-common does not carry {name}")
    return file


REAL = st.text(
    st.one_of(st.sampled_from(' \n\t{}[]":,\\the_of0123456789é你😀'), st.characters(codec="utf-8")), max_size=40
)


@lru_cache(maxsize=4)
def real(file: Path) -> Vocabulary:
    return Vocabulary.from_pretrained(file)


@pytest.mark.parametrize(
    ("name", "size"), [("tokenizer.model.v1", 32_000), ("mistral_instruct_tokenizer_240323.model.v3", 32_768)]
)
@given(text=REAL)
def test_mistral_sentencepiece(name: str, size: int, text: str) -> None:
    vocabulary = real(data_of_mistral(name))
    assert (vocabulary.size, vocabulary.eos_ids, vocabulary.strips_leading_space) == (size, (2,), True)
    if UNSEEN not in text and text:
        assert vocabulary.text(vocabulary.encode(text)) == b" " + text.encode()  # type: ignore[misc]
    assert vocabulary.text(vocabulary.tokenize(text.encode())) == text.encode()


@given(text=REAL)
def test_mistral_tekken(text: str) -> None:
    vocabulary = real(data_of_mistral("tekken_240911.json"))
    assert (vocabulary.size, vocabulary.eos_ids, vocabulary.missing_bytes) == (131_072, (2,), frozenset())
    assert vocabulary.special["[INST]"] == 3 and vocabulary.special["<SPECIAL_999>"] == 999
    assert vocabulary.text(vocabulary.encode(text)) == text.encode()  # type: ignore[misc]


@pytest.mark.parametrize("name", ["tekken_240911.json", "mistral_instruct_tokenizer_240323.model.v3"])
def test_loaded_mistral_tokenizers_agree_with_their_files(name: str) -> None:
    file = data_of_mistral(name)
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    loaded = MistralTokenizer.from_file(str(file))
    vocabulary = Vocabulary.from_tokenizer(loaded)
    assert vocabulary == real(file)
    inner = loaded.instruct_tokenizer.tokenizer
    text = 'Grüße, "世界"\n  {}'
    assert vocabulary.encode_prompt is not None
    assert vocabulary.encode_prompt(text) == inner.encode(text, bos=True, eos=False)


def test_llama3_ranks_are_recognised(shared: Path) -> None:
    vocabulary = real(shared / "data" / "llama3.tiktoken")
    assert vocabulary.size == 128_256 and vocabulary.eos_ids == (128_001, 128_008, 128_009)
    assert vocabulary.special["<|eot_id|>"] == 128_009 and len(vocabulary.special) == 256
    assert not vocabulary.missing_bytes and vocabulary.tokens[220] == b" "
    pytest.importorskip("tiktoken")
    text = 'Grüße, "世界"\n  {"a": 12345}'
    assert vocabulary.text(vocabulary.encode(text)) == text.encode()  # type: ignore[misc]
    assert vocabulary.tokenize(b"Hello world") == [9906, 1917]


@pytest.mark.parametrize("prefix", ["x", "##", "é"])
def test_merges_that_lack_the_prefix_of_subwords_are_refused(tmp_path: Path, prefix: str) -> None:
    """The tokenizers package would abort the process."""
    file = saved(tmp_path) / "tokenizer.json"
    document = json.loads(file.read_text("utf-8"))
    document["model"]["continuing_subword_prefix"] = prefix
    file.write_text(json.dumps(document), "utf-8")
    with pytest.raises(VocabularyError, match="a merge lacks the prefix"):
        Vocabulary.from_pretrained(file, eos_ids=[0])
