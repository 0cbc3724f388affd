"""Fixtures: a daemon of its own for each test, in a temporary directory, with any free port.

What it is: starting, watching and stopping memdecayd. Nothing here sleeps: waiting is done on what
is waited for, with a deadline.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from memdecay import Client, Group, Layout, Rope

BIN = Path(os.environ["MEMDECAY_BIN"])
DEADLINE_S = 20.0
TOKENS, PAGE = 16, 4096


def layout(**changes: object) -> Layout:
    """A complete layout with pages of 16 tokens and 4 KiB."""
    fields: dict[str, object] = {
        "model": "test",
        "weights_fingerprint": "sha256:0",
        "revision": "1",
        "adapter": "none",
        "tokenizer_fingerprint": "bytes",
        "dtype": "f16",
        "quantization": "none",
        "scales": "none",
        "groups": (Group(1, 1, 64, TOKENS, "token.head.dim", 0, PAGE),),
        "rope": Rope(),
        "tensor_parallel": 1,
        "producer": "test",
    }
    fields.update(changes)
    return Layout(**fields)  # type: ignore[arg-type]


def until(what: Callable[[], object], deadline_s: float = DEADLINE_S) -> object:
    """The first true answer of `what`."""
    end = time.monotonic() + deadline_s
    while True:
        if answer := what():
            return answer
        assert time.monotonic() < end, "it did not happen in time"
        select.select([], [], [], 0.01)


class Daemon:
    """One memdecayd process."""

    def __init__(
        self,
        directory: Path,
        *settings: str,
        program: str = "memdecayd",
        config: Path | None = None,
        **options,
    ):
        self.directory = directory
        self.command = [str(BIN / program)]
        if config is not None:
            self.command += ["--config", str(config)]
        given = {word.split("=")[0] for word in settings}
        defaults = {"device.pages": "16", "host.pages": "16", "metrics.listen": "127.0.0.1:0"}
        for key, value in defaults.items():
            if key not in given:
                self.command += ["--set", f"{key}={value}"]
        for word in (f"socket.directory={directory / 's'}", *settings):
            self.command += ["--set", word]
        self.log_path = directory / f"log{time.monotonic_ns()}"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stderr=log, stdout=log, stdin=subprocess.DEVNULL, **options
            )

    @property
    def sockets(self) -> str:
        return str(self.directory / "s")

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def ready(self) -> Daemon:
        until(lambda: "serving" in self.log() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log()
        return self

    def metrics_address(self) -> str:
        found = re.search(r"metrics=(\S+)", self.log())
        assert found
        return found.group(1)

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, because socket paths have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="md") as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.fixture
def start(directory: Path) -> Iterator[Callable[..., Daemon]]:
    """start(*settings) runs a daemon that serves; all are stopped afterwards."""
    running: list[Daemon] = []

    def begin(*settings: str, **options) -> Daemon:
        daemon = Daemon(directory, *settings, **options)
        running.append(daemon)
        return daemon.ready()

    yield begin
    for daemon in running:
        code = daemon.stop(signal.SIGKILL if daemon.process.poll() is None else 0)
        assert code in (0, -signal.SIGKILL), daemon.log()


@pytest.fixture
def daemon(start: Callable[..., Daemon]) -> Daemon:
    return start()


# Put before code that another user shall run: modules are loaded while they can be read.
BECOME = """
import os, sys, grpc, memdecay, encodings.idna, encodings.ascii
from memdecay.v1 import admin_pb2, admin_pb2_grpc, orchestrator_pb2, orchestrator_pb2_grpc
uid, gid = int(sys.argv[2]), int(sys.argv[3])
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
"""


def as_user(daemon: Daemon, uid: int, gid: int, code: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code as another user; sys.argv[1] is the directory of the sockets."""
    return subprocess.run(
        [sys.executable, "-c", BECOME + code, daemon.sockets, str(uid), str(gid)],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )


def fill(client: Client, session, pages: int, first: int = 0, seed: int = 1) -> list[int]:
    """Writes and seals pages of a session; returns their tokens."""
    tokens = [seed * 100_000 + (first * TOKENS) + i for i in range(pages * TOKENS)]
    for page in session.extend(pages):
        page.write[:8] = (seed * 1000 + page.index).to_bytes(8, "little")
    session.seal(first, tokens, had_holes=False)
    return tokens
