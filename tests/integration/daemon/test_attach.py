"""Attaching, and everything a peer can do wrong on the handle socket and with its token."""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from conftest import TOKENS, Daemon, as_user, fill, layout, until
from memdecay import Client, MemdecayError
from memdecay.frames import HandleSocket, Hello, Slab, encode
from memdecay.v1 import common_pb2, memory_pb2, memory_pb2_grpc


def raw(daemon: Daemon) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connection.connect(daemon.sockets + "/handles.sock")
    return connection


def read_frame(connection: socket.socket) -> tuple[int, bytes]:
    header = b""
    while len(header) < 12:
        got = connection.recv(12 - len(header))
        if not got:
            raise EOFError
        header += got
    _magic, kind, _zero, length = struct.unpack("<IHHI", header)
    payload = b""
    while len(payload) < length:
        payload += connection.recv(length - len(payload))
    return kind, payload


def refusal(connection: socket.socket) -> tuple[int, str]:
    kind, payload = read_frame(connection)
    assert kind == 3
    return payload[0], payload[3:].decode()


def closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def still_serves(daemon: Daemon) -> None:
    with Client("other", daemon.sockets) as client:
        client.open(layout()).close(forget=True)


def hello_bytes(major: int = 1, minor: int = 0, **fields: object) -> bytes:
    payload = bytearray(Hello("raw", **fields).payload())  # type: ignore[arg-type]
    payload[0:4] = struct.pack("<HH", major, minor)
    return encode(1, bytes(payload))


def test_pages_go_up_and_are_found_again(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout(), name="s")
        tokens = fill(client, session, 3)
        found = client.lookup(layout(), tokens + [1] * TOKENS)
        assert (found.pages, found.first_missing, found.device_pages) == (3, 3, 3)
        assert client.lookup(layout(model="other"), tokens).pages == 0
        page = session.begin_step()[2]
        assert bytes(page.read[:8]) == (1002).to_bytes(8, "little")
        session.end_step(1, 3 * TOKENS)


def test_writer_gets_writable_memory_and_others_cannot_write_it(daemon: Daemon) -> None:
    handles = HandleSocket.attach(daemon.sockets + "/handles.sock", Hello("w"), 10)
    first = Client("first", daemon.sockets)
    session = first.open(layout(), name="s")
    tokens = fill(first, session, 1)
    second = Client("second", daemon.sockets)
    reader = second.open(layout(), name="r")
    message = memory_pb2.StreamRequest(session=reader.id)
    message.acquire.layout.CopyFrom(layout().message())
    message.acquire.tokens.extend(tokens)
    reply = second.stream.call(message)
    assert reply.acquire.pages == 1
    slot, shared = session.pages[0].slot, reply.acquire.views[0].slot
    assert slot and (shared.slab, shared.index) == (slot.slab, slot.index)
    memory = second.slab(shared.slab)
    assert bytes(memory.reader(shared.index)[:8]) == (1000).to_bytes(8, "little")
    with pytest.raises((TypeError, OSError, MemdecayError)):
        memory.writer(shared.index)[0] = 1
    handles.close()
    first.close()
    second.close()


@pytest.mark.parametrize("minor", [0, 1])
def test_one_minor_version_apart_works(daemon: Daemon, minor: int) -> None:
    with raw(daemon) as connection:
        connection.sendall(hello_bytes(1, minor))
        assert read_frame(connection)[0] == 2


def test_another_major_version_is_refused_in_words(daemon: Daemon) -> None:
    with raw(daemon) as connection:
        connection.sendall(hello_bytes(2, 0))
        code, text = refusal(connection)
        assert code == common_pb2.ERROR_CODE_VERSION_MISMATCH
        assert "2.0" in text or "2" in text
        assert closed(connection)


def test_another_page_size_is_refused(daemon: Daemon) -> None:
    with raw(daemon) as connection:
        connection.sendall(hello_bytes(page_tokens=32))
        assert refusal(connection)[0] == common_pb2.ERROR_CODE_LAYOUT_REJECTED


def test_hello_said_twice_is_refused_and_the_member_stays(daemon: Daemon) -> None:
    with raw(daemon) as connection:
        connection.sendall(hello_bytes())
        while read_frame(connection)[0] != 7:
            pass
        connection.sendall(hello_bytes())
        assert refusal(connection)[0] == common_pb2.ERROR_CODE_INVALID_ARGUMENT
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)


