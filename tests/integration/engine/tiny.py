"""What the engine's tests share: a tiny model, tiny episodes, runs to compare with.

Why: the tiny model has random weights and pages of 4 KiB, so a whole session takes a fraction of a
second, and any byte that goes wrong still changes every later row of logits.
Processes are those of deploy/quickstart/processes.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "deploy" / "quickstart"))

import outside  # noqa: E402, F401
from processes import Daemon, Engine, Event, Failed, Programs, words  # noqa: E402, F401

PAGE_TOKENS = 16
TURNS = 4
GENERATE = 24
REGIONS = ("plan", "tool_in", "tool_out", "retrieval", "scratchpad")


def build_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("MEMDECAY_BUILD", ROOT / "build" / "release"))


def episode_json(name: str) -> dict[str, Any]:
    """About 130 tokens a turn; every text names the episode, so nothing is shared by accident."""
    turns = []
    for turn in range(TURNS):
        segments = [{"role": "user", "region": "user", "text": f"{name}: question {turn}, hello?"}]
        region = REGIONS[turn % len(REGIONS)]
        role = "tool" if region == "tool_out" else "assistant"
        segments.append(
            {
                "role": role,
                "region": region,
                "text": f"{region} of {name}, part {turn}: " + "ab" * 20,
            }
        )
        pause = "waiting_tool" if turn % 2 == 0 else "waiting_user"
        turns.append({"segments": segments, "generate": GENERATE, "pause": pause})
    return {"name": name, "system": f"You are {name}. Be brief and exact.", "turns": turns}


class World:
    """A folder with the tiny model, episodes and daemons; goes away with everything in it."""

    def __init__(self, build: pathlib.Path) -> None:
        self.stack = contextlib.ExitStack()
        prefix = "memdecay-test-"
        self.folder = pathlib.Path(
            self.stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        )
        model = self.folder / "tiny.gguf"
        subprocess.run([build / "tests" / "memdecay-tiny-model", model], check=True)
        self.programs = Programs(build / "bin", model, self.folder)
        self.count = 0

    def episode(self, name: str) -> pathlib.Path:
        path = self.folder / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(episode_json(name)))
        return path

    def daemon(self, **settings: Any) -> Daemon:
        """Keys with __ for dots."""
        self.count += 1
        given = {key.replace("__", "."): value for key, value in settings.items()}
        folder = self.folder / f"d{self.count}"
        return self.stack.enter_context(Daemon(self.programs, folder, given))

    def engine(self, flags: str, threads: int = 1, **values: object) -> Engine:
        self.count += 1
        log = self.folder / f"e{self.count}.err"
        engine = Engine(self.programs, log, *words(flags, **values), threads=threads)
        return self.stack.enter_context(engine)

    def session(self, daemon: Daemon, episode: str, flags: str = "", **values: object) -> Engine:
        base = "--commands --socket {socket} --episode {episode} "
        path = self.episode(episode)
        return self.engine(base + flags, socket=daemon.folder, episode=path, **values)

    def full(self, episode: str, threads: int = 1) -> Full:
        events = self.folder / f"full-{episode}-{threads}.jsonl"
        flags = "--standalone --commands --episode {episode} --logits {events}"
        engine = self.engine(flags, threads, episode=self.episode(episode), events=events)
        turns = [engine.turn() for _ in range(TURNS)]
        last = engine.do("logits", "logits")
        pages = engine.do("pages hash", "pages")["list"]
        engine.stop()
        return Full(turns, last["logits_sha256"], [page.get("sha256") for page in pages], events)

    def close(self) -> None:
        self.stack.close()


class Full:
    """A run with unlimited memory of its own."""

    def __init__(
        self, turns: list[Event], last: str, pages: list[str | None], events: pathlib.Path
    ) -> None:
        self.turns = turns
        self.last = last  # SHA-256 of the logits after the last token
        self.pages = pages  # SHA-256 of each sealed page's bytes, None for the open one
        self.events = events

    def agrees(self, turns: list[Event], first: int = 0) -> bool:
        """Whether these turns, the last ones of a run, have the tokens and rows of this one."""
        return all(
            turn["generated"] == full["generated"][turn["first_row"] :]
            and turn["rows"] == full["rows"][turn["first_row"] :]
            for turn, full in zip(turns, self.turns[first:], strict=True)
        )


class EngineTest(unittest.TestCase):
    """A world of its own for each test."""

    def setUp(self) -> None:
        self.world = World(build_folder())
        self.addCleanup(self.world.close)
