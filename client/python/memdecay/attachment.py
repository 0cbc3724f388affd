"""One process's connection to the handle socket: who it is, and the slabs it may map.

What it is: what a Client and a Member have in common. The connection stays open as long as the
process lives; a thread receives descriptors as they come.
Thread: the receiving thread writes the tables under `lock`; `changed` wakes who waits for them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memdecay.errors import MemdecayError
from memdecay.frames import HandleSocket, Hello, Slab, SlabGone, Timeline, Welcome
from memdecay.memory import SlabMemory, TimelinePage

SCHEDULER, WORKER = 1, 2  # Hello.role


@dataclass(frozen=True)
class Credentials:
    """Lets another process join an engine, and a process that lost its sockets come back."""

    engine: int
    epoch: int
    token: bytes


def socket_path(directory: str | None) -> str:
    """`directory`, else the user's runtime directory, else the system's."""
    if directory is None:
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        own = Path(runtime) / "memdecay"
        directory = str(own) if runtime and (own / "handles.sock").exists() else "/run/memdecay"
    return str(Path(directory) / "handles.sock")


class Attachment:
    """Attaches; then `slabs` and `timeline` follow what the daemon sends."""

    def __init__(self, directory: str | None, hello: Hello, timeout: float) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.slabs: dict[int, SlabMemory] = {}
        self.timeline: TimelinePage | None = None
        self.gone = False
        self._on_slab: Callable[[], None] | None = None
        self.handles = HandleSocket.attach(socket_path(directory), hello, timeout)
        self.handles.socket.settimeout(None)
        self._receiver = threading.Thread(target=self._receive, name="memdecay-fds", daemon=True)
        self._receiver.start()

    @property
    def welcome(self) -> Welcome:
        """What the daemon answered to Hello."""
        return self.handles.welcome

    @property
    def credentials(self) -> Credentials:
        """What a further member of this engine says in its Hello."""
        return Credentials(self.welcome.engine, self.welcome.epoch, self.welcome.token)

    def watch(self, on_slab: Callable[[], None]) -> None:
        """`on_slab` is called under the lock after each slab that came."""
        with self.lock:
            self._on_slab = on_slab

    def slab(self, number: int, timeout: float, writable: bool = False) -> SlabMemory:
        """A slab, which may arrive, or become writable, a moment after the message that says so."""

        def there() -> bool:
            slab = self.slabs.get(number)
            return slab is not None and (slab.writable or not writable)

        with self.lock:
            if not self.changed.wait_for(lambda: there() or self.gone, timeout):
                raise MemdecayError("deadline", f"slab {number}", "its descriptor has not arrived")
            if not there():
                raise MemdecayError("unavailable", f"slab {number}", "the daemon has gone")
            return self.slabs[number]

    def close(self) -> None:
        """An orderly goodbye."""
        self.handles.close()

    def _receive(self) -> None:
        while True:
            try:
                frame = self.handles.next()
            except (OSError, MemdecayError):
                break
            with self.lock:
                if isinstance(frame, Slab):
                    if frame.slab in self.slabs:
                        self.slabs[frame.slab].allow(frame)
                    else:
                        self.slabs[frame.slab] = SlabMemory(frame)
                    if self._on_slab is not None:
                        self._on_slab()
                elif isinstance(frame, SlabGone):
                    self.slabs.pop(frame.slab, None)
                elif isinstance(frame, Timeline):
                    self.timeline = TimelinePage(frame.fd)
                self.changed.notify_all()
        with self.lock:
            self.gone = True
            self.changed.notify_all()


class Member:
    """A further process of an engine (a worker): its slabs, and no stream."""

    def __init__(self, credentials: Credentials, directory: str | None, timeout: float = 5.0):
        self.credentials = credentials
        hello = Hello(
            "",
            role=WORKER,
            engine=credentials.engine,
            epoch=credentials.epoch,
            token=credentials.token,
        )
        self._attachment = Attachment(directory, hello, timeout)

    def slab(self, number: int, timeout: float, writable: bool = False) -> SlabMemory:
        """As Attachment.slab."""
        return self._attachment.slab(number, timeout, writable)

    def close(self) -> None:
        """An orderly goodbye; mappings that are in use stay."""
        self._attachment.close()
