"""Sessions: a sequence's pages as their engine sees them.

What it is: the requests of one session, and its table of pages. Pages that the daemon asks for are
given up at once between steps and at the end of a step otherwise.
Thread: one thread calls; the client's lock guards the tables, which notices change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memdecay.errors import MemdecayError
from memdecay.identity import Layout
from memdecay.stream import Refused
from memdecay.v1 import common_pb2, memory_pb2

if TYPE_CHECKING:
    from memdecay.client import Client

_PAUSES = {
    "waiting_tool": common_pb2.SESSION_STATE_WAITING_TOOL,
    "waiting_user": common_pb2.SESSION_STATE_WAITING_USER,
    "preempted": common_pb2.SESSION_STATE_PREEMPTED,
    "ended": common_pb2.SESSION_STATE_ENDED,
}


@dataclass(frozen=True)
class Slot:
    """A place on the device."""

    slab: int
    index: int
    generation: int


@dataclass
class Page:
    """One page of a session; read is None for a hole, write is None once it is sealed."""

    index: int
    slot: Slot | None = None
    read: memoryview | None = None
    write: memoryview | None = None
    approximate: bool = False
    asked_by: int = 0
    offered: Slot | None = None


def slot_of(view: common_pb2.PageView) -> Slot | None:
    """Where the page lies, if it lies anywhere."""
    if not view.HasField("slot"):
        return None
    return Slot(view.slot.slab, view.slot.index, view.slot.generation)


@dataclass
class Session:
    """A sequence whose pages the daemon owns."""

    client: Client
    id: int
    name: str
    layout: Layout
    position: int
    pages: list[Page] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    ready: bool = True
    in_step: bool = False

    def _request(self) -> memory_pb2.StreamRequest:
        return memory_pb2.StreamRequest(session=self.id)

    def reserve(self, pages: int) -> list[Page]:
        """More pages at the end, for another member to write: no view, and not zeroed."""
        message = self._request()
        message.extend.pages = pages
        reply = self.client.stream.call(message, then=lambda reply: self.add(reply.grant.pages))
        return self.pages[len(self.pages) - len(reply.grant.pages) :]

    def order(self, pages: int, refused: Refused) -> None:
        """As reserve, without waiting: they are in `pages` once they are granted."""
        message = self._request()
        message.extend.pages = pages

        def granted(reply: memory_pb2.Reply) -> None:
            self.add(reply.grant.pages)
            with self.client.lock:
                self.client.changed.notify_all()

        self.client.stream.ask(message, granted, refused)

    def extend(self, pages: int) -> list[Page]:
        """More pages at the end, zeroed and writable."""
        fresh = self.reserve(pages)
        for page in fresh:
            if page.slot is not None:
                slab = self.client.slab(page.slot.slab, writable=True)
                page.read, page.write = slab.reader(page.slot.index), slab.writer(page.slot.index)
        return fresh

    def acquire(self, tokens: Sequence[int], extras: Sequence[bytes] = ()) -> int:
        """Maps the longest prefix of `tokens` that is there, from the session's end on.

        Returns the number of pages found. Those that are on their way have no slot yet; `ready` is
        set when the last of them has come.
        """
        message = self._request()
        message.acquire.layout.CopyFrom(self.layout.message())
        message.acquire.tokens.extend(tokens)
        message.acquire.extras.extend(extras)

        def add(reply: memory_pb2.Reply) -> None:
            self.ready = self.ready and all(view.HasField("slot") for view in reply.acquire.views)
            self.add(reply.acquire.views)
            self.position = max(self.position, len(self.pages) * self.layout.page_tokens)

        reply = self.client.stream.call(message, then=add)
        if reply.acquire.lease:  # the session holds what it has mapped
            release = memory_pb2.StreamRequest()
            release.release.lease = reply.acquire.lease
            self.client.stream.tell(release)
        self.wait_for_slabs()
        return int(reply.acquire.pages)

    def wait_for_slabs(self) -> None:
        """Descriptors may come a moment after the reply that names them."""
        for page in list(self.pages):
            if page.slot is not None and page.read is None:
                self.client.slab(page.slot.slab)
        with self.client.lock:
            self.settle()

    def add(self, views: Iterable[common_pb2.PageView]) -> None:
        """Appends pages to the table; on the stream's thread, so that notices find them."""
        with self.client.lock:
            for view in views:
                page = Page(view.page, slot_of(view), approximate=view.approximate)
                self.pages.append(page)

    def seal(
        self,
        first: int,
        tokens: Sequence[int],
        had_holes: bool | None = None,
        extras: Sequence[bytes] = (),
    ) -> None:
        """Whole pages from `first` on are written; their bytes never change again."""
        count = len(tokens) // self.layout.page_tokens
        message = self._request()
        message.seal.first_page = first
        message.seal.pages = count
        message.seal.tokens.extend(tokens)
        message.seal.extras.extend(extras)
        if had_holes is not None:
            message.seal.had_holes = had_holes
        with self.client.lock:
            for page in self.pages[first : first + count]:
                if page.write is not None:
                    page.write.release()
                    page.write = None
        self.client.stream.call(message)
        self.position = max(self.position, (first + count) * self.layout.page_tokens)

    def tag(self, begin: int, end: int, region: int, atomic: bool = False) -> None:
        """What the tokens [begin, end) are; region numbers of memdecay.v1.Region."""
        message = self._request()
        message.tag.spans.add(
            span=common_pb2.Span(begin=begin, end=end), region=region, atomic=atomic
        )
        self.client.stream.call(message)

    def truncate(self, tokens: int) -> None:
        """Keeps the first positions, rounded down to a page."""
        message = self._request()
        message.truncate.tokens = tokens
        self.client.stream.call(message)
        with self.client.lock:
            del self.pages[tokens // self.layout.page_tokens :]
        self.position = min(self.position, len(self.pages) * self.layout.page_tokens)

    def begin_step(self) -> list[Page]:
        """The pages as they stay until end_step."""
        with self.client.lock:
            self.in_step = True
            return list(self.pages)

    def end_step(self, step: int, position: int) -> None:
        """The boundary: says how far it is and gives up what was asked for."""
        message = self._request()
        message.observe.step = step
        message.observe.position = position
        self.position = max(self.position, position)
        self.client.stream.tell(message)
        with self.client.lock:
            self.in_step = False
            self.settle()

    def park(self, why: str) -> None:
        """waiting_tool, waiting_user, preempted or ended."""
        message = self._request()
        message.park.state = _PAUSES[why]
        self.client.stream.call(message)

    def ask_back(self) -> None:
        """Asks for the pages back; `ready` is set when the session may compute."""
        self.ready = False
        message = self._request()
        message.unpark.SetInParent()
        self.client.stream.call(message)

    def unpark(self, timeout: float = 10.0) -> None:
        """Asks for the pages back and waits until the session may compute."""
        self.ask_back()
        with self.client.lock:
            if not self.client.changed.wait_for(lambda: self.ready, timeout):
                raise MemdecayError("deadline", f"session {self.id} to be ready", "it is not yet")

    def close(self, forget: bool = False) -> None:
        """The content stays resumable unless it is forgotten."""
        message = self._request()
        message.close.forget = forget
        self.client.stream.call(message)
        with self.client.lock:
            self.client.sessions.pop(self.id, None)
            self.pages.clear()

    def settle(self) -> None:
        """Gives up and maps what is pending; the client's lock is held."""
        if self.in_step:
            return
        by_decision: dict[int, list[int]] = {}
        resident: list[Page] = []
        for page in self.pages:
            if page.asked_by:
                by_decision.setdefault(page.asked_by, []).append(page.index)
                page.slot, page.read, page.asked_by = None, None, 0
            if page.offered and page.offered.slab in self.client.slabs:
                slab = self.client.slabs[page.offered.slab]
                page.slot, page.offered = page.offered, None
                page.read = slab.reader(page.slot.index)
                resident.append(page)
            if page.slot and page.read is None and page.slot.slab in self.client.slabs:
                page.read = self.client.slabs[page.slot.slab].reader(page.slot.index)
        for decision, pages in by_decision.items():
            message = self._request()
            message.gave_up.decision = decision
            message.gave_up.pages.extend(pages)
            message.gave_up.position = self.position
            self.client.stream.tell(message)
        if resident:
            message = self._request()
            message.resident.pages.extend(page.index for page in resident)
            message.resident.generations.extend(
                page.slot.generation for page in resident if page.slot
            )
            message.resident.position = self.position
            self.client.stream.tell(message)
