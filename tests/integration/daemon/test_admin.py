"""Admin and Orchestrator: what operators and agent platforms may ask, and who may not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from conftest import BIN, TOKENS, Daemon, as_user, fill, layout
from memdecay import Client
from memdecay.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    common_pb2,
    orchestrator_pb2,
    orchestrator_pb2_grpc,
)


def name(text: str) -> orchestrator_pb2.SessionName:
    return orchestrator_pb2.SessionName(name=text)


class Operator:
    """Admin and Orchestrator with a client's credentials."""

    def __init__(self, client: Client):
        self.metadata = client.stream.metadata
        self.admin = admin_pb2_grpc.AdminStub(client.stream._channel)
        self.orchestrator = orchestrator_pb2_grpc.OrchestratorStub(client.stream._channel)

    def ask(self, method: str, request: object):
        return getattr(self.admin, method)(request, metadata=self.metadata, timeout=10)

    def apply(self, request: orchestrator_pb2.ApplyRequest) -> None:
        self.orchestrator.Apply(request, metadata=self.metadata, timeout=10)


def detail(error: grpc.RpcError) -> common_pb2.ErrorDetail:
    found = common_pb2.ErrorDetail()
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            found.ParseFromString(value)
    return found


def test_operator_sees_status_sessions_and_pages(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout(), name="s"), 3)
        operator = Operator(client)
        status = operator.ask("GetStatus", admin_pb2.GetStatusRequest())
        assert status.device == "host"
        assert status.death_notice == "pidfd"
        assert status.metrics_address == daemon.metrics_address()
        assert status.sessions == 1
        assert {c.name: c.value for c in status.slots}["valid"] == 3
        sessions = operator.ask("ListSessions", admin_pb2.ListSessionsRequest()).sessions
        assert [(s.name, s.tenant, s.pages) for s in sessions] == [("s", "default", 3)]
        listed = operator.ask("ListPages", admin_pb2.ListPagesRequest(session=name("s")))
        assert [p.view.page for p in listed.pages] == [0, 1, 2]
        assert all(p.on_device and p.key for p in listed.pages)
        assert operator.ask("Check", admin_pb2.CheckRequest()).differences == []
        yaml = operator.ask("GetConfig", admin_pb2.GetConfigRequest()).yaml
        assert "  pages: 16\n" in yaml


def ctl(daemon: Daemon, *words: str) -> str:
    command = [str(BIN / "memdecayctl"), "--socket", daemon.sockets, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def test_memdecayctl_counts_as_no_engine(daemon: Daemon) -> None:
    assert "engines   none" in ctl(daemon, "status")
    with Client("one", daemon.sockets):
        assert "engines   1 alive" in ctl(daemon, "status")


def test_limit_of_a_pool_is_unknown_before_the_first_layout(daemon: Daemon) -> None:
    device = [row for row in ctl(daemon, "status").splitlines() if row.startswith("device ")]
    assert device[0].split()[-1] == "-"
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout(), name="s"), 1)
        device = [row for row in ctl(daemon, "status").splitlines() if row.startswith("device ")]
        assert device[0].split()[-1] != "-"


def test_page_that_never_left_is_explained_by_its_terms(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout(), name="s"), 3)
        request = admin_pb2.ExplainRequest()
        request.page.session.name, request.page.page = "s", 1
        answer = Operator(client).ask("Explain", request)
        assert not answer.decisions
        assert len(answer.terms) >= 2
        assert sum(term.value for term in answer.terms) == pytest.approx(answer.page.score)
        assert "terms now" in ctl(daemon, "explain", "s:1")


def test_orchestrator_tags_by_name_and_is_told_what_it_cannot(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        fill(client, client.open(layout(), name="s"), 2)
        operator = Operator(client)
        request = orchestrator_pb2.ApplyRequest(session=name("s"))
        request.tag.spans.add(span=common_pb2.Span(begin=0, end=TOKENS), region=0)
        operator.apply(request)
        pages = operator.ask("ListPages", admin_pb2.ListPagesRequest(session=name("s"))).pages
        assert [(r.region, r.tokens) for r in pages[0].regions] == [(0, TOKENS)]
        info = operator.orchestrator.GetSession(
            orchestrator_pb2.GetSessionRequest(session=name("s")),
            metadata=operator.metadata,
            timeout=10,
        )
        assert info.session.pages == 2
        request.session.name = "nobody"
        with pytest.raises(grpc.RpcError) as caught:
            operator.apply(request)
        assert detail(caught.value).code == common_pb2.ERROR_CODE_UNKNOWN_SESSION
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_pins_and_evictions_by_hand(daemon: Daemon) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout(), name="s")
        fill(client, session, 4)
        session.park("waiting_user")
        operator = Operator(client)
        pin = admin_pb2.AdminPinRequest(session=name("s"))
        pin.pin.first_page, pin.pin.pages = 1, 1
        operator.ask("Pin", pin)
        with pytest.raises(grpc.RpcError) as caught:
            operator.ask("Evict", admin_pb2.AdminEvictRequest(session=name("s"), pages=[1]))
        assert detail(caught.value).code == common_pb2.ERROR_CODE_BUSY
        operator.ask("Evict", admin_pb2.AdminEvictRequest(session=name("s"), pages=[2]))
        explained = operator.ask(
            "Explain", admin_pb2.ExplainRequest(page=admin_pb2.PageName(session=name("s"), page=2))
        )
        assert explained.decisions[0].reason == common_pb2.REASON_ADMIN
        unpin = admin_pb2.AdminUnpinRequest(session=name("s"))
        unpin.unpin.first_page, unpin.unpin.pages = 1, 1
        operator.ask("Unpin", unpin)
        for wrong in (admin_pb2.ExplainRequest(decision=1 << 60), admin_pb2.ExplainRequest()):
            with pytest.raises(grpc.RpcError):
                operator.ask("Explain", wrong)


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
def test_other_users_are_no_admins(start: Callable[..., Daemon], directory: Path) -> None:
    config = directory / "c.yaml"
    config.write_text("tenants:\n  - name: own\n  - name: guests\n    gid: 65534\n")
    daemon = start("socket.group=65534", "socket.admin_uids=[65531]", config=config)
    code = """
client = memdecay.Client("guest", sys.argv[1])
stub = admin_pb2_grpc.AdminStub(client.stream._channel)
stub.GetStatus(admin_pb2.GetStatusRequest(), metadata=client.stream.metadata, timeout=10)
os._exit(0)
"""
    allowed = as_user(daemon, 65531, 65534, code)
    assert allowed.returncode == 0, allowed.stderr
    assert "socket.admin_uids" in as_user(daemon, 65532, 65534, code).stderr
