"""The engine's bidirectional stream: numbered messages up, replies and notices down.

What it is: a queue that gRPC reads from, and a thread that reads what comes back.
Thread: send and call from any; replies wake the callers, notices go to one function on the reading
thread. Not here: reconnecting (a restarted engine resumes its sessions instead).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import grpc

from memdecay.errors import MemdecayError
from memdecay.frames import Welcome
from memdecay.v1 import common_pb2, memory_pb2, memory_pb2_grpc

Notice = Callable[[memory_pb2.StreamResponse], None]
Then = Callable[[memory_pb2.Reply], object]
Refused = Callable[[MemdecayError], object]


class EngineStream:
    """One stream of one engine."""

    def __init__(self, welcome: Welcome, on_notice: Notice, timeout: float) -> None:
        self._epoch = welcome.epoch
        self._timeout = timeout
        self._on_notice = on_notice
        self.metadata = (
            ("memdecay-engine", str(welcome.engine)),
            ("memdecay-token-bin", welcome.token),
        )
        self._channel = grpc.insecure_channel(
            f"unix:{welcome.control_path}",
            options=[("grpc.max_receive_message_length", 64 << 20)],
        )
        self._stub = memory_pb2_grpc.MemoryStub(self._channel)  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._seq = 0
        self._waiting: set[int] = set()
        self._replies: dict[int, memory_pb2.Reply] = {}
        self._then: dict[int, Then] = {}
        self._refused: dict[int, Refused] = {}
        self._down: str | None = None
        self._outgoing: queue.SimpleQueue[memory_pb2.StreamRequest | None] = queue.SimpleQueue()
        self._incoming = self._stub.Stream(self._requests(), metadata=self.metadata)
        self._reader = threading.Thread(target=self._read, name="memdecay", daemon=True)
        self._reader.start()

    def tell(self, message: memory_pb2.StreamRequest) -> int:
        """Sends without waiting for the reply; returns its number."""
        with self._lock:
            self._seq += 1
            message.seq = self._seq
            message.epoch = self._epoch
            self._outgoing.put(message)
            return self._seq

    @property
    def down(self) -> str | None:
        """Why the stream has ended; None while it lives."""
        return self._down

    def ask(self, message: memory_pb2.StreamRequest, then: Then, refused: Refused) -> None:
        """Sends; later one of the two is called, on the reading thread."""
        with self._lock:
            self._seq += 1
            message.seq = self._seq
            message.epoch = self._epoch
            self._then[message.seq], self._refused[message.seq] = then, refused
            self._outgoing.put(message)
        if self._down is not None:
            self._refuse_all(self._down)

    def call(
        self,
        message: memory_pb2.StreamRequest,
        timeout: float | None = None,
        then: Then | None = None,
    ) -> memory_pb2.Reply:
        """Sends and waits. MemdecayError: what the daemon refused, deadline, unavailable.

        `then` sees a reply without error on the reading thread, before any notice that follows it;
        also one that comes after the deadline.
        """
        with self._lock:
            self._seq += 1
            seq = message.seq = self._seq
            message.epoch = self._epoch
            self._waiting.add(seq)
            if then is not None:
                self._then[seq] = then
            self._outgoing.put(message)
            self._changed.wait_for(
                lambda: seq in self._replies or self._down is not None, timeout or self._timeout
            )
            self._waiting.discard(seq)
            reply = self._replies.pop(seq, None)
            down = self._down
        if reply is None:
            code = "deadline" if down is None else "unavailable"
            raise MemdecayError(
                code, "a call", down or "no answer in time", "see that memdecayd runs"
            )
        if reply.HasField("error"):
            raise MemdecayError.of(reply.error)
        return reply

    def lookup(self, request: memory_pb2.LookupRequest) -> memory_pb2.LookupResponse:
        """The one unary call; it changes nothing."""
        try:
            response: memory_pb2.LookupResponse = self._stub.Lookup(
                request, metadata=self.metadata, timeout=self._timeout
            )
            return response
        except grpc.RpcError as error:
            raise _unary_error(error) from error

    def close(self) -> None:
        """Ends the stream; replies that are on their way are lost."""
        self._outgoing.put(None)
        self._reader.join(self._timeout)
        self._channel.close()

    def _requests(self) -> Iterator[memory_pb2.StreamRequest]:
        while (message := self._outgoing.get()) is not None:
            yield message

    def _read(self) -> None:
        why = "the daemon ended the stream"
        try:
            for message in self._incoming:
                if message.WhichOneof("body") == "reply":
                    self._answer(message.reply)
                    with self._lock:
                        if message.reply.re in self._waiting:
                            self._replies[message.reply.re] = message.reply
                        self._changed.notify_all()
                else:
                    self._on_notice(message)
        except grpc.RpcError as error:
            why = str(error.details() if hasattr(error, "details") else error)
        with self._lock:
            self._down = why
            self._changed.notify_all()
        self._refuse_all(why)

    def _answer(self, reply: memory_pb2.Reply) -> None:
        with self._lock:
            then = self._then.pop(reply.re, None)
            refused = self._refused.pop(reply.re, None)
        if not reply.HasField("error"):
            if then is not None:
                then(reply)
        elif refused is not None:
            refused(MemdecayError.of(reply.error))

    def _refuse_all(self, why: str) -> None:
        with self._lock:
            waiting = list(self._refused.values())
            self._refused.clear()
            self._then.clear()
        for refused in waiting:
            refused(MemdecayError("unavailable", "a request", why, "see that memdecayd runs"))


def _unary_error(error: grpc.RpcError) -> MemdecayError:
    for key, value in (
        (error.trailing_metadata() or ()) if hasattr(error, "trailing_metadata") else ()
    ):
        if key == "grpc-status-details-bin":
            detail = common_pb2.ErrorDetail()
            detail.ParseFromString(value)
            return MemdecayError.of(detail)
    return MemdecayError("unavailable", "a call", str(error))
