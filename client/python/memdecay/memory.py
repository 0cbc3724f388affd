"""The daemon's slabs in this process: read-only views for readers, writable ones for open grants.

What it is: mmap of received descriptors. Python cannot protect single slots, so a writable view is
only ever handed out for a granted page and is released at its seal.
Thread: the client's lock.
"""

from __future__ import annotations

import mmap
import os
import struct

from memdecay.frames import Slab


class SlabMemory:
    """One slab, mapped once for reading and, if it is ours to fill, once for writing."""

    def __init__(self, slab: Slab) -> None:
        self.page_bytes = slab.page_bytes
        self.slots = slab.slots
        self._size = slab.size
        self._read = mmap.mmap(slab.fd, slab.size, mmap.MAP_SHARED, mmap.PROT_READ)
        self._read.madvise(mmap.MADV_DONTFORK)
        self._write: mmap.mmap | None = None
        self.allow(slab)

    @property
    def writable(self) -> bool:
        """Whether this process may fill the slab."""
        return self._write is not None

    def allow(self, slab: Slab) -> None:
        """Takes the (new) access of a slab; closes the descriptor."""
        if slab.writable and self._write is None:
            both = mmap.PROT_READ | mmap.PROT_WRITE
            self._write = mmap.mmap(slab.fd, self._size, mmap.MAP_SHARED, both)
            self._write.madvise(mmap.MADV_DONTFORK)
        os.close(slab.fd)

    def reader(self, slot: int) -> memoryview:
        """The bytes of a slot, read-only."""
        begin = slot * self.page_bytes
        return memoryview(self._read)[begin : begin + self.page_bytes].toreadonly()

    def writer(self, slot: int) -> memoryview | None:
        """The bytes of a slot, writable and zeroed; None if this process may not fill the slab."""
        view = self.window(slot)
        if view is not None:
            view[:] = bytes(self.page_bytes)
        return view

    def window(self, slot: int) -> memoryview | None:
        """As writer, but as the bytes are: for who writes every one of them."""
        if self._write is None:
            return None
        begin = slot * self.page_bytes
        return memoryview(self._write)[begin : begin + self.page_bytes]


class TimelinePage:
    """512 words of 64 bits; words 0 to 255 are this member's to write and only move forward."""

    ENGINE_WORDS = 256

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        os.close(fd)
        self._next: dict[int, int] = {}

    def next(self, word: int) -> int:
        """The next value of a word; the fence has passed once it is signalled."""
        if not 0 <= word < self.ENGINE_WORDS:
            raise ValueError("an engine has words 0 to 255")
        self._next[word] = self._next.get(word, 0) + 1
        return self._next[word]

    def signal(self, word: int, value: int) -> None:
        """Stores the word; waiters notice within a millisecond."""
        struct.pack_into("<Q", self._page, word * 8, value)
