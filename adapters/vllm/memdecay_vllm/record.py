"""One request as the scheduler's side knows it: its session, and how far its pages are.

What it is: a record, and the jobs that the link runs for it. Pages [0, valid) are whole and in the
daemon's hands; [valid, sent) have been given to the worker to save; [sent, reserved) have a slot
and nothing in it. Only valid pages are ever loaded.
Thread: the scheduler's, but for the bodies of the jobs and what they return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from memdecay import Client, Credentials, Layout, MemdecayError, Session

from memdecay_vllm.orders import NO_SLAB, Move, RequestMoves
from memdecay_vllm.params import Tag


@dataclass
class Opened:
    """What a job found: the session, and how many of its pages the daemon had."""

    session: Session
    found: int
    ordered: int
    credentials: Credentials


@dataclass
class Record:
    """A request that is not finished."""

    request: str
    tokens: Sequence[int]  # the engine's own list, which grows
    extras: list[bytes]
    tags: list[Tag]
    may_load: bool
    opening: Future[Opened] | None = None
    opened: Opened | None = None
    valid: int = 0
    sent: int = 0
    ordered: int = 0  # pages that are asked for, granted or not
    in_flight: int = 0  # saves that the worker has not reported
    parked: bool = False
    waking: Future[None] | None = None
    put_off_since: float | None = None
    came: int = 0  # pages that had come back when it was last looked
    came_at: float = 0.0
    unsaved: bool = False  # a save or a request for pages failed: no more of this session
    load_from: int = 0
    load_pages: int = 0
    restored: int = 0  # tokens
    finished: bool = False

    def resident(self) -> int:
        """Valid pages from the first on that lie in slots now."""
        if self.opened is None:
            return 0
        count = 0
        for page in list(self.opened.session.pages)[: self.valid]:
            if page.slot is None:
                break
            count += 1
        return count

    def reserved(self) -> int:
        """Pages that the session has, written or not."""
        return 0 if self.opened is None else len(self.opened.session.pages)

    def moves(self, first: int, end: int, blocks: Sequence[int]) -> RequestMoves:
        """Those pages to or from the engine's blocks.

        A page whose slot has gone meanwhile gets none: then the worker reports the block.
        """
        assert self.opened is not None
        session = self.opened.session
        moves = []
        for page in range(first, end):
            slot = session.pages[page].slot
            slab, index = (NO_SLAB, 0) if slot is None else (slot.slab, slot.index)
            moves.append(Move(page, blocks[page], slab, index))
        return RequestMoves(self.request, session.id, self.opened.credentials, moves)


@dataclass(frozen=True)
class Opening:
    """What the job needs: a snapshot of the request."""

    layout: Layout
    tokens: list[int]
    extras: list[bytes]
    tags: list[Tag]
    grant_seconds: float
    refused: Callable[[MemdecayError], None]

    def __call__(self, client: Client) -> Opened:
        """A session with what the daemon has of the tokens, the request's tags, and slots."""
        session = client.open(self.layout, mode="exact")
        pages = len(self.tokens) // self.layout.page_tokens
        found = 0
        if pages:
            found = session.acquire(self.tokens[: pages * self.layout.page_tokens], self.extras)
        for tag in self.tags:
            session.tag(tag.begin, tag.end, tag.region, tag.atomic)
        ordered = found
        if session.ready:  # else its slots are asked for when the pages have come
            ordered = pages + 1
            session.order(ordered - found, self.refused)
            with client.lock:
                client.changed.wait_for(lambda: len(session.pages) >= ordered, self.grant_seconds)
        return Opened(session, found, ordered, client.credentials)


def seal(session: Session, first: int, tokens: list[int], extras: list[bytes]) -> None:
    """A job: these pages are in their slots, computed with nothing missing."""
    session.seal(first, tokens, had_holes=False, extras=extras)
