"""Blocks to pages and back: every byte once, neighbours untouched; and deadlines from a user.

What it is: memdecay_vllm.blocks over buffers of both layouts, memdecay_vllm.deadlines.
"""

import ctypes

import pytest
from memdecay_vllm.blocks import BlockMap, LayerView
from memdecay_vllm.deadlines import Deadlines

LAYERS, BLOCKS, PART = 3, 5, 8


def _map(buffer: ctypes.Array, block_outer: bool) -> BlockMap:
    base = ctypes.addressof(buffer)
    if block_outer:
        return BlockMap(
            [LayerView(str(n), base + n * PART, LAYERS * PART, PART, BLOCKS) for n in range(LAYERS)]
        )
    return BlockMap(
        [LayerView(str(n), base + n * PART * BLOCKS, PART, PART, BLOCKS) for n in range(LAYERS)]
    )


@pytest.mark.parametrize("block_outer", [False, True])
def test_a_block_becomes_a_page_and_comes_back_elsewhere(block_outer: bool) -> None:
    buffer = (ctypes.c_char * (LAYERS * BLOCKS * PART))(*[bytes([n]) for n in range(120)])
    blocks = _map(buffer, block_outer)
    assert blocks.page_bytes == LAYERS * PART
    assert blocks.spans == (1 if block_outer else LAYERS)
    page = bytearray(blocks.page_bytes)
    blocks.save(2, memoryview(page))
    other = bytearray(blocks.page_bytes)
    blocks.save(3, memoryview(other))
    before = bytes(buffer)
    blocks.load(4, memoryview(page))
    changed = {n for n in range(120) if before[n] != buffer.raw[n]}
    assert len(changed) == LAYERS * PART
    again = bytearray(blocks.page_bytes)
    blocks.save(4, memoryview(again))
    assert again == page != other
    blocks.save(3, memoryview(again))
    assert again == other


def test_layers_parts_stand_in_the_page_in_their_order() -> None:
    buffer = (ctypes.c_char * (LAYERS * BLOCKS * PART))()
    for layer in range(LAYERS):
        ctypes.memset(ctypes.addressof(buffer) + layer * PART * BLOCKS, layer + 1, PART * BLOCKS)
    page = bytearray(LAYERS * PART)
    _map(buffer, block_outer=False).save(1, memoryview(page))
    assert bytes(page) == b"\1" * PART + b"\2" * PART + b"\3" * PART


def test_wrong_blocks_and_pages_are_refused() -> None:
    buffer = (ctypes.c_char * (LAYERS * BLOCKS * PART))()
    blocks = _map(buffer, block_outer=False)
    for block in (-1, BLOCKS):
        with pytest.raises(ValueError, match="block"):
            blocks.save(block, memoryview(bytearray(blocks.page_bytes)))
    with pytest.raises(ValueError, match="page"):
        blocks.save(0, memoryview(bytearray(blocks.page_bytes - 1)))
    with pytest.raises(ValueError, match="layer"):
        BlockMap([])
    with pytest.raises(ValueError, match="differ"):
        BlockMap([LayerView("a", 0, 8, 8, 5), LayerView("b", 64, 16, 8, 5)])
    with pytest.raises(ValueError, match="bytes every"):
        BlockMap([LayerView("a", 0, 4, 8, 5)])


def test_deadlines_are_changed_by_name_and_bad_ones_refused() -> None:
    assert Deadlines.of(None) == Deadlines()
    assert Deadlines.of({"answer_ms": 80}).answer_ms == 80
    for given in ({"answer": 80}, {"answer_ms": 0}, {"answer_ms": "80"}, {"answer_ms": True}, [1]):
        with pytest.raises(ValueError, match="deadlines"):
            Deadlines.of(given)
