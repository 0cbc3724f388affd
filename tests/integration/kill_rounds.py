#!/usr/bin/env python3
"""Rounds of kill -9 on real engines while others decode, and what must hold after each.

A round: an engine stands still (or was just seen) in a named phase and is killed with SIGKILL;
another process resumes its session and computes the rest. Two more engines decode all the time, one
episode after the other, on the same, too small, pool. Wrong bytes show as rows of logits, or pages,
that are not those of the undisturbed run. Phases: grant, write, seal, acknowledge, restore.

Every fifth session or so is lossy: it follows the undisturbed run's tokens, and is repaired.
Usage: kill_rounds.py [--rounds N] [--seed S] [--build build/release]      (tests/run.sh --kill N)
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import os
import pathlib
import random
import select
import sys
import threading
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "engine"))

import tiny  # noqa: E402
from tiny import PAGE_TOKENS, TURNS, outside  # noqa: E402

# Phases, and how often one is passed in a turn at the least.
PHASES = {"grant": 4, "write": 20, "seal": 2, "acknowledge": 40, "restore": 2}
BYSTANDERS = ("first", "second")
VICTIM = "victim"
WAIT_SECONDS = 60.0
WARM_UP_SHARE = 0.2
GROWTH_BYTES = 4 << 20  # of the daemon's own memory after warming up, whatever the rounds
GROWTH_FILES = 16


def evict_all(victim: tiny.Engine, sealed: int) -> None:
    """Evicts every sealed page; another engine's lease may hold one while it acquires it."""
    for _ in range(100):
        try:
            victim.do(f"evict 0..{sealed - 1}", "evicting")
            return
        except tiny.Failed as failed:
            if "leased" not in str(failed):
                raise
        victim.do("status", "status")
    raise tiny.Failed("a page stayed leased")


class Wrong(Exception):
    """Something that must hold does not."""


@dataclasses.dataclass
class Plan:
    """How one round kills."""

    number: int
    phase: str
    lossy: bool
    hold: bool  # stands still in the phase; else it is killed right after it was seen there
    turn: int  # in which the phase is looked for
    count: int  # how many times it is passed first
    delay_ms: float

    @classmethod
    def of(cls, number: int, chance: random.Random) -> Plan:
        phase = list(PHASES)[number % len(PHASES)]
        turn = chance.randrange(1 if phase == "restore" else 0, TURNS)
        # A first prefill that finds its pages at others seals only what it adds.
        most = 1 if phase == "seal" and turn == 0 else PHASES[phase]
        return cls(
            number=number,
            phase=phase,
            lossy=chance.random() < (0.5 if phase == "acknowledge" else 0.15),
            hold=chance.random() < 0.6,
            turn=turn,
            count=chance.randint(1, most),
            delay_ms=chance.random() * 3,
        )


class Bystander(threading.Thread):
    """An engine that decodes its episode again and again, each time in a process of its own."""

    def __init__(self, rounds: KillRounds, episode: str):
        super().__init__(name=episode, daemon=True)
        self.rounds = rounds
        self.episode = episode
        self.full = rounds.world.full(episode)
        self.runs = 0
        self.turns = 0
        self.wrong: list[str] = []
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.is_set() and not self.wrong:
            try:
                self.decode_once()
            except (tiny.Failed, OSError) as failure:
                self.wrong.append(f"{self.episode}: {failure}")

    def decode_once(self) -> None:
        engine = self.rounds.engine(self.episode, f"--session {self.episode}-{self.runs}")
        try:
            turns = []
            for _ in range(TURNS):
                turns.append(engine.turn())
                self.turns += 1
            if not self.full.agrees(turns):
                self.wrong.append(f"{self.episode}: run {self.runs} differs")
            if turns[-1]["recomputed_tokens"]:
                self.wrong.append(f"{self.episode}: run {self.runs} computed tokens again")
            engine.do("forget", "forgetting")
        finally:
            engine.stop()
        self.runs += 1


