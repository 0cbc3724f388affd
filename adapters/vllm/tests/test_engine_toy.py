"""The book, the link and the worker with a real daemon, without vLLM.

What it is: saving, loading, preemption, loss of the daemon. Skipped without MEMDECAYD.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from memdecay_vllm.params import Tag
from toy import DAEMON, PATIENT, TOKENS, Daemon, ToyEngine

pytestmark = pytest.mark.skipif(not os.access(DAEMON, os.X_OK), reason="no memdecayd")

PROMPT = list(range(100, 100 + 5 * TOKENS + 3))


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.kill()


@pytest.fixture
def engine(daemon: Daemon) -> Iterator[ToyEngine]:
    engine = ToyEngine(str(daemon.folder))
    yield engine
    engine.close()


def _found_by_another(daemon: Daemon) -> int:
    """What an engine without haste finds of the prompt."""
    other = ToyEngine(str(daemon.folder))
    found = other.admit(other.add("another", PROMPT))
    other.close()
    return found


def _compute(engine: ToyEngine, name: str, tokens: list[int]) -> None:
    """A request from nothing to its end, with two more steps than it needs."""
    request = engine.add(name, tokens)
    engine.admit(request)
    engine.step((request, len(tokens) - request.done))
    for _ in range(2):
        request.tokens.append(7)
        engine.step((request, 1))
    engine.settle()
    engine.finish(request)
    engine.settle()


def _wait_for_attachment(engine: ToyEngine, number: int) -> None:
    deadline = time.monotonic() + 60
    while engine.link.attachments < number and time.monotonic() < deadline:
        time.sleep(0.05)
    assert engine.link.attachments == number


def test_what_one_request_computed_the_next_one_loads(engine: ToyEngine) -> None:
    _compute(engine, "first", PROMPT)
    second = engine.add("second", PROMPT)
    assert engine.admit(second) == 5 * TOKENS
    engine.scribble(second)
    engine.step((second, 3))
    assert engine.right(second, 5 * TOKENS)
    assert engine.book.counters["restored_tokens"] == 5 * TOKENS


def test_prompt_is_saved_in_the_step_that_computes_it(engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT)
    engine.admit(request)
    engine.step((request, len(PROMPT)))
    engine.finish(request)
    engine.settle()
    assert engine.admit(engine.add("second", PROMPT)) == 5 * TOKENS


def test_last_token_is_always_computed(engine: ToyEngine) -> None:
    whole = PROMPT[: 4 * TOKENS]
    _compute(engine, "first", PROMPT)
    assert engine.admit(engine.add("second", whole)) == 3 * TOKENS


def test_local_hit_is_not_loaded_again(engine: ToyEngine) -> None:
    _compute(engine, "first", PROMPT)
    second = engine.add("second", PROMPT)
    second.done = 2 * TOKENS
    assert engine.admit(second) == 3 * TOKENS
    third = engine.add("third", PROMPT)
    third.done = 5 * TOKENS
    assert engine.admit(third) == 0


def test_generated_blocks_are_saved_as_they_fill(engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT)
    engine.admit(request)
    engine.step((request, len(PROMPT)))
    for token in range(2 * TOKENS):
        request.tokens.append(token)
        engine.step((request, 1))
        engine.settle()  # a step takes longer than the daemon's answer
    told = engine.finish(request)
    engine.settle()
    assert told["kept_tokens"] == 7 * TOKENS
    assert engine.admit(engine.add("next turn", [*request.tokens, 1, 2, 3])) == 7 * TOKENS


def test_salted_requests_share_with_their_salt_only(engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT, (b"cache_salt:a",))
    engine.admit(request)
    engine.step((request, len(PROMPT)))
    engine.finish(request)
    engine.settle()
    assert engine.admit(engine.add("plain", PROMPT)) == 0
    assert engine.admit(engine.add("other", PROMPT, (b"cache_salt:b",))) == 0
    assert engine.admit(engine.add("same", PROMPT, (b"cache_salt:a",))) == 5 * TOKENS


def test_preempted_request_gets_its_blocks_back(engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT)
    engine.admit(request)
    engine.step((request, len(PROMPT)))
    engine.settle()
    engine.preempt(request)
    engine.settle()
    other = engine.add("other", [9000 + n for n in range(29 * TOKENS)])  # the device is 32 pages
    engine.admit(other)
    engine.step((other, len(other.tokens)))
    engine.settle()
    engine.finish(other)
    request.tokens.append(5)
    assert engine.admit(request) == 5 * TOKENS
    engine.step((request, 4))
    assert engine.right(request, 5 * TOKENS)


def test_preempted_before_the_daemon_answered(daemon: Daemon) -> None:
    engine = ToyEngine(str(daemon.folder), replace(PATIENT, answer_ms=100))
    daemon.stop()
    request = engine.add("first", PROMPT)
    assert engine.admit(request) == 0
    engine.step((request, len(PROMPT)))
    engine.preempt(request)
    daemon.go_on()
    engine.settle()
    assert engine.admit(request) == 0
    engine.step((request, len(PROMPT)))
    engine.finish(request)
    engine.settle()
    engine.close()
    assert _found_by_another(daemon) == 5 * TOKENS


def test_pages_that_left_the_device_come_back_before_they_are_used(engine: ToyEngine) -> None:
    _compute(engine, "first", PROMPT)
    _compute(engine, "other", [9000 + n for n in range(31 * TOKENS)])
    again = engine.add("again", PROMPT)
    assert engine.admit(again) == 5 * TOKENS
    engine.scribble(again)
    engine.step((again, 3))
    assert engine.right(again, 5 * TOKENS)


def test_full_device_means_unsaved_and_nothing_else(engine: ToyEngine) -> None:
    long = engine.add("long", list(range(40 * TOKENS)))  # the device is 32 pages
    assert engine.admit(long) == 0
    engine.step((long, len(long.tokens)))
    assert engine.right(long, 40 * TOKENS)
    engine.settle()
    assert engine.finish(long)["kept_tokens"] <= 32 * TOKENS


def test_tags_reach_the_session(engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT, tags=(Tag(0, TOKENS, 0),))
    assert engine.admit(request) == 0
    assert engine.book.counters["refused_invalid_argument"] == 0


def test_second_engine_hits_what_a_killed_one_left(daemon: Daemon, engine: ToyEngine) -> None:
    request = engine.add("first", PROMPT)
    engine.admit(request)
    engine.step((request, len(PROMPT)))
    engine.settle()  # no finish, no goodbye
    second = ToyEngine(str(daemon.folder))
    resumed = second.add("again", PROMPT)
    assert second.admit(resumed) == 5 * TOKENS
    second.step((resumed, 3))
    assert second.right(resumed, 5 * TOKENS)
    second.close()


def test_absent_daemon_is_not_waited_for_and_is_said_once(tmp_path: Path) -> None:
    engine = ToyEngine(str(tmp_path))
    for name in ("one", "two"):
        request = engine.add(name, PROMPT)
        assert engine.admit(request) == 0
        engine.step((request, len(PROMPT)))
        assert engine.finish(request)["kept_tokens"] == 0
    assert +engine.book.counters == {"not_asked": 2}
    assert len(engine.said) == 1
    engine.close()


def test_killed_daemon_is_done_without_and_attached_again(
    daemon: Daemon, engine: ToyEngine
) -> None:
    running = engine.add("running", PROMPT)
    engine.admit(running)
    engine.step((running, len(PROMPT)))
    engine.settle()
    daemon.kill()
    during = engine.add("during", PROMPT)
    assert engine.admit(during) == 0
    engine.step((running, 1), (during, len(PROMPT)))
    daemon.start_again()
    _wait_for_attachment(engine, 2)
    for _ in range(3):  # what runs is saved again, from its first block on
        running.tokens.append(1)
        engine.step((running, 1))
        engine.settle()
    engine.finish(running)
    engine.settle()
    assert engine.admit(engine.add("after", PROMPT)) == 5 * TOKENS
    assert engine.book.counters["saved_blocks"] > 5


def test_stopped_daemon_holds_one_request_for_one_deadline(daemon: Daemon) -> None:
    engine = ToyEngine(str(daemon.folder), replace(PATIENT, answer_ms=300, early_requests=1))
    engine.settle()
    daemon.stop()
    begin = time.monotonic()
    second = engine.add("second", PROMPT)
    assert engine.admit(second) == 0
    assert time.monotonic() - begin < 30  # an answer's deadline, not a daemon's patience
    third = engine.add("third", PROMPT)
    assert engine.admit(third) == 0
    engine.step((second, len(PROMPT)), (third, len(PROMPT)))
    counted = engine.book.counters
    assert counted["answers_late"] + counted["not_asked"] == 2
    assert counted["answers_late"] <= 1
    daemon.go_on()
    engine.settle()
    assert engine.link.attachments == 1
    for request in (second, third):  # they are saved after all
        request.tokens.append(1)
        for _ in range(3):
            request.tokens.append(1)
            engine.step((request, 1))
            engine.settle()
    engine.finish(second)
    engine.settle()
    engine.close()
    assert _found_by_another(daemon) == 5 * TOKENS


def test_slots_of_a_lost_daemon_are_never_taken_for_new_ones(
    daemon: Daemon, engine: ToyEngine
) -> None:
    _compute(engine, "first", PROMPT)
    request = engine.add("again", PROMPT)
    assert engine.admit(request) == 5 * TOKENS  # promised …
    daemon.kill()
    daemon.start_again()
    _wait_for_attachment(engine, 2)
    engine.worker.close()  # … and a worker that has not joined the old engine
    engine.step((request, 3))
    assert engine.worker.take_bad_blocks() == set(request.blocks[:5])
