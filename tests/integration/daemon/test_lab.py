"""memdecayd-lab: the levers work, and a release daemon has none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from conftest import BIN, PAGE, Daemon, fill, layout, until
from memdecay import Client
from memdecay.v1 import lab_pb2, lab_pb2_grpc, memory_pb2, orchestrator_pb2


@pytest.fixture
def lab(start: Callable[..., Daemon]) -> Iterator[tuple[Client, lab_pb2_grpc.LabStub]]:
    daemon = start(program="memdecayd-lab")
    with Client("one", daemon.sockets) as client:
        yield client, lab_pb2_grpc.LabStub(client.stream._channel)


def name(session) -> orchestrator_pb2.SessionName:
    return orchestrator_pb2.SessionName(session=session.id)


def evict(client: Client, session, *pages: int) -> None:
    message = memory_pb2.StreamRequest(session=session.id)
    message.evict.pages.extend(pages)
    client.stream.call(message)


def test_held_copy_waits_until_it_is_finished(lab) -> None:
    client, stub = lab
    session = client.open(layout(), name="s")
    fill(client, session, 2)
    session.park("waiting_user")
    stub.Hold(lab_pb2.HoldRequest(session=name(session), pages=[0], direction="evict"))
    evict(client, session, 0)
    stub.Settle(lab_pb2.SettleRequest(), timeout=30)
    samples = {s.name: s.value for s in stub.Samples(lab_pb2.SamplesRequest()).samples}
    assert samples["copies_in_flight"] == 1
    stub.Finish(lab_pb2.FinishRequest(session=name(session), pages=[0]))
    stub.Settle(lab_pb2.SettleRequest(), timeout=30)
    replica = stub.Replica(lab_pb2.ReplicaRequest(session=name(session), page=0)).content
    assert len(replica) == PAGE and replica[:8] == (1000).to_bytes(8, "little")
    assert stub.Pressure(lab_pb2.PressureRequest(pages=15)).free_pages >= 15


def test_flipped_bit_is_never_served(lab) -> None:
    client, stub = lab
    session = client.open(layout(), name="s")
    fill(client, session, 1)
    session.park("waiting_user")
    evict(client, session, 0)
    stub.Settle(lab_pb2.SettleRequest(), timeout=30)
    stub.Fault(lab_pb2.FaultRequest(what="flip", session=name(session), pages=[0]))
    message = memory_pb2.StreamRequest(session=session.id)
    message.restore.pages.append(0)
    failed: list[int] = []
    try:
        reply = client.stream.call(message)
        failed = [f.code for f in reply.restore.failed]
        assert reply.restore.resident == 0
    except Exception as error:  # the whole restore failed
        assert getattr(error, "code", "") == "data_loss"
    assert session.pages[0].slot is None, failed


def test_clock_moves(lab) -> None:
    client, stub = lab
    session = client.open(layout(), name="s")
    fill(client, session, 1)
    session.close()
    stub.Tick(lab_pb2.TickRequest(milliseconds=601_000))

    def gone() -> bool:
        stub.Settle(lab_pb2.SettleRequest(), timeout=30)
        samples = stub.Samples(lab_pb2.SamplesRequest()).samples
        return sum(s.value for s in samples if s.name == "sessions") == 0

    until(gone)


def test_reload_and_wrong_words(lab) -> None:
    client, stub = lab
    stub.Reload(lab_pb2.ReloadRequest(settings=["lease_ms=1000"]))
    for words in (["lease_ms=x"], ["nonsense=1"]):
        with pytest.raises(grpc.RpcError):
            stub.Reload(lab_pb2.ReloadRequest(settings=words))


def test_release_daemon_has_no_laboratory(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        stub = lab_pb2_grpc.LabStub(client.stream._channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Tick(lab_pb2.TickRequest(milliseconds=1))
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert b"CopyGate" not in (BIN / "memdecayd").read_bytes()