class KillRounds:
    def __init__(self, build: pathlib.Path, seed: int):
        self.world = tiny.World(build)
        self.chance = random.Random(seed)
        self.full = self.world.full(VICTIM)
        pages = int(self.full.turns[-1]["pages"])
        # Three sessions of this size on less than two sessions' pages.
        self.daemon = self.world.daemon(device__pages=pages * 9 // 5, host__pages=pages * 8)
        self.killed: collections.Counter[str] = collections.Counter()
        self.lost_tokens: list[int] = []

    def engine(self, episode: str, flags: str, **values: object) -> tiny.Engine:
        base = "--commands --socket {socket} --episode {episode} "
        command = tiny.words(
            base + flags, socket=self.daemon.folder, episode=self.world.episode(episode), **values
        )
        log = self.world.folder / f"engine-{episode}.err"
        return tiny.Engine(self.world.programs, log, *command, threads=1)

    def await_that(self, what: str, holds: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise Wrong(f"did not happen in {WAIT_SECONDS:.0f} s: {what}")
            select.select([], [], [], 0.01)

    def round(self, plan: Plan) -> str:
        name = f"v-{plan.number}"
        seen = self.kill(plan, name)
        self.killed[plan.phase] += 1
        self.await_that(f"{name} is orphaned", lambda: self.state(name) == "orphaned")
        flags = "--resume {name} --follow {f}" if plan.lossy else "--resume {name}"
        heir = self.engine(VICTIM, flags, name=name, f=self.full.events)
        try:
            taken, first = heir.ready["resumed_tokens"], heir.ready["turn"]
            lost = seen - taken
            self.lost_tokens.append(lost)
            # What was sealed stays; a seal that was on its way when the process died may not.
            if lost >= 2 * PAGE_TOKENS:
                raise Wrong(f"{lost} tokens lost, {taken} taken over")
            turns = [heir.turn() for _ in range(TURNS - first)]
            self.compare(plan, heir, turns, first)
            heir.do("forget", "forgetting")
        finally:
            heir.stop()
        if not self.daemon.check():
            raise Wrong(self.daemon.ctl("check"))
        how = "held" if plan.hold else f"+{plan.delay_ms:.1f} ms"
        mode = "lossy" if plan.lossy else "exact"
        return f"{plan.phase:<11} {how:<8} {mode} killed at {seen:>3} tokens, {taken:>3} taken over"

    def state(self, name: str) -> str:
        return str(self.daemon.session(name)["state"])

    def kill(self, plan: Plan, name: str) -> int:
        """Kills an engine in the planned phase; how many tokens it had computed."""
        mode = "--mode lossy --budget 40% --chunk 32 --follow {f} " if plan.lossy else ""
        victim = self.engine(VICTIM, f"{mode}--session {name} --trace", f=self.full.events)
        computed = 0
        try:
            for _ in range(plan.turn):
                computed = victim.turn()["computed_tokens"]
            if plan.phase == "restore":
                sealed = victim.do("status", "status")["sealed_pages"]
                evict_all(victim, sealed)
            if plan.hold:
                victim.do(f"hold {plan.phase} {plan.count}", "holding")
            victim.send("turn")
            passed = 0
            while True:
                event = victim.next_event()
                if event is None:
                    raise Wrong(f"engine ended by itself in {plan.phase}")
                computed = max(computed, event.get("computed_tokens", 0))
                passed += event.get("phase") == plan.phase
                if event["event"] == "hold" or (not plan.hold and passed >= plan.count):
                    break
                if event["event"] in ("parked", "error"):
                    raise Wrong(f"the phase {plan.phase} did not come: {event}")
            if not plan.hold:
                select.select([], [], [], plan.delay_ms / 1000)
            victim.kill()
            while (event := victim.next_event()) is not None:
                computed = max(computed, event.get("computed_tokens", 0))
        finally:
            victim.stop()
        return computed

    def compare(
        self, plan: Plan, heir: tiny.Engine, turns: list[dict[str, Any]], first: int
    ) -> None:
        if plan.lossy:
            heir.do("unpark", "unparked")
            heir.do("repair", "repaired")
        elif not self.full.agrees(turns, first):
            raise Wrong("the resumed session's tokens or logits differ")
        logits = heir.do("logits", "logits")["logits_sha256"]
        if logits != self.full.last:
            raise Wrong("the logits at the end differ")
        pages = heir.do("pages hash", "pages")["list"]
        hashes = [page.get("sha256") for page in pages]
        if hashes[: len(self.full.pages)] != self.full.pages:
            raise Wrong("bytes of a page differ")

    def leaked_slots(self) -> int:
        """After every session is forgotten nothing may be left."""
        address = self.daemon.metrics_address
        deadline = time.monotonic() + WAIT_SECONDS
        while (slots := outside.occupied_slots(address)) and time.monotonic() < deadline:
            select.select([], [], [], 0.05)
        return slots


def files_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def run(arguments: argparse.Namespace) -> int:
    rounds = KillRounds(arguments.build, arguments.seed)
    bystanders = [Bystander(rounds, episode) for episode in BYSTANDERS]
    for bystander in bystanders:
        bystander.start()
    pid = rounds.daemon.process.pid
    warm_up = max(3, int(arguments.rounds * WARM_UP_SHARE))
    before = (0, 0, 0)
    wrong = []
    for number in range(arguments.rounds):
        if number == warm_up:
            before = (outside.anonymous_bytes(pid), outside.resident_bytes(pid), files_of(pid))
        plan = Plan.of(number, rounds.chance)
        try:
            print(f"round {number + 1:>3}: {rounds.round(plan)}", flush=True)
        except (Wrong, tiny.Failed) as failure:
            wrong.append(f"round {number + 1} ({plan}): {failure}")
            print(f"round {number + 1:>3}: WRONG {plan}: {failure}", flush=True)
            if len(wrong) >= 5:
                break
        wrong += [text for bystander in bystanders for text in bystander.wrong]
    after = (outside.anonymous_bytes(pid), outside.resident_bytes(pid), files_of(pid))
    for bystander in bystanders:
        bystander.ending.set()
    for bystander in bystanders:
        bystander.join(WAIT_SECONDS)
        wrong += [text for text in bystander.wrong if text not in wrong]
    leaked = rounds.leaked_slots()
    growth = [b - a for a, b in zip(before, after, strict=True)]
    if leaked:
        wrong.append(f"{leaked} slots leaked; {rounds.daemon.ctl('sessions')}")
    if not rounds.daemon.check():
        wrong.append("memdecayctl check finds a difference")
    if growth[0] > GROWTH_BYTES or growth[2] > GROWTH_FILES:
        wrong.append(f"the daemon grew by {growth[0]} bytes and {growth[2]} open files")
    rounds.world.close()
    killed = ", ".join(f"{phase} {rounds.killed[phase]}" for phase in PHASES)
    print(f"killed: {killed}")
    print(
        f"meanwhile: {sum(b.runs for b in bystanders)} whole sessions,"
        f" {sum(b.turns for b in bystanders)} turns decoded by others;"
        f" most tokens lost in one kill: {max(rounds.lost_tokens, default=0)}"
    )
    print(
        f"daemon after warming up: own memory {growth[0] / 2**20:+.2f} MiB,"
        f" RSS {growth[1] / 2**20:+.2f} MiB, open files {growth[2]:+d}; leaked slots: {leaked}"
    )
    for text in wrong:
        print(f"WRONG: {text}")
    good = sum(rounds.killed.values()) - len(wrong)
    print(f"{max(good, 0)} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=tiny.build_folder())
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
