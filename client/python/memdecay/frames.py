"""Frames of the handle socket, with descriptors (proto/README.md, "Handle socket").

What it is: encoding, decoding, and one socket that says Hello and receives the rest.
Thread: one.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
from dataclasses import dataclass, field
from typing import ClassVar

from memdecay.errors import MemdecayError, code_name

MAGIC = 0x3148444D
MAJOR, MINOR = 1, 0
MAX_PAYLOAD = 4096
_HEADER = struct.Struct("<IHHI")


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<H", len(data)) + data


class _Reader:
    def __init__(self, payload: bytes) -> None:
        self.rest = payload

    def take(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize("<" + form)
        values = struct.unpack("<" + form, self.rest[:size])
        self.rest = self.rest[size:]
        return values

    def data(self, count: int) -> bytes:
        value, self.rest = self.rest[:count], self.rest[count:]
        return value

    def text(self) -> str:
        (length,) = self.take("H")
        return self.data(length).decode()


@dataclass
class Hello:
    """The first frame; engine and epoch 0 for a new engine."""

    type: ClassVar[int] = 1
    engine_name: str
    role: int = 1
    engine: int = 0
    epoch: int = 0
    token: bytes = bytes(16)
    page_tokens: int = 0
    page_bytes: int = 0
    pages: int = 0

    def payload(self) -> bytes:
        """The frame's payload."""
        return (
            struct.pack("<HHB", MAJOR, MINOR, self.role)
            + _text(self.engine_name)
            + struct.pack("<QI", self.engine, self.epoch)
            + self.token
            + struct.pack("<IQI", self.page_tokens, self.page_bytes, self.pages)
        )


@dataclass
class Welcome:
    """Who this engine is, and where the control socket is."""

    type: ClassVar[int] = 2
    engine: int
    epoch: int
    token: bytes
    member: int
    control_path: str


@dataclass
class Slab:
    """A slab's descriptor: slot i lies at i * page_bytes."""

    type: ClassVar[int] = 4
    slab: int
    size: int
    page_bytes: int
    slots: int
    writable: bool
    fd: int


@dataclass
class SlabGone:
    """Unmap it."""

    type: ClassVar[int] = 5
    slab: int


@dataclass
class Timeline:
    """The member's timeline page: 512 words of 64 bits."""

    type: ClassVar[int] = 6
    member: int
    fd: int


@dataclass
class Shadow:
    """The shadow table, read-only."""

    type: ClassVar[int] = 7
    size: int
    fd: int


@dataclass
class Goodbye:
    """This end leaves in good order."""

    type: ClassVar[int] = 8


Frame = Welcome | Slab | SlabGone | Timeline | Shadow | Goodbye
_WITH_FD = (Slab.type, Timeline.type, Shadow.type)


def encode(kind: int, payload: bytes) -> bytes:
    """A whole frame."""
    return _HEADER.pack(MAGIC, kind, 0, len(payload)) + payload


def decode(kind: int, payload: bytes, fds: list[int]) -> Frame | None:
    """A received frame, which takes its descriptor from fds; None for one this client ignores."""
    reader = _Reader(payload)
    if kind == 3:
        (code,) = reader.take("B")
        raise MemdecayError(code_name(code), "attach", reader.text())
    fd = fds.pop(0) if kind in _WITH_FD else -1
    if kind == Welcome.type:
        engine, epoch = reader.take("QI")
        token = reader.data(16)
        member, _major, _minor, _death = reader.take("IHHB")
        return Welcome(engine, epoch, token, member, reader.text())
    if kind == Slab.type:
        slab, size, page_bytes, slots, access = reader.take("IQQIB")
        return Slab(slab, size, page_bytes, slots, access == 1, fd)
    if kind == SlabGone.type:
        return SlabGone(*reader.take("I"))
    if kind == Timeline.type:
        return Timeline(reader.take("I")[0], fd)
    if kind == Shadow.type:
        return Shadow(reader.take("Q")[0], fd)
    return Goodbye() if kind == Goodbye.type else None


@dataclass
class HandleSocket:
    """The connection whose end tells the daemon that this process is gone: keep it open."""

    socket: socket.socket
    welcome: Welcome
    _buffer: bytes = b""
    _fds: list[int] = field(default_factory=list)

    @classmethod
    def attach(cls, path: str, hello: Hello, timeout: float) -> HandleSocket:
        """Connects, says Hello, waits for Welcome. MemdecayError: refused or nobody there."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        handles = cls(connection, Welcome(0, 0, b"", 0, ""))
        try:
            connection.connect(path)
            connection.sendall(encode(Hello.type, hello.payload()))
            frame = handles.next()
        except OSError as error:
            connection.close()
            raise MemdecayError("unavailable", f"attach at {path}", str(error)) from error
        if not isinstance(frame, Welcome):
            raise MemdecayError("internal", f"attach at {path}", f"the first frame was {frame}")
        handles.welcome = frame
        return handles

    def next(self) -> Frame | None:
        """The next frame; OSError at the end of the connection or after the timeout."""
        while len(self._buffer) < _HEADER.size or len(self._buffer) < self._wanted():
            self._receive()
        _magic, kind, _zero, length = _HEADER.unpack_from(self._buffer)
        payload = self._buffer[_HEADER.size : _HEADER.size + length]
        self._buffer = self._buffer[_HEADER.size + length :]
        return decode(kind, payload, self._fds)

    def _wanted(self) -> int:
        magic, _kind, _zero, length = _HEADER.unpack_from(self._buffer)
        if magic != MAGIC or length > MAX_PAYLOAD:
            raise OSError("these bytes are no frame")
        return _HEADER.size + int(length)

    def _receive(self) -> None:
        room = socket.CMSG_SPACE(128 * array.array("i").itemsize)
        data, ancillary, _flags, _address = self.socket.recvmsg(
            65536, room, socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, blob in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(blob[: len(blob) - len(blob) % fds.itemsize])
                self._fds.extend(fds)
        if not data:
            raise OSError("the daemon closed the connection")
        self._buffer += data

    def close(self) -> None:
        """Says Goodbye and closes."""
        with contextlib.suppress(OSError):
            self.socket.sendall(encode(Goodbye.type, b""))
        self.socket.close()
        for fd in self._fds:
            os.close(fd)
