"""The worker's side: a member of the engine that copies between the buffer and the daemon's slots.

What it is: orders in, bytes moved, a report out. A slab that is not there in time is a failed load
(vLLM recomputes those blocks) or a failed save (that request is saved no further).
Thread: the worker's step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from memdecay import Credentials, Member, MemdecayError
from memdecay.memory import SlabMemory

from memdecay_vllm.blocks import BlockMap
from memdecay_vllm.deadlines import Deadlines
from memdecay_vllm.orders import NO_SLAB, Move, Orders, Report, RequestMoves, Saved

Join = Callable[[Credentials], Member]


class Worker:
    """One rank. `join` makes it a member of the engine; it is called again after a new attach."""

    def __init__(self, blocks: BlockMap, join: Join, deadlines: Deadlines) -> None:
        self.blocks = blocks
        self._join = join
        self._slab_seconds = deadlines.slab_ms / 1000
        self._member: Member | None = None
        self._report = Report()
        self._bad_blocks: set[int] = set()

    def load(self, orders: Orders) -> None:
        """Before the model runs."""
        begin = time.perf_counter()
        for request in orders.loads:
            for done, move in enumerate(request.moves):
                try:
                    slab = self._slab(request, move)
                    self.blocks.load(move.block, slab.reader(move.index))
                    self._report.loaded_blocks += 1
                except MemdecayError:
                    self._bad_blocks.update(left.block for left in request.moves[done:])
                    break
        if orders.loads:
            self._report.load_us += round((time.perf_counter() - begin) * 1e6)

    def save(self, orders: Orders) -> None:
        """After the model ran."""
        begin = time.perf_counter()
        for request in orders.saves:
            saved = self._save(request)
            if saved:
                first = request.moves[0].page
                self._report.saved.append(Saved(request.request, request.session, first, saved))
            if saved < len(request.moves):
                self._report.failed.append(request.request)
        if orders.saves:
            self._report.save_us += round((time.perf_counter() - begin) * 1e6)

    def take_report(self) -> Report | None:
        """What was done since the last one; None: nothing."""
        report, self._report = self._report, Report()
        return report if report != Report() else None

    def take_bad_blocks(self) -> set[int]:
        """Blocks that were to be loaded and were not."""
        bad, self._bad_blocks = self._bad_blocks, set()
        return bad

    def close(self) -> None:
        """Leaves the engine."""
        if self._member is not None:
            self._member.close()
            self._member = None

    def _save(self, request: RequestMoves) -> int:
        for done, move in enumerate(request.moves):
            try:
                slab = self._slab(request, move, writable=True)
            except MemdecayError:
                return done
            window = slab.window(move.index)
            if window is None:
                return done
            self.blocks.save(move.block, window)
        return len(request.moves)

    def _slab(self, request: RequestMoves, move: Move, writable: bool = False) -> SlabMemory:
        if move.slab == NO_SLAB:
            raise MemdecayError("not_found", f"page {move.page}", "it has no slot any more")
        return self._engine(request.credentials).slab(move.slab, self._slab_seconds, writable)

    def _engine(self, credentials: Credentials) -> Member:
        """Slots of an engine that is no more are refused by the daemon, never taken for others."""
        if self._member is None or self._member.credentials != credentials:
            member = self._join(credentials)
            self.close()
            self._member = member
        return self._member
