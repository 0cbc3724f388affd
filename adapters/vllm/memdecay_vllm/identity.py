"""The layout of this engine's pages: everything that decides what their bytes mean.

What it is: memdecay's Layout from what vLLM resolved and from the files that it read; nothing is
guessed, what cannot be determined is refused. Hashing weights is slow, so a file's hash is kept in
the user's cache under its path, size, times and inode.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdecay import Group, Layout, Rope

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "vocab.txt")
# How architectures pair the elements of a head for rotation: part of what K means, in no config.
PAIRING = {
    "LlamaForCausalLM": "half",
    "MistralForCausalLM": "half",
    "Qwen2ForCausalLM": "half",
    "Qwen3ForCausalLM": "half",
}
_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Shape:
    """What the worker sees in its registered KV caches."""

    layers: int
    kv_heads: int
    head_dim: int
    block_tokens: int
    block_bytes: int
    dtype: str  # as torch names it, without "torch."
    kernel_isa: str  # which kernels packed the bytes
    cpu: str  # the instruction set that the kernels were chosen for
    order: str  # the buffer's layout as vLLM names it


@dataclass(frozen=True)
class Source:
    """What was loaded."""

    model: str
    architecture: str
    revision: str | None
    weights: Path
    tokenizer: Path | None
    # Whatever else changes what the model computes: quantisation, overrides, the model's config.
    settings: Mapping[str, Any]
    rope: Mapping[str, Any] | None
    producer: str


def layout(shape: Shape, source: Source, cache: Path | None) -> Layout:
    """ValueError: something cannot be determined."""
    if shape.dtype not in _DTYPES:
        raise ValueError(f"a KV cache of {shape.dtype}: only {', '.join(_DTYPES)} yet")
    packing = f"vllm.{shape.order}.{shape.kernel_isa}.{shape.cpu}".lower()
    return Layout(
        model=source.model,
        weights_fingerprint=fingerprint(source.weights, source.settings, cache),
        revision=source.revision or "local",
        adapter="none",
        tokenizer_fingerprint=_tokenizer(source.tokenizer, cache),
        dtype=_DTYPES[shape.dtype],
        quantization="none",
        scales="none",
        groups=(
            Group(
                layers=shape.layers,
                kv_heads=shape.kv_heads,
                head_dim=shape.head_dim,
                page_tokens=shape.block_tokens,
                packing=packing,
                window=0,
                page_bytes=shape.block_bytes,
            ),
        ),
        rope=rope(source.rope, source.architecture, shape.head_dim),
        tensor_parallel=1,
        producer=source.producer,
    )


def fingerprint(folder: Path, settings: Mapping[str, Any], cache: Path | None) -> str:
    """SHA-256 over the weight files' names and contents and the settings."""
    files = sorted(path for path in folder.glob("*") if path.suffix in _WEIGHTS)
    if not files:
        raise ValueError(f"no weights ({', '.join(_WEIGHTS)}) in {folder}")
    contents = {path.name: _file_hash(path, cache) for path in files}
    told = json.dumps([contents, settings], sort_keys=True, default=str)
    return "sha256:" + hashlib.sha256(told.encode()).hexdigest()


def rope(parameters: Mapping[str, Any] | None, architecture: str, head_dim: int) -> Rope:
    """The rotary embedding: its parameters' hash stands for the frequencies they define."""
    if not parameters:
        return Rope()
    if architecture not in PAIRING:
        known = ", ".join(PAIRING)
        raise ValueError(f"how {architecture} pairs rotated elements is not known, only of {known}")
    kind = str(parameters.get("rope_type") or parameters.get("type") or "default")
    told = json.dumps([dict(parameters), head_dim], sort_keys=True, default=str)
    partial = float(parameters.get("partial_rotary_factor", 1.0))
    return Rope(
        inv_freq_hash="parameters-sha256:" + hashlib.sha256(told.encode()).hexdigest(),
        kind=kind,
        attention_factor=float(parameters.get("attention_factor") or 1.0),
        pairing=PAIRING[architecture],
        n_rot=int(head_dim * partial),
    )


def _tokenizer(folder: Path | None, cache: Path | None) -> str:
    if folder is None:
        return "token-ids-only"
    files = [folder / name for name in _TOKENIZER if (folder / name).is_file()]
    if not files:
        raise ValueError(f"no tokenizer ({', '.join(_TOKENIZER)}) in {folder}")
    told = "".join(f"{path.name}:{_file_hash(path, cache)};" for path in files)
    return "sha256:" + hashlib.sha256(told.encode()).hexdigest()


def _file_hash(path: Path, cache: Path | None) -> str:
    real = path.resolve()
    stat = real.stat()
    name = json.dumps([str(real), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    record = None if cache is None else cache / hashlib.sha256(name.encode()).hexdigest()
    if record is not None:
        with contextlib.suppress(OSError):
            kept = record.read_text(encoding="ascii")
            if len(kept) == 64:
                return kept
    with real.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if record is not None:
        with contextlib.suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True)
            draft = record.with_suffix(f".{os.getpid()}")
            draft.write_text(found, encoding="ascii")
            draft.replace(record)
    return found


def extras(cache_salt: str | None) -> list[bytes]:
    """Keys beside the tokens: a salted request shares with requests of the same salt only."""
    return [] if cache_salt is None else [b"cache_salt:" + cache_salt.encode()]


def user_cache(environment: Mapping[str, str]) -> Path:
    """Where file hashes are kept."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "memdecay" / "fingerprints"
