"""Frames of the handle socket in Python: bytes as proto/README.md says.

What it is: encodings written out by hand, and a peer that speaks over a socket pair.
"""

import os
import socket
import struct

import pytest
from memdecay import frames
from memdecay.errors import MemdecayError


def _pair() -> tuple[frames.HandleSocket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return frames.HandleSocket(ours, frames.Welcome(0, 0, b"", 0, "")), theirs


def test_hello_is_laid_out_as_documented() -> None:
    payload = frames.Hello("ab", role=2, page_tokens=16, page_bytes=65536, pages=3).payload()
    assert payload == (
        struct.pack("<HHBH", 1, 0, 2, 2)
        + b"ab"
        + struct.pack("<QI", 0, 0)
        + bytes(16)
        + struct.pack("<IQI", 16, 65536, 3)
    )
    assert frames.encode(1, payload)[:12] == b"MDH1" + struct.pack("<HHI", 1, 0, len(payload))


def test_frames_may_arrive_in_pieces_with_their_descriptors() -> None:
    handles, daemon = _pair()
    payload = struct.pack("<IQQIB", 7, 8192, 4096, 2, 1)
    data = frames.encode(frames.Slab.type, payload)
    read_end, write_end = os.pipe()
    socket.send_fds(daemon, [data[:5]], [read_end])
    daemon.sendall(data[5:])
    slab = handles.next()
    assert isinstance(slab, frames.Slab)
    assert (slab.slab, slab.page_bytes, slab.slots, slab.writable) == (7, 4096, 2, True)
    os.write(write_end, b"x")
    assert os.read(slab.fd, 1) == b"x"


def test_refusal_is_an_error_with_the_daemons_words() -> None:
    handles, daemon = _pair()
    text = b"another major version"
    daemon.sendall(frames.encode(3, struct.pack("<BH", 16, len(text)) + text))
    with pytest.raises(MemdecayError, match="another major version") as caught:
        handles.next()
    assert caught.value.code == "version_mismatch"


def test_bytes_that_are_no_frame_and_an_end_are_errors() -> None:
    handles, daemon = _pair()
    daemon.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(OSError):
        handles.next()
    handles, daemon = _pair()
    daemon.close()
    with pytest.raises(OSError):
        handles.next()