@pytest.mark.parametrize("seed", range(20))
def test_garbage_is_refused_and_others_are_served(daemon: Daemon, seed: int) -> None:
    chance = random.Random(seed)
    with raw(daemon) as connection:
        try:
            connection.sendall(chance.randbytes(chance.randint(12, 20000)))
            assert refusal(connection)[0] == common_pb2.ERROR_CODE_INVALID_ARGUMENT
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert closed(connection)
    still_serves(daemon)


def test_frame_with_bad_content_is_refused_and_the_next_one_counts(daemon: Daemon) -> None:
    with raw(daemon) as connection:
        connection.sendall(encode(1, b"too short") + hello_bytes())
        assert refusal(connection)[0] == common_pb2.ERROR_CODE_INVALID_ARGUMENT
        assert read_frame(connection)[0] == 2


def test_truncated_frame_is_counted(daemon: Daemon) -> None:
    with raw(daemon) as connection:
        connection.sendall(hello_bytes()[:20])
    until(lambda: 'errors_total{code="invalid_argument"}' in scrape(daemon))
    still_serves(daemon)


def scrape(daemon: Daemon) -> str:
    import urllib.request

    with urllib.request.urlopen(f"http://{daemon.metrics_address()}/metrics", timeout=10) as page:
        return page.read().decode()


def test_descriptors_that_no_frame_wants_end_the_connection(daemon: Daemon) -> None:
    before = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    with raw(daemon) as connection, open("/dev/null") as null:
        try:
            for _ in range(3):
                socket.send_fds(connection, [b"x" * 12], [null.fileno()] * 200)
        except OSError:
            pass
        until(lambda: closed(connection) if readable(connection) else False)
    still_serves(daemon)
    until(lambda: len(os.listdir(f"/proc/{daemon.process.pid}/fd")) <= before + 4)


def readable(connection: socket.socket) -> bool:
    import select

    return bool(select.select([connection], [], [], 0)[0])


def test_peer_that_never_says_hello_is_cut(start: Callable[..., Daemon]) -> None:
    daemon = start("limits.hello_ms=200")
    with raw(daemon) as connection:
        assert closed(connection)


def test_token_is_checked(daemon: Daemon) -> None:
    client = Client("one", daemon.sockets)
    welcome = client.handles.welcome
    channel = grpc.insecure_channel(f"unix:{welcome.control_path}")
    stub = memory_pb2_grpc.MemoryStub(channel)
    request = memory_pb2.LookupRequest(layout=layout().message())
    for metadata in (
        (),
        (("memdecay-engine", str(welcome.engine)),),
        (("memdecay-engine", str(welcome.engine)), ("memdecay-token-bin", bytes(16))),
        (("memdecay-engine", "x"), ("memdecay-token-bin", welcome.token)),
        (("memdecay-engine", str(welcome.engine + 1)), ("memdecay-token-bin", welcome.token)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            stub.Lookup(request, metadata=metadata, timeout=10)
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.RpcError):
            list(stub.Stream(iter([]), metadata=metadata, timeout=10))
    channel.close()
    client.close()


def test_second_member_gets_the_same_slabs_and_wrong_tokens_do_not(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout()), 2)
        welcome = client.handles.welcome
        path = daemon.sockets + "/handles.sock"
        who = {"engine": welcome.engine, "epoch": welcome.epoch, "role": 2}
        member = HandleSocket.attach(path, Hello("m", token=welcome.token, **who), 10)
        assert member.welcome.engine == welcome.engine
        assert member.welcome.member != welcome.member
        slabs = set()
        while len(slabs) < len(client.slabs):
            frame = member.next()
            if isinstance(frame, Slab):
                slabs.add(frame.slab)
        assert slabs == set(client.slabs)
        with pytest.raises(MemdecayError) as caught:
            HandleSocket.attach(path, Hello("m", token=bytes(16), **who), 10)
        assert caught.value.code == "permission"
        who["epoch"] += 1
        with pytest.raises(MemdecayError) as caught:
            HandleSocket.attach(path, Hello("m", token=welcome.token, **who), 10)
        assert caught.value.code == "stale_epoch"
        member.close()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dtype": "auto"}, "dtype"),
        ({"model": ""}, "model"),
        ({"revision": "auto"}, "revision"),
    ],
)
def test_unresolved_layout_is_rejected_by_field(
    daemon: Daemon, change: dict[str, str], field: str
) -> None:
    with Client("one", daemon.sockets) as client:
        with pytest.raises(MemdecayError) as caught:
            client.open(layout(**change))
        assert caught.value.code == "layout_rejected"
        assert field in caught.value.asked


def raw_message(session: int, epoch: int, seq: int) -> memory_pb2.StreamRequest:
    message = memory_pb2.StreamRequest(session=session, epoch=epoch, seq=seq)
    message.extend.pages = 1
    return message


