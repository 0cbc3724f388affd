"""A toy engine without vLLM: a buffer of blocks, the book, the worker, and a real daemon.

What it is: what the tests of this package's own logic need. It "computes" a block's bytes from the
tokens up to its end, so that a wrong or missing block is seen.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from memdecay import Client, Group, Layout, Member, Rope
from memdecay_vllm.blocks import BlockMap, LayerView
from memdecay_vllm.book import Book, Scheduled
from memdecay_vllm.deadlines import Deadlines
from memdecay_vllm.link import Link
from memdecay_vllm.worker import Worker

DAEMON = os.environ.get("MEMDECAYD", "")
TOKENS, LAYERS, LAYER_BYTES, BLOCKS = 16, 3, 2048, 64
LAYOUT = Layout(
    model="toy",
    weights_fingerprint="sha256:1",
    revision="1",
    adapter="none",
    tokenizer_fingerprint="bytes",
    dtype="f32",
    quantization="none",
    scales="none",
    groups=(Group(LAYERS, 1, 16, TOKENS, "toy", 0, LAYERS * LAYER_BYTES),),
    rope=Rope(),
    tensor_parallel=1,
    producer="toy",
)


# The machine that runs tests may be busy: what is not about deadlines has long ones.
PATIENT = Deadlines(
    answer_ms=20_000,
    grant_ms=10_000,
    restore_ms=20_000,
    restore_pause_ms=20_000,
    slab_ms=10_000,
)


class Daemon:
    """A real memdecayd in a folder of its own."""

    def __init__(self, folder: Path, device_pages: int = 32) -> None:
        self.folder = folder
        self._settings = (
            f"page_tokens={TOKENS}",
            f"device.pages={device_pages}",
            "host.pages=64",
            "metrics.listen=none",
            "log.level=warning",
            f"socket.directory={folder}",
        )
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        path = self.folder / "ready"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(path))
            ready.settimeout(60)
            command = [DAEMON]
            for setting in self._settings:
                command += ["--set", setting]
            process = subprocess.Popen(command, env={"NOTIFY_SOCKET": str(path)})
            assert ready.recv(64) == b"READY=1"
        return process

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = self._start()


def computed(tokens: list[int], block: int) -> bytes:
    """What the toy model writes into a request's block."""
    seed = hashlib.sha256(str(tokens[: (block + 1) * TOKENS]).encode()).digest()
    return seed * (LAYERS * LAYER_BYTES // len(seed))


@dataclass
class Request:
    """A request that runs: its blocks, and how many tokens are computed."""

    name: str
    tokens: list[int]
    blocks: list[int]
    done: int = 0
    loaded: int = 0


@dataclass
class ToyEngine:
    """One engine; every call is what vLLM's scheduler and worker would do."""

    folder: str | None
    deadlines: Deadlines = PATIENT
    layout: Layout = LAYOUT
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = (ctypes.c_char * (LAYERS * LAYER_BYTES * BLOCKS))()
        base = ctypes.addressof(self.memory)
        views = [
            LayerView(
                f"layer{n}", base + n * LAYER_BYTES * BLOCKS, LAYER_BYTES, LAYER_BYTES, BLOCKS
            )
            for n in range(LAYERS)
        ]
        self.blocks = BlockMap(views)
        self.link = Link(self._connect, self.deadlines, self.said.append)
        self.book = Book(self.layout, self.link, self.deadlines, self.said.append)
        self.worker = Worker(self.blocks, self._join, self.deadlines)
        self.running: dict[str, Request] = {}
        self._free = list(range(1, BLOCKS))
        self.link.start()

    def _connect(self) -> Client:
        return Client("toy", self.folder, 300.0, TOKENS, LAYOUT.page_bytes)

    def _join(self, credentials) -> Member:
        return Member(credentials, self.folder, 60.0)

    def add(self, name: str, tokens: list[int], extras: tuple[bytes, ...] = (), tags=()) -> Request:
        need = len(tokens) // TOKENS + 4
        blocks, self._free = self._free[:need], self._free[need:]
        request = Request(name, list(tokens), blocks)
        self.running[name] = request
        self.book.arrived(name, request.tokens, list(extras), list(tags), may_load=True)
        return request

    def admit(self, request: Request) -> int:
        """Asks until there is an answer, as vLLM's waiting queue does; then it has its blocks."""
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            offered = self.book.matched(request.name, request.done)
            if offered is not None:
                self.book.allocated(request.name, offered)
                request.loaded = offered
                request.done += offered
                return offered
            time.sleep(0.001)
        raise AssertionError("asked again for 60 s")

    def step(self, *parts: tuple[Request, int]) -> None:
        """One step: these requests compute so many tokens."""
        scheduled = [Scheduled(r.name, r.blocks, r.done + tokens) for r, tokens in parts]
        orders = self.book.orders(scheduled)
        self.worker.load(orders)
        for request, tokens in parts:
            before = request.done
            request.done += tokens
            for block in range(before // TOKENS, request.done // TOKENS):
                self.blocks.load(request.blocks[block], memoryview(computed(request.tokens, block)))
        self.worker.save(orders)
        report = self.worker.take_report()
        if report is not None:
            self.book.reported(report)

    def preempt(self, request: Request) -> None:
        self.book.preempted(request.name)
        request.done = 0
        self.scribble(request)

    def finish(self, request: Request):
        del self.running[request.name]
        return self.book.finished(request.name)

    def scribble(self, request: Request) -> None:
        """Somebody else used its blocks."""
        for block in request.blocks:
            self.blocks.load(block, memoryview(b"\xee" * self.blocks.page_bytes))

    def right(self, request: Request, tokens: int) -> bool:
        """Whether its first tokens' whole blocks hold what computing them would have written."""
        page = bytearray(self.blocks.page_bytes)
        for block in range(tokens // TOKENS):
            self.blocks.save(request.blocks[block], memoryview(page))
            if bytes(page) != computed(request.tokens, block):
                return False
        return True

    def settle(self) -> None:
        """Waits until the link has done what it was given."""
        self.link.submit(lambda _client: None).result(60)

    def close(self) -> None:
        self.worker.close()
        self.link.close()
