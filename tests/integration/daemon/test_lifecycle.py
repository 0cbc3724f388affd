"""Lives and deaths: of the daemon, of engines, of both."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import TOKENS, Daemon, fill, layout, until
from memdecay import Client, MemdecayError
from memdecay.frames import HandleSocket, Hello
from memdecay.v1 import admin_pb2, admin_pb2_grpc, memory_pb2

# An engine of its own process: seals two pages of session "s", says so, and waits.
ENGINE = """
import sys, threading
sys.path.insert(0, sys.argv[2])
from conftest import fill, layout
from memdecay import Client
client = Client("engine", sys.argv[1])
session = client.open(layout(), name="s")
fill(client, session, 2)
session.extend(1)
print("ready", flush=True)
threading.Event().wait()
"""


def engine_process(daemon: Daemon) -> subprocess.Popen[str]:
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE, daemon.sockets, here],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def admin(client: Client) -> admin_pb2_grpc.AdminStub:
    return admin_pb2_grpc.AdminStub(client.stream._channel)


def engines(client: Client) -> dict[str, int]:
    status = admin(client).GetStatus(
        admin_pb2.GetStatusRequest(), metadata=client.stream.metadata, timeout=10
    )
    return {count.name: count.value for count in status.engines}


def check(client: Client) -> list[str]:
    return list(
        admin(client)
        .Check(admin_pb2.CheckRequest(), metadata=client.stream.metadata, timeout=10)
        .differences
    )


def test_second_daemon_is_refused_and_says_who_holds_the_directory(
    daemon: Daemon, directory: Path
) -> None:
    second = Daemon(directory)
    assert second.process.wait(20) == 1
    assert f"pid {daemon.process.pid}" in second.log()
    with Client("one", daemon.sockets):
        pass


def test_stale_socket_files_are_taken_over(start: Callable[..., Daemon]) -> None:
    daemon = start()
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    assert Path(daemon.sockets, "handles.sock").exists()
    again = start()
    with Client("one", again.sockets) as client:
        client.open(layout())


def test_file_that_is_no_socket_is_not_removed(directory: Path) -> None:
    folder = directory / "s"
    folder.mkdir()
    (folder / "handles.sock").write_text("precious")
    daemon = Daemon(directory)
    assert daemon.process.wait(20) == 1
    assert (folder / "handles.sock").read_text() == "precious"
    assert "no socket" in daemon.log()


def test_sigterm_tells_engines_and_exits_0(daemon: Daemon) -> None:
    heard: list[str | None] = []
    client = Client("one", daemon.sockets)
    before = client.stream._on_notice
    client.stream._on_notice = lambda m: (heard.append(m.WhichOneof("body")), before(m))
    client.open(layout())
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    assert "shutdown" in heard
    assert not Path(daemon.sockets, "handles.sock").exists()
    assert not Path(daemon.sockets, "control.sock").exists()


def test_sockets_have_the_configured_mode(daemon: Daemon) -> None:
    for name in ("handles.sock", "control.sock"):
        assert Path(daemon.sockets, name).stat().st_mode & 0o777 == 0o660
    assert Path(daemon.sockets).stat().st_mode & 0o007 == 0


def test_supervisor_is_told(directory: Path, start: Callable[..., Daemon]) -> None:
    path = str(directory / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(path)
        supervisor.settimeout(20)
        daemon = start(env={**os.environ, "NOTIFY_SOCKET": path})
        assert supervisor.recv(100) == b"READY=1"
        daemon.stop()
        assert supervisor.recv(100) == b"STOPPING=1"


def test_sighup_reads_the_configuration_again(
    directory: Path, start: Callable[..., Daemon]
) -> None:
    config = directory / "c.yaml"
    config.write_text("device:\n  pages: 4\n")
    daemon = start("device.slab_pages=1", config=config)
    config.write_text("device:\n  pages: none\n")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: "configuration not changed" in daemon.log())
    config.write_text("device:\n  pages: 16\n")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: "configuration read again" in daemon.log())


def test_killed_engine_leaves_a_session_that_another_resumes(daemon: Daemon) -> None:
    process = engine_process(daemon)
    with Client("watch", daemon.sockets) as client:
        with pytest.raises(MemdecayError) as caught:
            client.resume(layout(), "s")
        assert caught.value.code == "busy"
        process.kill()
        process.wait()
        until(lambda: engines(client)["dead"] == 1)
        session = client.resume(layout(), "s")
        assert session.position == 2 * TOKENS
        assert len(session.tokens) == 2 * TOKENS
        for page in session.pages[:2]:
            assert bytes(page.read[:8]) == (1000 + page.index).to_bytes(8, "little")
        assert check(client) == []
        session.close(forget=True)


def test_stopped_engine_is_flagged_silent_and_nothing_is_taken(
    start: Callable[..., Daemon],
) -> None:
    daemon = start("limits.silent_ms=200")
    process = engine_process(daemon)
    with Client("watch", daemon.sockets) as client:
        process.send_signal(signal.SIGSTOP)
        until(lambda: engines(client)["silent"] == 1)
        with pytest.raises(MemdecayError) as caught:
            client.resume(layout(), "s")
        assert caught.value.code == "busy"
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        until(lambda: engines(client)["dead"] == 1)


def test_closed_sockets_of_a_living_process_are_a_disconnect_and_it_comes_back(
    daemon: Daemon,
) -> None:
    with Client("watch", daemon.sockets) as client:
        path = daemon.sockets + "/handles.sock"
        handles = HandleSocket.attach(path, Hello("e"), 10)
        welcome = handles.welcome
        handles.socket.close()
        until(lambda: engines(client)["disconnected"] == 1)
        again = HandleSocket.attach(
            path, Hello("e", engine=welcome.engine, epoch=welcome.epoch, token=welcome.token), 10
        )
        assert again.welcome.engine == welcome.engine
        assert again.welcome.epoch > welcome.epoch
        assert again.welcome.member == welcome.member
        assert engines(client)["disconnected"] == 0
        with pytest.raises(MemdecayError) as caught:
            HandleSocket.attach(
                path,
                Hello("e", engine=welcome.engine, epoch=welcome.epoch, token=welcome.token),
                10,
            )
        assert caught.value.code == "stale_epoch"
        again.close()


def test_daemon_that_was_killed_starts_empty_and_refuses_old_tokens(
    start: Callable[..., Daemon],
) -> None:
    daemon = start()
    client = Client("one", daemon.sockets)
    session = client.open(layout(), name="s")
    fill(client, session, 2)
    view = session.pages[0].read
    daemon.stop(signal.SIGKILL)
    assert bytes(view[:8]) == (1000).to_bytes(8, "little")  # mappings live on
    again = start()
    with pytest.raises(MemdecayError) as caught:
        HandleSocket.attach(
            again.sockets + "/handles.sock",
            Hello(
                "e",
                engine=client.handles.welcome.engine,
                epoch=1,
                token=client.handles.welcome.token,
            ),
            10,
        )
    assert caught.value.code == "permission"
    with Client("two", again.sockets) as fresh:
        with pytest.raises(MemdecayError) as caught:
            fresh.resume(layout(), "s")
        assert caught.value.code == "unknown_session"
        fresh.open(layout(), name="s")


def test_evicted_page_comes_back_with_its_bytes(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout(), name="s")
        fill(client, session, 2)
        session.park("waiting_tool")
        message = memory_pb2.StreamRequest(session=session.id)
        message.evict.pages.append(0)
        client.stream.call(message)
        until(lambda: session.pages[0].slot is None)
        session.unpark()
        until(lambda: session.pages[0].slot is not None)
        assert bytes(session.pages[0].read[:8]) == (1000).to_bytes(8, "little")
        assert check(client) == []


def test_full_pool_is_said_and_who_asks_waits_no_longer_than_configured(
    start: Callable[..., Daemon],
) -> None:
    daemon = start("device.pages=2", "limits.request_ms=100", "sinks=0", "recent=0")
    with Client("one", daemon.sockets) as client:
        session = client.open(layout())
        fill(client, session, 2)
        with pytest.raises(MemdecayError) as caught:
            session.extend(1)
        assert caught.value.code == "resource_exhausted"
        assert caught.value.there


def test_health_answers(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        call = client.stream._channel.unary_unary("/grpc.health.v1.Health/Check")
        assert call(b"", timeout=10) == b"\x08\x01"  # status: SERVING
        services = client.stream._channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        listed = next(iter(services(iter([b"\x3a\x00"]), timeout=10)))
        assert b"memdecay.v1.Memory" in listed
        assert b"memdecay.v1.Lab" not in listed
