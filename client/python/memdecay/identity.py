"""Layouts, namespaces and page keys: the same bytes and hashes as proto/contract.

What it is: the canonical encoding of proto/README.md, "Identity"; checked against proto/golden.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from memdecay.v1 import common_pb2

_BYTES, _TEXT, _U32, _U64, _F64, _U32_LIST = 1, 2, 3, 4, 5, 6


class _Writer:
    """tag u16, type u8, length u32, bytes: nothing is left out or reordered."""

    def __init__(self, domain: str) -> None:
        self.out = bytearray()
        self.text(0, domain)

    def _frame(self, tag: int, kind: int, value: bytes) -> None:
        self.out += struct.pack("<HBI", tag, kind, len(value)) + value

    def data(self, tag: int, value: bytes) -> None:
        self._frame(tag, _BYTES, value)

    def text(self, tag: int, value: str) -> None:
        self._frame(tag, _TEXT, value.encode())

    def u32(self, tag: int, value: int) -> None:
        self._frame(tag, _U32, struct.pack("<I", value))

    def u64(self, tag: int, value: int) -> None:
        self._frame(tag, _U64, struct.pack("<Q", value))

    def f64(self, tag: int, value: float) -> None:
        self._frame(tag, _F64, struct.pack("<d", value))

    def u32_list(self, tag: int, values: Sequence[int]) -> None:
        self._frame(tag, _U32_LIST, struct.pack(f"<{len(values)}I", *values))


@dataclass(frozen=True)
class Group:
    """Layers that share a shape; window 0 is full attention; page_bytes of K, V and side data."""

    layers: int
    kv_heads: int
    head_dim: int
    page_tokens: int
    packing: str
    window: int
    page_bytes: int


@dataclass(frozen=True)
class Rope:
    """Rotary embedding; where there is none, kind, inv_freq_hash and pairing are "none"."""

    inv_freq_hash: str = "none"
    kind: str = "none"
    attention_factor: float = 1.0
    pairing: str = "none"
    n_rot: int = 0


@dataclass(frozen=True)
class Layout:
    """Everything that decides what a page's bytes mean. Every field is given and resolved."""

    model: str
    weights_fingerprint: str
    revision: str
    adapter: str
    tokenizer_fingerprint: str
    dtype: str
    quantization: str
    scales: str
    groups: tuple[Group, ...]
    rope: Rope
    tensor_parallel: int
    producer: str

    @property
    def page_tokens(self) -> int:
        """Tokens of a page; equal in all groups."""
        return self.groups[0].page_tokens

    @property
    def page_bytes(self) -> int:
        """Bytes of a page, all groups together."""
        return sum(group.page_bytes for group in self.groups)

    def encoding(self) -> bytes:
        """The canonical encoding, which namespace() hashes."""
        out = _Writer("memdecay.layout.v1")
        texts = (
            self.model,
            self.weights_fingerprint,
            self.revision,
            self.adapter,
            self.tokenizer_fingerprint,
            self.dtype,
            self.quantization,
            self.scales,
        )
        for tag, text in enumerate(texts, 1):
            out.text(tag, text)
        out.u32(9, len(self.groups))
        for group in self.groups:
            out.u32(16, group.layers)
            out.u32(17, group.kv_heads)
            out.u32(18, group.head_dim)
            out.u32(19, group.page_tokens)
            out.text(20, group.packing)
            out.u32(21, group.window)
            out.u64(22, group.page_bytes)
        out.text(32, self.rope.inv_freq_hash)
        out.text(33, self.rope.kind)
        out.f64(34, self.rope.attention_factor)
        out.text(35, self.rope.pairing)
        out.u32(36, self.rope.n_rot)
        out.u32(48, self.tensor_parallel)
        out.text(49, self.producer)
        return bytes(out.out)

    def message(self) -> common_pb2.Layout:
        """As it travels."""
        names = (
            "model",
            "weights_fingerprint",
            "revision",
            "adapter",
            "tokenizer_fingerprint",
            "dtype",
            "quantization",
            "scales",
            "tensor_parallel",
            "producer",
        )
        return common_pb2.Layout(
            **{name: getattr(self, name) for name in names},
            groups=[common_pb2.LayoutGroup(**vars(group)) for group in self.groups],
            rope=common_pb2.Rope(**vars(self.rope)),
        )


def namespace(layout: Layout) -> bytes:
    """SHA-256 of the layout's canonical encoding: 32 bytes."""
    return hashlib.sha256(layout.encoding()).digest()


def page_key_encoding(
    space: bytes, parent: bytes | None, tokens: Sequence[int], extras: Sequence[tuple[str, bytes]]
) -> bytes:
    """The bytes that page_key() hashes."""
    out = _Writer("memdecay.page.v1")
    out.data(1, space)
    out.data(2, parent or b"")
    out.u32_list(3, tokens)
    out.u32(4, len(extras))
    for kind, value in extras:
        out.text(5, kind)
        out.data(6, value)
    return bytes(out.out)


def page_key(
    space: bytes,
    parent: bytes | None,
    tokens: Sequence[int],
    extras: Sequence[tuple[str, bytes]] = (),
) -> bytes:
    """The public name of a page's content; parent is the key of the page before it."""
    return hashlib.sha256(page_key_encoding(space, parent, tokens, extras)).digest()
