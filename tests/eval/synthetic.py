#!/usr/bin/env python3
"""Recordings without a model: `synthetic.py OUT SET FIRST_SEED COUNT` writes traces and facts.

Why: replay and tables are to be tested where no model is, with an attention whose truth is known:
it falls with distance, and used facts are attended to when they are used. Not here: what a real
model attends to (memdecay-eval record).
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
from typing import Any

PAGE_TOKENS = 16
PREFILL_PAGES = 60
DECODED = 96
CHUNK_PAGES = 12
REGIONS = ("system", "plan", "user", "tool_in", "tool_out", "retrieval", "scratchpad")
SYSTEM_PAGES = 6
CHANNELS = ("all", "late")


def region_of(page: int) -> int:
    if page < SYSTEM_PAGES:
        return 0
    if page >= PREFILL_PAGES:
        return 6
    return 1 + (page // 3) % 5


def plant(rng: random.Random) -> list[dict[str, Any]]:
    opening = range(SYSTEM_PAGES + 1, SYSTEM_PAGES + 9)
    middle = range(SYSTEM_PAGES + 9, PREFILL_PAGES - 4)
    places = [(1, "opening"), (2, "opening")]
    places += [(page, "opening") for page in rng.sample(opening, 4)]
    places += [(page, "random") for page in rng.sample(middle, 4)]
    facts = []
    for number, (page, planting) in enumerate(places):
        used = number % 2 == 0
        facts.append(
            {
                "id": f"fact{number}",
                "region": REGIONS[region_of(page)],
                "planting": planting,
                "used": used,
                "pages": [page],
                "used_at_step": rng.randrange(10, DECODED - 30) if used else None,
            }
        )
    return facts


def masses(
    sealed: int, position: int, looked_at: list[int], rng: random.Random
) -> tuple[float, float, list[list[float]]]:
    """Sink, tail and the pages' masses of one query."""
    weights = []
    for page in range(sealed):
        distance = max(1, position - page * PAGE_TOKENS)
        weight = rng.uniform(0.5, 1.5) / distance
        weights.append(weight + (0.2 if page in looked_at else 0.0))
    total = sum(weights) + 0.1
    share = 0.5  # the sinks take the rest
    listed = [[float(page), share * w / total] for page, w in enumerate(weights)]
    tail = share * 0.1 / total
    return 1.0 - share, tail, listed


def events(rng: random.Random, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"e": "open", "s": 1, "tenant": 1, "mode": "lossy", "policy": "none"}
    ]
    sealed = 0

    def seal() -> None:
        nonlocal sealed
        lines.append({"e": "seal", "s": 1, "p": sealed, "n": 16, "r": [[region_of(sealed), 16]]})
        sealed += 1

    def observe(step: int, position: int, queries: int, looked_at: list[int]) -> None:
        for channel in CHANNELS:
            sink, tail, listed = masses(sealed, position, looked_at, rng)
            lines.append(
                {"e": "obs", "s": 1, "step": step, "q": position, "nq": queries, "sink": sink,
                 "tail": tail, "rest": 0.0, "m": listed, "c": channel}
            )  # fmt: skip

    while sealed < PREFILL_PAGES:
        for _ in range(min(CHUNK_PAGES, PREFILL_PAGES - sealed)):
            seal()
        observe(0, sealed * PAGE_TOKENS - 1, CHUNK_PAGES * PAGE_TOKENS, [])
    for step in range(1, DECODED + 1):
        position = PREFILL_PAGES * PAGE_TOKENS + step - 1
        used = [f for f in facts if f["used"] and 0 <= step - f["used_at_step"] < 4]
        observe(step, position, 1, [page for fact in used for page in fact["pages"]])
        if (position + 1) % PAGE_TOKENS == 0:
            seal()
    lines.append({"e": "end", "s": 1})
    return lines


def write(folder: pathlib.Path, name: str, seed: int) -> None:
    rng = random.Random(seed)
    facts = plant(rng)
    header = {"memdecay_trace": 1, "page_tokens": PAGE_TOKENS, "sinks": 4, "regions": REGIONS}
    trace = [header, *({"t": 0.0, **line} for line in events(rng, facts))]
    stem = folder / f"{name}-{seed}"
    with gzip.open(f"{stem}.trace.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in trace)
    sidecar = {"seed": seed, "pages": PREFILL_PAGES + DECODED // PAGE_TOKENS,
               "prefill_pages": PREFILL_PAGES, "facts": facts, "instruction_pages": []}  # fmt: skip
    pathlib.Path(f"{stem}.facts.json").write_text(json.dumps(sidecar), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Writes recordings of a made-up attention.",
        epilog="example: synthetic.py /tmp/traces made 1 4",
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("set")
    parser.add_argument("first_seed", type=int)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.count):
        write(arguments.folder, arguments.set, seed)


if __name__ == "__main__":
    main()
