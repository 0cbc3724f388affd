"""Client and sessions: attach, grow, seal, step, pause.

What it is: what libmemdecay.so does, as far as a Python engine or a test needs it. Pages that the
daemon asks for are given up at once between steps and at the end of a step otherwise.
Thread: one thread calls; the stream's thread answers notices. One lock guards tables and slabs.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from memdecay.errors import MemdecayError
from memdecay.frames import HandleSocket, Hello, Slab, SlabGone, Timeline
from memdecay.identity import Layout
from memdecay.memory import SlabMemory, TimelinePage
from memdecay.stream import EngineStream
from memdecay.v1 import common_pb2, memory_pb2

_PAUSES = {
    "waiting_tool": common_pb2.SESSION_STATE_WAITING_TOOL,
    "waiting_user": common_pb2.SESSION_STATE_WAITING_USER,
    "preempted": common_pb2.SESSION_STATE_PREEMPTED,
    "ended": common_pb2.SESSION_STATE_ENDED,
}
_MODES = {
    "default": common_pb2.MODE_UNSPECIFIED,
    "exact": common_pb2.MODE_EXACT,
    "lossy": common_pb2.MODE_LOSSY,
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

    def extend(self, pages: int) -> list[Page]:
        """More pages at the end, zeroed and writable."""
        message = self._request()
        message.extend.pages = pages
        views = self.client.stream.call(message).grant.pages
        fresh = []
        for view in views:
            page = Page(view.page, _slot(view))
            slab = self.client.slab(view.slot.slab, writable=True)
            page.read, page.write = slab.reader(view.slot.index), slab.writer(view.slot.index)
            fresh.append(page)
        with self.client.lock:
            self.pages.extend(fresh)
        return fresh

    def seal(self, first: int, tokens: Sequence[int], had_holes: bool | None = None) -> None:
        """Whole pages from `first` on are written; their bytes never change again."""
        count = len(tokens) // self.layout.page_tokens
        message = self._request()
        message.seal.first_page = first
        message.seal.pages = count
        message.seal.tokens.extend(tokens)
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

    def unpark(self, timeout: float = 10.0) -> None:
        """Asks for the pages back and waits until the session may compute."""
        self.ready = False
        message = self._request()
        message.unpark.SetInParent()
        self.client.stream.call(message)
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


def _slot(view: common_pb2.PageView) -> Slot | None:
    if not view.HasField("slot"):
        return None
    return Slot(view.slot.slab, view.slot.index, view.slot.generation)


def socket_path(directory: str | None) -> str:
    """`directory`, else the user's runtime directory, else the system's."""
    if directory is None:
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        own = Path(runtime) / "memdecay"
        directory = str(own) if runtime and (own / "handles.sock").exists() else "/run/memdecay"
    return str(Path(directory) / "handles.sock")


class Client:
    """One engine process. Use it as a context manager."""

    def __init__(self, name: str = "python", directory: str | None = None, timeout: float = 5.0):
        self.timeout = timeout
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.slabs: dict[int, SlabMemory] = {}
        self.sessions: dict[int, Session] = {}
        self.timeline: TimelinePage | None = None
        self._leaving: set[int] = set()
        self.handles = HandleSocket.attach(socket_path(directory), Hello(name), timeout)
        self.handles.socket.settimeout(None)
        self._receiver = threading.Thread(target=self._receive, name="memdecay-fds", daemon=True)
        self._receiver.start()
        self.stream = EngineStream(self.handles.welcome, self._notice, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(
        self, layout: Layout, name: str = "", mode: str = "default", budget_pages: int = 0
    ) -> Session:
        """A new session."""
        message = memory_pb2.StreamRequest()
        message.open.name = name
        message.open.layout.CopyFrom(layout.message())
        message.open.mode = _MODES[mode]
        message.open.budget_pages = budget_pages
        return self._adopt(self.stream.call(message).session, layout)

    def resume(self, layout: Layout, name: str, steal: bool = False) -> Session:
        """A session that another engine left; busy while that engine lives."""
        message = memory_pb2.StreamRequest()
        message.resume.name = name
        message.resume.steal = steal
        message.resume.layout.CopyFrom(layout.message())
        return self._adopt(self.stream.call(message).session, layout)

    def lookup(self, layout: Layout, tokens: Sequence[int]) -> memory_pb2.LookupResponse:
        """The longest exact prefix that is there; changes nothing."""
        request = memory_pb2.LookupRequest(layout=layout.message(), tokens=tokens)
        return self.stream.lookup(request)

    def slab(self, number: int, writable: bool = False) -> SlabMemory:
        """A slab, which may arrive a moment after the message that names it."""
        with self.lock:
            there = self.changed.wait_for(lambda: number in self.slabs, self.timeout)
            if not there:
                raise MemdecayError("deadline", f"slab {number}", "its descriptor has not arrived")
            return self.slabs[number]

    def close(self) -> None:
        """An orderly goodbye; sessions stay resumable."""
        message = memory_pb2.StreamRequest()
        message.leave.SetInParent()
        with contextlib.suppress(MemdecayError):
            self.stream.call(message, 1.0)
        self.stream.close()
        self.handles.close()

    def _adopt(self, reply: memory_pb2.SessionReply, layout: Layout) -> Session:
        session = Session(self, reply.session, reply.name, layout, reply.position)
        session.ready = reply.ready
        session.tokens = list(reply.tokens)
        for view in reply.pages:
            page = Page(view.page, _slot(view), approximate=view.approximate)
            if page.slot is not None:
                page.read = self.slab(page.slot.slab).reader(page.slot.index)
            session.pages.append(page)
        with self.lock:
            self.sessions[session.id] = session
        return session

    def _receive(self) -> None:
        while True:
            try:
                frame = self.handles.next()
            except (OSError, MemdecayError):
                return
            with self.lock:
                if isinstance(frame, Slab):
                    if frame.slab in self.slabs:
                        self.slabs[frame.slab].allow(frame)
                    else:
                        self.slabs[frame.slab] = SlabMemory(frame)
                    for session in self.sessions.values():
                        session.settle()
                elif isinstance(frame, SlabGone):
                    self.slabs.pop(frame.slab, None)
                elif isinstance(frame, Timeline):
                    self.timeline = TimelinePage(frame.fd)
                self.changed.notify_all()

    def _notice(self, message: memory_pb2.StreamResponse) -> None:
        with self.lock:
            session = self.sessions.get(message.session)
            kind = message.WhichOneof("body")
            if kind == "unmap_slab":
                self._leaving.add(message.unmap_slab.slab)
            elif session is not None:
                self._apply(session, message, kind)
                session.settle()
            self._unmap_unused()
            self.changed.notify_all()

    def _apply(
        self, session: Session, message: memory_pb2.StreamResponse, kind: str | None
    ) -> None:
        def known(index: int) -> Page | None:
            return session.pages[index] if index < len(session.pages) else None

        if kind == "evict":
            for asked in message.evict.pages:
                if (page := known(asked.page)) and page.read is not None:
                    page.asked_by = message.evict.decision
        elif kind == "withdraw":
            kept = memory_pb2.StreamRequest(session=session.id)
            kept.kept.SetInParent()
            for index in message.withdraw.pages:
                if (page := known(index)) and page.read is not None:
                    page.asked_by = 0
                    kept.kept.pages.append(index)
            self.stream.tell(kept)
        elif kind == "restore":
            for view in message.restore.pages:
                if page := known(view.page):
                    page.offered, page.approximate = _slot(view), view.approximate
        elif kind == "ready":
            session.ready = True

    def _unmap_unused(self) -> None:
        used = {
            page.slot.slab
            for session in self.sessions.values()
            for page in session.pages
            if page.slot is not None
        }
        for number in self._leaving - used:
            self._leaving.discard(number)
            self.slabs.pop(number, None)
            message = memory_pb2.StreamRequest()
            message.slab_unmapped.slab = number
            self.stream.tell(message)