def test_repeated_message_is_answered_again_and_applied_once(daemon: Daemon) -> None:
    client = Client("one", daemon.sockets)
    session = client.open(layout())
    welcome = client.handles.welcome
    client.stream.close()
    channel = grpc.insecure_channel(f"unix:{welcome.control_path}")
    stub = memory_pb2_grpc.MemoryStub(channel)
    message = raw_message(session.id, welcome.epoch, 2)

    def say(sent: memory_pb2.StreamRequest) -> memory_pb2.Reply:
        call = stub.Stream(iter([sent]), metadata=client.stream.metadata, timeout=10)
        # What a broken stream may not have brought comes again first.
        reply = next(m.reply for m in call if m.reply.re == sent.seq)
        call.cancel()
        return reply

    answers = [say(message), say(message)]
    assert answers[0] == answers[1]
    assert len(answers[0].grant.pages) == 1
    third = say(raw_message(session.id, welcome.epoch, 3))
    assert third.grant.pages[0].page == 1
    stale = say(raw_message(session.id, welcome.epoch + 1, 4))
    assert stale.error.code == common_pb2.ERROR_CODE_STALE_EPOCH
    channel.close()
    client.handles.close()


def test_bad_messages_are_refused_and_the_stream_goes_on(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout())
        session.extend(1)

        def refused(fill_in: Callable[[memory_pb2.StreamRequest], object]) -> str:
            message = memory_pb2.StreamRequest(session=session.id)
            fill_in(message)
            with pytest.raises(MemdecayError) as caught:
                client.stream.call(message)
            return caught.value.code

        def seal(message: memory_pb2.StreamRequest, tokens: int, first: int = 0) -> None:
            message.seal.first_page, message.seal.pages = first, 1
            message.seal.tokens.extend(range(tokens))

        assert refused(lambda m: None) == "invalid_argument"
        assert refused(lambda m: seal(m, TOKENS - 1)) == "invalid_argument"
        assert refused(lambda m: seal(m, TOKENS, 5)) in ("out_of_range", "unknown_page")
        for mass in (float("nan"), -1.0, 0.2):

            def observe(m: memory_pb2.StreamRequest, mass: float = mass) -> None:
                m.observe.step, m.observe.queries, m.observe.sink = 1, 1, mass

            assert refused(observe) == "invalid_argument"
        assert refused(lambda m: m.park.SetInParent()) == "invalid_argument"
        session.seal(0, list(range(TOKENS)))


def test_engine_that_does_not_read_is_cut_and_others_go_on(start: Callable[..., Daemon]) -> None:
    daemon = start("limits.stream_queue=16", "limits.stream_window=65536")
    handles = HandleSocket.attach(daemon.sockets + "/handles.sock", Hello("deaf"), 10)
    client = subprocess.Popen(
        [
            sys.executable,
            "-c",
            DEAF,
            handles.welcome.control_path,
            str(handles.welcome.engine),
            handles.welcome.token.hex(),
            str(handles.welcome.epoch),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: "does not read" in daemon.log(), 60)
    still_serves(daemon)
    client.kill()
    client.wait()
    handles.close()


# Writes with raw HTTP/2 flow control left alone: it never reads a reply.
DEAF = """
import sys, threading, grpc
from memdecay.v1 import memory_pb2, memory_pb2_grpc
path, engine, token, epoch = sys.argv[1:]
channel = grpc.insecure_channel("unix:" + path)
stub = memory_pb2_grpc.MemoryStub(channel)
def messages():
    for seq in range(1, 200000):
        message = memory_pb2.StreamRequest(seq=seq, epoch=int(epoch), session=1)
        message.written.position = 1
        yield message
call = stub.Stream(messages(), metadata=(("memdecay-engine", engine),
                                         ("memdecay-token-bin", bytes.fromhex(token))))
threading.Event().wait()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
def test_uid_decides_the_tenant(start: Callable[..., Daemon], directory: Path) -> None:
    config = directory / "c.yaml"
    config.write_text("tenants:\n  - name: own\n  - name: guests\n    uid: 65533\n")
    daemon = start("socket.group=65534", "socket.mode=0660", config=config)
    code = "memdecay.Client('guest', sys.argv[1]); os._exit(0)"
    guest = as_user(daemon, 65533, 65534, code)
    assert guest.returncode == 0, guest.stderr
    assert "tenant=2" in daemon.log()
    stranger = as_user(daemon, 65532, 65534, code).stderr
    assert "permission" in stranger and "uid 65532" in stranger and "gid 65534" in stranger
    assert "Permission denied" in as_user(daemon, 65533, 65533, code).stderr
