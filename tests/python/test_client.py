"""The Python client against a real daemon: the example, eviction and restore, resuming.

What it is: skipped when there is no memdecayd (MEMDECAYD, set by run.sh).
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from memdecay import Client, Group, Layout, Member, MemdecayError, Rope
from memdecay.v1 import common_pb2

DAEMON = os.environ.get("MEMDECAYD", "")
EXAMPLE = Path(__file__).parents[2] / "client" / "python" / "examples" / "engine.py"
TOKENS, PAGE = 16, 4096

pytestmark = pytest.mark.skipif(not os.access(DAEMON, os.X_OK), reason="no memdecayd")

LAYOUT = Layout(
    model="test",
    weights_fingerprint="sha256:1",
    revision="1",
    adapter="none",
    tokenizer_fingerprint="bytes",
    dtype="f16",
    quantization="none",
    scales="none",
    groups=(Group(1, 1, 64, TOKENS, "token.dim", 0, PAGE),),
    rope=Rope(),
    tensor_parallel=1,
    producer="test",
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind(str(tmp_path / "ready"))
    ready.settimeout(20)
    settings = ("device.pages=4", "host.pages=8", "sinks=0", "recent=0", "metrics.listen=none")
    command = [DAEMON]
    for setting in (*settings, f"socket.directory={tmp_path}"):
        command += ["--set", setting]
    environment = {"NOTIFY_SOCKET": str(tmp_path / "ready")}
    with subprocess.Popen(command, env=environment) as daemon:
        assert ready.recv(64) == b"READY=1"
        (tmp_path / "pid").write_text(str(daemon.pid))
        yield str(tmp_path)
        daemon.kill()


def _fill(session, first: int, pages: int, value: int) -> None:
    for page in session.extend(pages):
        page.write[:] = bytes([value + page.index]) * PAGE
    session.seal(first, list(range(value, value + pages * TOKENS)), had_holes=False)


def test_example_runs(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), folder], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["page 0: 1", "page 1: 17", "done"]


def test_parked_pages_leave_and_come_back(folder: str) -> None:
    with Client("a", folder) as client:
        session = client.open(LAYOUT, "a")
        _fill(session, 0, 3, 10)
        session.park("waiting_tool")
        other = client.open(LAYOUT, "b")
        _fill(other, 0, 4, 50)
        assert [page.read for page in session.pages] == [None] * 3
        other.close(forget=True)
        session.unpark()
        assert [page.read[0] for page in session.pages] == [10, 11, 12]


def test_sealed_content_is_found_by_another_engine(folder: str) -> None:
    with Client("a", folder) as first, Client("b", folder) as second:
        _fill(first.open(LAYOUT, "a"), 0, 2, 10)
        found = second.lookup(LAYOUT, list(range(10, 10 + 2 * TOKENS)))
        assert (found.pages, found.device_pages) == (2, 2)


def test_closed_session_is_resumed_by_name(folder: str) -> None:
    with Client("a", folder) as client:
        session = client.open(LAYOUT, "kept")
        session.tag(0, TOKENS, common_pb2.REGION_SYSTEM)
        _fill(session, 0, 2, 10)
        session.close()
    with Client("b", folder) as client:
        session = client.resume(LAYOUT, "kept")
        assert session.position == 2 * TOKENS
        assert session.tokens[:2] == [10, 11]


def test_refusals_say_what_to_do(folder: str) -> None:
    with Client("a", folder) as client:
        with pytest.raises(MemdecayError) as caught:
            client.resume(LAYOUT, "nobody")
        assert caught.value.code == "unknown_session"
        assert caught.value.todo


def test_acquire_maps_a_prefix_and_brings_back_what_has_left(folder: str) -> None:
    with Client("a", folder) as first, Client("b", folder) as second:
        _fill(first.open(LAYOUT, "a"), 0, 2, 10)
        prefix = list(range(10, 10 + 2 * TOKENS))
        session = second.open(LAYOUT, "b")
        assert session.acquire([*prefix, *range(TOKENS)]) == 2
        assert session.ready
        assert [page.read[0] for page in session.pages] == [10, 11]
        assert session.position == 2 * TOKENS
        first.sessions.popitem()[1].close()
        session.close()
        other = second.open(LAYOUT, "c")
        _fill(other, 0, 4, 90)  # the whole device: the prefix leaves
        other.close(forget=True)
        again = second.open(LAYOUT, "d")
        assert again.acquire(prefix) == 2
        with second.lock:
            assert second.changed.wait_for(lambda: again.ready, 10)
            assert [page.read[0] for page in again.pages] == [10, 11]


def test_acquire_with_another_extra_finds_nothing(folder: str) -> None:
    with Client("a", folder) as client:
        session = client.open(LAYOUT, "a")
        session.extend(1)
        session.seal(0, list(range(TOKENS)), had_holes=False, extras=[b"one"])
        assert client.open(LAYOUT, "b").acquire(range(TOKENS), [b"two"]) == 0
        assert client.lookup(LAYOUT, range(TOKENS), [b"one"]).pages == 1


def test_member_writes_the_pages_that_its_engine_reserved(folder: str) -> None:
    with Client("a", folder) as client:
        member = Member(client.credentials, folder)
        session = client.open(LAYOUT, "a")
        slot = session.reserve(1)[0].slot
        member.slab(slot.slab, 5.0, writable=True).window(slot.index)[:] = b"\7" * PAGE
        session.seal(0, list(range(TOKENS)), had_holes=False)
        reader = client.open(LAYOUT, "b")
        assert reader.acquire(range(TOKENS)) == 1
        assert client.slab(slot.slab).reader(reader.pages[0].slot.index) == b"\7" * PAGE
        member.close()


def test_engine_with_another_page_size_is_refused_in_words(folder: str) -> None:
    with pytest.raises(MemdecayError, match="page_tokens"):
        Client("a", folder, page_tokens=TOKENS * 2)


def test_a_dead_daemon_is_noticed(folder: str) -> None:
    client = Client("a", folder)
    assert client.down is None
    os.kill(int((Path(folder) / "pid").read_text()), signal.SIGKILL)
    with pytest.raises(MemdecayError) as caught:
        client.open(LAYOUT, "late")
    assert client.down is not None
    assert caught.value.code == "unavailable"
