"""memdecayctl record, replay of what it wrote, decisions and doctor, against a running daemon."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from conftest import BIN, DEADLINE_S, TOKENS, Daemon, fill, layout, until
from memdecay import Client
from memdecay.v1 import admin_pb2, admin_pb2_grpc, orchestrator_pb2


def ctl(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "memdecayctl"), "--socket", daemon.sockets, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def begin(daemon: Daemon, *words: str) -> subprocess.Popen[str]:
    command = [str(BIN / "memdecayctl"), "--socket", daemon.sockets, "record", *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def begun(recording: subprocess.Popen[str]) -> None:
    """Waits for its first word of progress, after a second."""
    assert recording.stderr is not None
    assert "events" in recording.stderr.readline()


def end(recording: subprocess.Popen[str], number: int | None = signal.SIGINT) -> tuple[str, str]:
    if number is not None:
        recording.send_signal(number)
    out, err = recording.communicate(timeout=DEADLINE_S)
    return out, err


class Admin:
    def __init__(self, client: Client):
        self.metadata = client.stream.metadata
        self.stub = admin_pb2_grpc.AdminStub(client.stream._channel)

    def ask(self, method: str, request: object):
        return getattr(self.stub, method)(request, metadata=self.metadata, timeout=DEADLINE_S)

    def busy(self) -> bool:
        """Whether a recording runs."""
        call = self.stub.Record(
            admin_pb2.RecordRequest(longest_ms=1), metadata=self.metadata, timeout=DEADLINE_S
        )
        try:
            list(call)
        except grpc.RpcError as error:
            assert "there is one at a time" in error.details()
            return True
        return False


def work(client: Client) -> list[int]:
    """Two sessions with one prompt of three pages; the second finds it. Returns the tokens."""
    first = client.open(layout(), name="first")
    prompt = [700_000 + i for i in range(3 * TOKENS)]
    assert first.acquire([*prompt, 5]) == 0
    for page in first.extend(3):
        page.write[:8] = page.index.to_bytes(8, "little")
    first.seal(0, prompt, had_holes=False)
    second = client.open(layout(), name="second")
    assert second.acquire(prompt) == 3
    second.close(forget=True)
    first.close(forget=True)
    return prompt


def test_recorded_workload_replays_to_the_ratio_that_a_hand_counts(
    daemon: Daemon, tmp_path: Path
) -> None:
    recording = begin(daemon, "--for", "60s")
    assert recording.stdout is not None
    header = json.loads(recording.stdout.readline())
    assert header["memdecay_trace"] == 1
    assert header["page_tokens"] == TOKENS
    with Client("one", daemon.sockets) as client:
        prompt = work(client)
        client.lookup(layout(), prompt)
    rest, told = end(recording)
    assert recording.returncode == 0, told
    assert "ended by Ctrl-C" in told
    assert rest.endswith("\n")
    events = [json.loads(line) for line in rest.splitlines()]
    kinds = [event["e"] for event in events]
    assert kinds.count("open") == 2
    assert kinds.count("seal") == 6
    assert kinds.count("end") == 2
    looks = [event for event in events if event["e"] == "look"]
    assert [(look["hit"], look["tail"], look.get("peek", 0)) for look in looks] == [
        (0, 1, 0),
        (3, 0, 0),
        (0, 0, 1),
    ]
    assert looks[0]["k"] == looks[1]["k"]
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    for token in prompt:
        assert str(token) not in rest, "a token id travelled"

    trace = tmp_path / "t.jsonl"
    trace.write_text(json.dumps(header) + "\n" + rest)
    answer = ctl(daemon, "--json", "replay", str(trace), "--policy", "lru,min", "--capacity", "2,3")
    assert answer.returncode == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert (result["requests"], result["blocks"], result["unique"]) == (2, 6, 3)
    ratios = [(row["policy"], row["capacity"], row["prefix_hit_ratio"]) for row in result["rows"]]
    # Two blocks: least recently used keeps the wrong two, the optimum the first one.
    assert ratios == [("lru", 2, 0), ("lru", 3, 0.5), ("min", 2, 1 / 6), ("min", 3, 0.5)]
    assert "1 look-ups that took nothing" in answer.stderr


def test_salts_differ_between_recordings(daemon: Daemon) -> None:
    names = []
    with Client("one", daemon.sockets) as client:
        for _ in range(2):
            recording = begin(daemon, "--for", "60s")
            assert recording.stdout is not None
            recording.stdout.readline()
            work(client)
            rest, _ = end(recording)
            seals = [json.loads(line) for line in rest.splitlines() if '"e":"seal"' in line]
            names.append({seal["k"] for seal in seals})
    assert names[0]
    assert not names[0] & names[1]


def test_limits_end_a_recording_with_whole_lines(daemon: Daemon, tmp_path: Path) -> None:
    packed = tmp_path / "t.jsonl.gz"
    recording = begin(daemon, "--for", "700ms", "-o", str(packed))
    _, told = end(recording, None)
    assert recording.returncode == 0, told
    assert "ended by time" in told
    with gzip.open(packed, "rt") as lines:
        assert json.loads(lines.read())["memdecay_trace"] == 1
    again = ctl(daemon, "record", "--for", "1s", "-o", str(packed))
    assert again.returncode == 2
    assert "there is such a file already" in again.stderr

    small = tmp_path / "small.jsonl"
    recording = begin(daemon, "--for", "60s", "--max-bytes", "500", "-o", str(small))
    with Client("one", daemon.sockets) as client:
        begun(recording)
        work(client)
        _, told = end(recording, None)
    assert recording.returncode == 0, told
    assert "ended by bytes" in told
    assert small.stat().st_size <= 500
    assert all(json.loads(line) for line in small.read_text().splitlines())
    assert small.read_text().endswith("\n")


def test_second_recording_is_refused_and_the_first_goes_on(daemon: Daemon, tmp_path: Path) -> None:
    recording = begin(daemon, "--for", "60s")
    assert recording.stdout is not None
    recording.stdout.readline()
    second = ctl(daemon, "record", "-o", str(tmp_path / "second.jsonl"))
    assert second.returncode == 1
    assert "there is one at a time" in second.stderr
    assert not (tmp_path / "second.jsonl").exists()
    with Client("one", daemon.sockets) as client:
        work(client)
        rest, _ = end(recording)
        assert '"e":"seal"' in rest
        assert until(lambda: not Admin(client).busy()), "the next one may begin"


def test_sessions_can_be_chosen(daemon: Daemon) -> None:
    recording = begin(daemon, "--for", "60s", "--sessions", "second")
    assert recording.stdout is not None
    recording.stdout.readline()
    with Client("one", daemon.sockets) as client:
        work(client)
    rest, _ = end(recording)
    events = [json.loads(line) for line in rest.splitlines()]
    assert {event.get("s") for event in events} == {1}
    assert events[0]["e"] == "open"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_recording_outlives_its_daemon_as_a_whole_file(
    start: Callable[..., Daemon], tmp_path: Path, number: int
) -> None:
    daemon = start()
    packed = tmp_path / "t.jsonl.gz"
    recording = begin(daemon, "--for", "60s", "-o", str(packed))
    with Client("one", daemon.sockets) as client:
        begun(recording)
        work(client)
    daemon.stop(number)
    _, told = end(recording, None)
    if number == signal.SIGKILL:
        assert recording.returncode == 1
        assert "the daemon went away, and what came after them is lost" in told
    else:
        assert recording.returncode == 0, told
        assert "ended by shutdown" in told
    with gzip.open(packed, "rt") as lines:
        events = [json.loads(line) for line in lines]
    assert events[0]["memdecay_trace"] == 1
    if number == signal.SIGTERM:
        assert events[-1]["e"] in ("end", "state")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--for", "0s"), "a recording of nothing"),
        (("--for", "10"), "that is no duration"),
        (("--max-bytes", "12x"), "that is no number of bytes"),
        (("-o", "/nowhere/t.jsonl"), "name a file in a folder that is there"),
    ],
)
def test_bad_arguments_are_refused(daemon: Daemon, words: tuple[str, ...], complaint: str) -> None:
    answer = ctl(daemon, "record", *words)
    assert answer.returncode == 2
    assert complaint in answer.stderr


# ---- decisions, regret, doctor


def test_doctor_has_nothing_to_say_of_a_fresh_daemon(daemon: Daemon) -> None:
    answer = ctl(daemon, "doctor")
    assert answer.returncode == 0
    assert answer.stdout.startswith("healthy: 0 evictions")


def test_pages_that_come_back_at_once_are_regretted_and_the_doctor_says_what_to_do(
    daemon: Daemon,
) -> None:
    with Client("one", daemon.sockets) as client:
        session = client.open(layout(), name="tight", mode="lossy", budget_pages=10)
        fill(client, session, 10)
        session.extend(1)
        session.seal(10, list(range(900_000, 900_000 + TOKENS)))
        admin = Admin(client)
        name = orchestrator_pb2.SessionName(name="tight")
        restored = 0
        while restored < 25:
            pages = admin.ask("ListPages", admin_pb2.ListPagesRequest(session=name)).pages
            holes = [page.view.page for page in pages if not page.on_device]
            if not holes:
                continue
            admin.ask("Restore", admin_pb2.AdminRestoreRequest(session=name, pages=holes[:1]))
            restored += 1
        answer = ctl(daemon, "--json", "doctor")
        assert answer.returncode == 1, answer.stdout + answer.stderr
        report = json.loads(answer.stdout)
        findings = {finding["name"]: finding for finding in report["findings"]}
        user = next(r for r in report["figures"]["regions"] if r["name"] == "user")
        assert user["regrets"] >= 20
        assert findings["regret"]["seen"] == (
            f"user pages come back often: {user['regrets']} of {user['evictions']} evictions "
            "returned within 64 steps"
        )
        assert findings["regret"]["key"] == "policy.regions.user.half_life_tokens"
        assert "thrash" in findings
        assert "regret    " in ctl(daemon, "status").stdout

        listed = json.loads(ctl(daemon, "--json", "decisions", "--last", "3").stdout)
        assert len(listed["decisions"]) == 3
        numbers = [decision["decision"] for decision in listed["decisions"]]
        assert numbers == sorted(numbers, reverse=True)
        request = admin_pb2.ListDecisionsRequest(last=40, session=name)
        listing = admin.ask("ListDecisions", request).decisions
        evictions = [decision for decision in listing if decision.kind == "evict"]
        explained = ctl(daemon, "explain", str(evictions[0].decision)).stdout
        for part in ("terms", "decay", "pressure", "first spared", "budget + 1 page (now 10)"):
            assert part in explained, explained
        assert ctl(daemon, "decisions", "--session", "nobody").returncode == 1
