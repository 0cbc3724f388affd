"""The client of an engine's process: attaches, opens sessions, answers notices.

What it is: what libmemdecay.so does, as far as a Python engine or a test needs it. Not here: what
a session asks (session.py), further processes of the engine (attachment.py, Member).
Thread: one thread calls; the stream's thread answers notices. One lock guards tables and slabs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from memdecay.attachment import SCHEDULER, Attachment, Credentials
from memdecay.errors import MemdecayError
from memdecay.frames import HandleSocket, Hello
from memdecay.identity import Layout
from memdecay.memory import SlabMemory, TimelinePage
from memdecay.session import Page, Session, slot_of
from memdecay.stream import EngineStream
from memdecay.v1 import common_pb2, memory_pb2

_MODES = {
    "default": common_pb2.MODE_UNSPECIFIED,
    "exact": common_pb2.MODE_EXACT,
    "lossy": common_pb2.MODE_LOSSY,
}


class Client:
    """One engine process. Use it as a context manager."""

    def __init__(
        self,
        name: str = "python",
        directory: str | None = None,
        timeout: float = 5.0,
        page_tokens: int = 0,
        page_bytes: int = 0,
    ):
        self.timeout = timeout
        self.sessions: dict[int, Session] = {}
        self._leaving: set[int] = set()
        hello = Hello(name, role=SCHEDULER, page_tokens=page_tokens, page_bytes=page_bytes)
        self._attachment = Attachment(directory, hello, timeout)
        self.lock = self._attachment.lock
        self.changed = self._attachment.changed
        self.stream = EngineStream(self._attachment.welcome, self._notice, timeout)
        self._attachment.watch(self._settle_all)

    @property
    def handles(self) -> HandleSocket:
        """The connection whose end tells the daemon that this process is gone."""
        return self._attachment.handles

    @property
    def slabs(self) -> dict[int, SlabMemory]:
        """What is mapped here; read it under the lock."""
        return self._attachment.slabs

    @property
    def timeline(self) -> TimelinePage | None:
        """This process' timeline page, once it has come."""
        return self._attachment.timeline

    @property
    def credentials(self) -> Credentials:
        """What a further member of this engine says in its Hello."""
        return self._attachment.credentials

    @property
    def down(self) -> str | None:
        """Why the stream has ended; None while it lives."""
        return self.stream.down

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
        self,
        layout: Layout,
        name: str = "",
        mode: str = "default",
        budget_pages: int = 0,
        policy: str = "",
        policy_options: Mapping[str, str] | None = None,
    ) -> Session:
        """A new session. policy_options: keys as in the configuration, without "policy."."""
        message = memory_pb2.StreamRequest()
        message.open.name = name
        message.open.layout.CopyFrom(layout.message())
        message.open.mode = _MODES[mode]
        message.open.budget_pages = budget_pages
        message.open.policy = policy
        message.open.policy_options.update(policy_options or {})
        return self._enter(message, layout)

    def resume(self, layout: Layout, name: str, steal: bool = False) -> Session:
        """A session that another engine left; busy while that engine lives."""
        message = memory_pb2.StreamRequest()
        message.resume.name = name
        message.resume.steal = steal
        message.resume.layout.CopyFrom(layout.message())
        return self._enter(message, layout)

    def lookup(
        self, layout: Layout, tokens: Sequence[int], extras: Sequence[bytes] = ()
    ) -> memory_pb2.LookupResponse:
        """The longest exact prefix that is there; changes nothing."""
        request = memory_pb2.LookupRequest(layout=layout.message(), tokens=tokens, extras=extras)
        return self.stream.lookup(request)

    def slab(self, number: int, writable: bool = False) -> SlabMemory:
        """As Attachment.slab."""
        return self._attachment.slab(number, self.timeout, writable)

    def close(self) -> None:
        """An orderly goodbye; sessions stay resumable."""
        message = memory_pb2.StreamRequest()
        message.leave.SetInParent()
        with contextlib.suppress(MemdecayError):
            self.stream.call(message, 1.0)
        self.stream.close()
        self._attachment.close()

    def _enter(self, message: memory_pb2.StreamRequest, layout: Layout) -> Session:
        entered: list[Session] = []
        self.stream.call(message, then=lambda reply: entered.append(self._adopt(reply, layout)))
        session = entered[0]
        session.wait_for_slabs()
        return session

    def _adopt(self, reply: memory_pb2.Reply, layout: Layout) -> Session:
        """On the stream's thread, so that notices which follow find the session."""
        told = reply.session
        session = Session(self, told.session, told.name, layout, told.position)
        session.ready = told.ready
        session.tokens = list(told.tokens)
        for view in told.pages:
            session.pages.append(Page(view.page, slot_of(view), approximate=view.approximate))
        with self.lock:
            self.sessions[session.id] = session
            session.settle()
        return session

    def _settle_all(self) -> None:
        for session in self.sessions.values():
            session.settle()

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
                if (page := known(asked.page)) and page.slot is not None:
                    page.asked_by = message.evict.decision
        elif kind == "withdraw":
            kept = memory_pb2.StreamRequest(session=session.id)
            kept.kept.SetInParent()
            for index in message.withdraw.pages:
                if (page := known(index)) and page.slot is not None:
                    page.asked_by = 0
                    kept.kept.pages.append(index)
            self.stream.tell(kept)
        elif kind == "restore":
            for view in message.restore.pages:
                if page := known(view.page):
                    page.offered, page.approximate = slot_of(view), view.approximate
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
