"""The scheduler's link to the daemon: attached, silent or absent, and never in the way.

What it is: one thread that attaches, attaches again, and runs jobs (functions of a Client) in the
order in which they were submitted. A job may take as long as the daemon takes; who waits for its
result waits with a deadline. A job that is overdue makes the link *silent*: nobody waits for it
any more until the daemon answers, and then everything goes on where it was.
Thread: `submit`, `live` and `silent` from any; jobs on the link's own.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from memdecay import Client, MemdecayError

from memdecay_vllm.deadlines import Deadlines

T = TypeVar("T")
Connect = Callable[[], Client]
_IDLE_S = 0.25  # how often an idle link looks whether the daemon is still there


@dataclass
class _Job:
    run: Callable[[Client], Any]
    future: Future[Any]


class Link:
    """Starts with start(); `connect` attaches or raises MemdecayError."""

    def __init__(self, connect: Connect, deadlines: Deadlines, say: Callable[[str], None]) -> None:
        self._connect = connect
        self._deadlines = deadlines
        self._say = say
        self._said = ""
        self._jobs: queue.Queue[_Job] = queue.Queue(deadlines.queue_jobs)
        self._client: Client | None = None
        self._since: float | None = None  # when the job that runs now began
        self._late = False
        self._closing = threading.Event()
        self._first_try = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="memdecay-link", daemon=True)
        self.attachments = 0  # counts them; sessions of an earlier one are void
        self.dropped = 0  # jobs for which there was no room

    def start(self) -> None:
        """Begins to attach; waits a moment so that the first request finds the daemon."""
        self._thread.start()
        self._first_try.wait(self._deadlines.start_ms / 1000)

    @property
    def client(self) -> Client | None:
        """The attachment, while there is one."""
        client = self._client
        return client if client is not None and client.down is None else None

    @property
    def silent(self) -> bool:
        """An answer is overdue."""
        since = self._since
        if since is None:
            return False
        return self._late or time.monotonic() - since > self._deadlines.answer_ms / 1000

    def late(self) -> None:
        """Somebody waited in vain: nobody else need until the present job has its answer."""
        self._late = True

    @property
    def usable(self) -> bool:
        """Whether it makes sense to ask for anything now."""
        return self.client is not None and not self.silent

    def submit(self, run: Callable[[Client], T]) -> Future[T]:
        """Runs it when its turn comes. The future fails when there is no daemon or no room."""
        future: Future[T] = Future()
        try:
            if self.client is None:
                raise MemdecayError("unavailable", "a job", "no daemon is attached")
            self._jobs.put_nowait(_Job(run, future))
        except queue.Full:
            self.dropped += 1
            future.set_exception(MemdecayError("resource_exhausted", "a job", "too many wait"))
        except MemdecayError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Leaves in good order if the daemon answers at once; else just leaves."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(1.0)

    def _keep(self) -> None:
        pause = self._deadlines.retry_ms / 1000
        while not self._closing.is_set():
            if self._client is None:
                if self._attach():
                    pause = self._deadlines.retry_ms / 1000
                else:
                    self._closing.wait(pause)
                    pause = min(2 * pause, self._deadlines.retry_limit_ms / 1000)
                self._first_try.set()
                continue
            if self._client.down is not None:
                self._detach(self._client.down)
                continue
            try:
                job = self._jobs.get(timeout=_IDLE_S)
            except queue.Empty:
                continue
            self._run(self._client, job)
        if self._client is not None and not self.silent:
            self._client.close()

    def _attach(self) -> bool:
        try:
            client = self._connect()
        except MemdecayError as error:
            self._tell(f"no daemon ({error}); going on without, and trying again")
            return False
        self.attachments += 1
        self._client = client
        self._tell(f"attached as engine {client.credentials.engine}")
        return True

    def _detach(self, why: str) -> None:
        client, self._client = self._client, None
        self._fail_waiting(why)
        if client is not None:
            client.close()
        self._tell(f"the daemon has gone ({why}); going on without, and trying again")

    def _run(self, client: Client, job: _Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        self._late, self._since = False, time.monotonic()
        try:
            job.future.set_result(job.run(client))
        except BaseException as error:  # the job's owner hears everything; the link lives on
            job.future.set_exception(error)
        finally:
            self._since = None

    def _fail_waiting(self, why: str) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            job.future.set_exception(MemdecayError("unavailable", "a job", why))

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._say(text)
