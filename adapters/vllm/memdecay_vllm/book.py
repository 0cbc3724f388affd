"""The scheduler's side: which pages of which request to load and to save in a step.

What it is: the book of requests between vLLM's calls (scheduler.py translates them) and the link.
A full block is saved at the end of the step that filled it, so what is lost when an engine dies is
the unfilled block alone, and a finished or preempted request has nothing left to save.
Always: nothing here waits longer than a deadline of deadlines.py; when the daemon is gone every
request goes on as if this connector were not there.
Thread: the scheduler's.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from memdecay import Layout, MemdecayError

from memdecay_vllm.deadlines import Deadlines
from memdecay_vllm.link import Link
from memdecay_vllm.orders import Orders, Report
from memdecay_vllm.params import Tag
from memdecay_vllm.record import Opened, Opening, Record, seal


@dataclass(frozen=True)
class Scheduled:
    """A request's part of a step: its blocks, and the tokens computed when the step is over."""

    request: str
    blocks: Sequence[int]
    computed_after: int


class Book:
    """All requests that are not finished."""

    def __init__(
        self,
        layout: Layout,
        link: Link,
        deadlines: Deadlines,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._layout = layout
        self._link = link
        self._deadlines = deadlines
        self._say = say
        self._clock = clock
        self._records: dict[str, Record] = {}

    def arrived(
        self,
        request: str,
        tokens: Sequence[int],
        extras: list[bytes],
        tags: list[Tag],
        may_load: bool,
    ) -> None:
        """A new request; the first few are looked up before the scheduler asks."""
        record = Record(request, tokens, extras, tags, may_load)
        self._records[request] = record
        waiting = sum(1 for other in self._records.values() if not other.sent)
        if waiting <= self._deadlines.early_requests and self._link.usable:
            self._open(record)

    def matched(self, request: str, local_tokens: int) -> int | None:
        """Tokens beyond `local_tokens` that can be loaded now; None: ask again, they are coming."""
        record = self._records.get(request)
        if record is None or not record.may_load:
            return 0
        if not self._is_open(record) or not self._is_awake(record):
            return 0
        if not self._has_come(record):
            return None
        if not self._is_current(record):
            return 0
        size = self._layout.page_tokens
        last = (len(record.tokens) - 1) // size  # the last token is always computed
        usable = min(record.resident(), last) * size
        record.load_from = local_tokens // size
        record.load_pages = max(0, usable - local_tokens) // size
        return record.load_pages * size

    def allocated(self, request: str, external_tokens: int) -> None:
        """vLLM has blocks for what matched() offered, or does not want it (0)."""
        record = self._records.get(request)
        if record is None:
            return
        if external_tokens != record.load_pages * self._layout.page_tokens:
            record.load_pages = 0
        record.restored += record.load_pages * self._layout.page_tokens
        self.counters["restored_tokens"] += record.load_pages * self._layout.page_tokens

    def preempted(self, request: str) -> None:
        """Its blocks are gone; its pages may leave the device until it comes back."""
        record = self._records.get(request)
        if record is None or not self._is_current(record):
            return
        record.load_pages = 0
        if not record.parked and self._take_opened(record, 0):
            record.parked = True
            self._session_job(record, lambda opened: opened.session.park("preempted"))

    def orders(self, scheduled: Sequence[Scheduled]) -> Orders:
        """What the worker does in this step."""
        self._forget_finished()
        orders = Orders()
        room = self._deadlines.save_blocks
        for step in scheduled:
            record = self._records.get(step.request)
            if record is None:
                continue
            if record.load_pages:
                end = record.load_from + record.load_pages
                orders.loads.append(record.moves(record.load_from, end, step.blocks))
                record.load_pages = 0
            end = self._save_end(record, step, room)
            if end > record.sent:
                orders.saves.append(record.moves(record.sent, end, step.blocks))
                room -= end - record.sent
                record.sent = end
                record.in_flight += 1
        return orders

    def reported(self, report: Report) -> None:
        """What the worker did: saved pages are sealed, the rest of a failed request is not."""
        self.counters["loaded_blocks"] += report.loaded_blocks
        self.counters["load_us"] += report.load_us
        self.counters["save_us"] += report.save_us
        for name in report.failed:
            if name in self._records:
                self._give_up(self._records[name], "save_failed")
        for saved in report.saved:
            record = self._records.get(saved.request)
            if record is None or record.opened is None:
                continue
            if record.opened.session.id != saved.session:
                continue
            record.in_flight = max(0, record.in_flight - 1)
            self._seal(record, saved.first, saved.pages)
            if record.finished:
                self._close(record)

    def finished(self, request: str) -> dict[str, object] | None:
        """It ended; its pages stay. Returns what there is to tell about it."""
        record = self._records.get(request)
        if record is None:
            return None
        record.finished = True
        told: dict[str, object] = {
            "restored_tokens": record.restored,
            "kept_tokens": self._kept(record) * self._layout.page_tokens,
            "approximate_tokens": 0,
        }
        if record.in_flight == 0:
            self._close(record)
        return told

    def _forget_finished(self) -> None:
        """What the last step did not report is not coming."""
        for record in [record for record in self._records.values() if record.finished]:
            self._close(record)

    # ---- one request -----------------------------------------------------------------------

    def _open(self, record: Record) -> None:
        record.opened, record.valid, record.sent, record.ordered = None, 0, 0, 0
        record.in_flight, record.load_pages = 0, 0
        record.parked, record.waking, record.unsaved = False, None, False
        record.put_off_since = None
        record.opening = self._link.submit(
            Opening(
                self._layout,
                list(record.tokens),
                record.extras,
                record.tags,
                self._deadlines.grant_ms / 1000,
                lambda error: self._not_granted(record, error),
            )
        )

    def _is_open(self, record: Record) -> bool:
        """Opens it if need be and waits for the answer, as long as it is worth it."""
        if not self._is_current(record):
            if not self._link.usable:
                self.counters["not_asked"] += 1
                return False
            self._open(record)
        return self._take_opened(record, self._deadlines.answer_ms / 1000)

    def _take_opened(self, record: Record, seconds: float) -> bool:
        if record.opened is not None:
            return True
        if record.opening is None:
            return False
        if not record.opening.done() and (self._link.silent or seconds == 0):
            return False
        try:
            record.opened = record.opening.result(seconds)
        except TimeoutError:
            self.counters["answers_late"] += 1
            self._link.late()
            return False
        except MemdecayError as error:
            record.opening = None
            self._refused(error)
            return False
        record.valid = record.sent = record.opened.found
        record.ordered = record.opened.ordered
        self.counters["found_pages"] += record.opened.found
        record.came, record.came_at = record.resident(), self._clock()
        return True

    def _is_current(self, record: Record) -> bool:
        """Whether the record's session is of the present attachment."""
        if record.opened is None:
            return record.opening is not None
        client = self._link.client
        return client is not None and record.opened.credentials == client.credentials

    def _is_awake(self, record: Record) -> bool:
        """Asks for the pages of a preempted request; False: they are not to be had now."""
        if record.parked and record.waking is None:
            assert record.opened is not None
            session = record.opened.session
            session.ready = False
            record.waking = self._link.submit(lambda _client: session.ask_back())
            record.came, record.came_at, record.put_off_since = 0, self._clock(), None
        if record.waking is None:
            return True
        try:
            record.waking.result(0 if self._link.silent else self._deadlines.answer_ms / 1000)
        except (TimeoutError, MemdecayError):
            return False
        record.parked, record.waking = False, None
        return True

    def _has_come(self, record: Record) -> bool:
        """Whether what is on its way has come, or has to be done without."""
        assert record.opened is not None
        if record.opened.session.ready or not self._is_current(record) or self._link.silent:
            return True
        now = self._clock()
        resident = record.resident()
        if resident > record.came:
            record.came, record.came_at = resident, now
        if record.put_off_since is None:
            record.put_off_since = record.came_at = now
        waited = now - record.put_off_since
        paused = now - record.came_at
        if waited * 1000 > self._deadlines.restore_ms or (
            paused * 1000 > self._deadlines.restore_pause_ms
        ):
            self.counters["restores_late"] += 1
            return True
        return False

    def _save_end(self, record: Record, step: Scheduled, room: int) -> int:
        """The pages from record.sent up to here can be saved in this step."""
        if not self._is_current(record):
            if self._link.usable:  # the daemon came, or came back, while it runs
                self._open(record)
            return 0
        if record.unsaved or record.parked or not self._take_opened(record, 0):
            return 0
        assert record.opened is not None
        if not record.opened.session.ready or not self._link.usable:
            return 0
        whole = min(step.computed_after // self._layout.page_tokens, len(step.blocks))
        self._order(record, whole + 1 - record.ordered)
        return min(whole, record.reserved(), record.sent + room)

    def _order(self, record: Record, pages: int) -> None:
        """Asks for slots ahead of need, without waiting."""
        if pages < 1:
            return
        record.ordered += pages
        self._session_job(
            record,
            lambda opened: opened.session.order(
                pages, lambda error: self._not_granted(record, error)
            ),
        )

    def _not_granted(self, record: Record, error: MemdecayError) -> None:
        """On the stream's thread. A session that was parked meanwhile asks again later."""
        if error.code == "busy":
            record.ordered = record.reserved()
        else:
            self._give_up(record, f"no_pages_{error.code}")

    def _seal(self, record: Record, first: int, pages: int) -> None:
        size = self._layout.page_tokens
        if first == record.valid and not record.unsaved:
            record.valid = first + pages
        tokens = list(record.tokens[first * size : (first + pages) * size])
        self.counters["saved_blocks"] += pages
        self._session_job(record, lambda opened: seal(opened.session, first, tokens, record.extras))

    def _close(self, record: Record) -> None:
        self._records.pop(record.request, None)
        if record.opened is None and record.opening is not None:
            # Its session may be opened yet: then it is closed right after.
            opening = record.opening
            self._link.submit(lambda _client: opening.result(0).session.close())
        elif self._is_current(record):
            self._session_job(record, lambda opened: opened.session.close())

    def _refused(self, error: MemdecayError) -> None:
        """Counted by kind, and said once a kind."""
        kind = f"refused_{error.code}"
        self.counters[kind] += 1
        if self.counters[kind] == 1 and error.code != "unavailable":
            self._say(f"memdecayd refused a request: {error} (more of this kind are only counted)")

    def _kept(self, record: Record) -> int:
        return record.valid if record.unsaved else record.sent

    def _give_up(self, record: Record, why: str) -> None:
        """No more is saved for it, and nothing is loaded: its later pages may hold anything."""
        if not record.unsaved:
            record.unsaved, record.valid = True, 0
            self.counters[f"unsaved_{why}"] += 1

    def _session_job(self, record: Record, run: Callable[[Opened], object]) -> None:
        """A job whose failure makes the request go on unsaved."""
        opened = record.opened
        assert opened is not None

        def settled(future: Future[object]) -> None:
            error = future.exception()
            if error is not None:
                code = error.code if isinstance(error, MemdecayError) else type(error).__name__
                self._give_up(record, code)

        self._link.submit(lambda _client: run(opened)).add_done_callback(settled)
