"""Where a block's bytes lie in the engine's buffer, and how they become a daemon page and back.

What it is: a page is the layers' parts of one block, one after the other in the layers' order. The
bytes are opaque: kernels pack them as they like, and the layout's packing says which kernels.
Thread: whoever owns the engine's step; nothing else may touch the block meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerView:
    """One layer's part of the buffer: block b lies at address + b * stride, `size` bytes."""

    name: str
    address: int
    stride: int
    size: int
    blocks: int


class BlockMap:
    """The spans of a block, adjoining ones as one."""

    def __init__(self, layers: Sequence[LayerView]) -> None:
        if not layers:
            raise ValueError("no layer has a KV cache")
        if len({(layer.blocks, layer.stride) for layer in layers}) != 1:
            raise ValueError("layers differ in their blocks or strides")
        self.blocks = layers[0].blocks
        self._stride = layers[0].stride
        self._spans: list[tuple[int, int]] = []  # (address in block 0, bytes), in page order
        for layer in layers:
            if layer.size < 1 or layer.size > layer.stride:
                raise ValueError(f"{layer.name}: blocks of {layer.size} bytes every {layer.stride}")
            if self._spans and sum(self._spans[-1]) == layer.address:
                address, size = self._spans[-1]
                self._spans[-1] = (address, size + layer.size)
            else:
                self._spans.append((layer.address, layer.size))
        self.page_bytes = sum(size for _, size in self._spans)

    @property
    def spans(self) -> int:
        """How many pieces a block consists of."""
        return len(self._spans)

    def save(self, block: int, page: memoryview) -> None:
        """Copies the block into the page."""
        for address, size, at in self._pieces(block, page):
            page[at : at + size] = _view(address, size)

    def load(self, block: int, page: memoryview) -> None:
        """Copies the page into the block."""
        for address, size, at in self._pieces(block, page):
            _view(address, size)[:] = page[at : at + size]

    def _pieces(self, block: int, page: memoryview) -> Iterable[tuple[int, int, int]]:
        if not 0 <= block < self.blocks:
            raise ValueError(f"block {block} of {self.blocks}")
        if page.nbytes != self.page_bytes:
            raise ValueError(f"a page of {page.nbytes} bytes, a block of {self.page_bytes}")
        at = 0
        for address, size in self._spans:
            yield address + block * self._stride, size, at
            at += size


def _view(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
