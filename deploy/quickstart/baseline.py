"""The runs that everything is compared with: the same sessions with unlimited private memory.

Why: "the same bits" needs the bits. They are computed anew each time, by the same program.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass

from logits import rows
from processes import Engine, Event
from show import Show

GREEDY_TOKENS = 32


@dataclass
class Baseline:
    episode: str
    events: pathlib.Path  # can be followed by another run
    raw: pathlib.Path
    turns: list[Event]
    greedy: Event  # GREEDY_TOKENS more after the last turn

    @property
    def tokens(self) -> int:
        return int(self.turns[-1]["known_tokens"])

    @property
    def pages(self) -> int:
        return int(self.turns[-1]["pages"])

    def vocabulary(self) -> int:
        count = sum(len(turn["rows"]) for turn in self.turns) + len(self.greedy["rows"])
        return self.raw.stat().st_size // 4 // count

    def rows(self) -> list:
        return rows(self.raw, self.vocabulary())


def run_baseline(show: Show, episode: str, greedy: int) -> Baseline:
    events, raw = show.path(f"full-{episode}.jsonl"), show.path(f"full-{episode}.f32")
    flags = ["--standalone", "--commands", "--episode", show.programs.episode(episode)]
    outputs = ["--logits", str(events), "--raw-logits", str(raw)]
    with Engine(show.programs, show.path(f"full-{episode}.err"), *flags, *outputs) as engine:
        turns = [engine.turn() for _ in range(engine.ready["episode_turns"])]
        more = engine.do(f"generate {greedy}", "generated")
        engine.stop()
    seconds = sum(turn["total_ms"] for turn in turns) / 1000
    tokens = turns[-1]["known_tokens"]
    show.say(f"  {episode}: {len(turns)} turns, {tokens} tokens, {seconds:.1f} s")
    return Baseline(episode, events, raw, turns, more)
