#!/usr/bin/env python3
"""Scenarios for the evaluation: one synthetic agent episode a seed, as JSON.

Why: what a policy keeps is only worth measuring where it is known which page holds what, whether
anything ever used it, and where it stood; so facts are planted by a design and not found in texts.
Invariants: the same set and seed give the same bytes; no two facts of an episode share a kind, and
no word that a fact may have as its value stands anywhere else, except where the fact is used; in
every episode each of user, tool_out and retrieval has a used and an unused fact both in the opening
block and in a random later one.
Not here: words (words.py), tokens and pages (scenario.cc), what happens to them.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
from typing import Any

import words

FORMAT = 1
OPTIONS = 8
REGIONS = ("user", "tool_out", "retrieval")
LATER_TURNS = 3
QUESTION = "Please repeat what was noted, word for word."

Block = dict[str, Any]


class Facts:
    """The facts of one episode: kinds and owners without repetition."""

    def __init__(self, dice: random.Random):
        self._dice = dice
        self._kinds = dice.sample(sorted(words.KINDS), len(words.KINDS))
        self._owners = dice.sample(words.OWNERS, len(words.OWNERS))
        self.rows: list[dict[str, Any]] = []

    def options(self, kind: str) -> tuple[str, list[str]]:
        """A value and the eight words to choose among, in random order."""
        options = self._dice.sample(words.KINDS[kind], OPTIONS)
        return options[0], sorted(options)

    def add(self, region: str, planting: str, use: str) -> Block:
        kind = self._kinds.pop()
        value, options = self.options(kind)
        self.rows.append(
            {
                "id": f"{region}-{planting}-{'unused' if use == 'none' else 'used'}",
                "region": region,
                "planting": planting,
                "use": use,
                "key": f"{kind} for {self._owners.pop()}",
                "value": value,
                "options": options,
            }
        )
        return {"fact": len(self.rows) - 1}


def _mixed(dice: random.Random, texts: list[str], planted: list[Block]) -> list[Block]:
    """The texts in order, the planted blocks at random places between and behind them."""
    blocks: list[Block] = [{"text": text} for text in texts]
    for block in planted:
        blocks.insert(dice.randint(1, len(blocks)), block)
    return blocks


def _turn(
    dice: random.Random, planted: dict[str, list[Block]], sizes: dict[str, int], plan: bool
) -> list[Block]:
    """Segments of one turn: the user speaks, tools are called, documents are found."""

    def segment(role: str, region: str) -> Block:
        texts = [words.sentence(dice, region) for _ in range(sizes[region])]
        return {
            "role": role,
            "region": region,
            "blocks": _mixed(dice, texts, planted.get(region, [])),
            "padding": words.padding(dice, region),
        }

    order = [("user", "user")]
    order += [("assistant", "plan")] if plan else []
    order += [("assistant", "tool_in"), ("tool", "tool_out"), ("tool", "retrieval")]
    order += [("assistant", "scratchpad")]
    return [segment(role, region) for role, region in order]


def _decoded(dice: random.Random, rows: list[dict[str, Any]]) -> list[Block]:
    """What the agent writes afterwards: thoughts that use the facts, with tool calls in between."""
    uses: list[Block] = []
    for index, row in enumerate(rows):
        if row["use"] == "quoted":
            text = f" I noted that the {row['key']} is {row['value']}, so that is settled."
        elif row["use"] == "mentioned":
            kind, owner = row["key"].split(" for ")
            text = f" Something was said about {owner} and its {kind}; I keep that in mind."
        else:
            continue
        uses.append({"use": index, "text": text})
    dice.shuffle(uses)
    segments: list[Block] = []
    cuts = [uses[: len(uses) // 2], uses[len(uses) // 2 :]]
    for part, some in enumerate(cuts):
        blocks: list[Block] = []
        for use in some:
            blocks += [{"text": words.sentence(dice, "scratchpad")}, use]
        blocks.append({"text": words.sentence(dice, "scratchpad")})
        segments.append(
            {
                "region": "scratchpad",
                "blocks": blocks,
                "padding": words.padding(dice, "scratchpad"),
            }
        )
        if part == 0:
            segments.append(
                {
                    "region": "tool_in",
                    "blocks": [{"text": words.sentence(dice, "tool_in")}],
                    "padding": words.padding(dice, "tool_in"),
                }
            )
    return segments


def scenario(name: str, seed: int) -> dict[str, Any]:
    """The whole episode of one seed of the set `name`."""
    dice = random.Random(f"memdecay evaluation {FORMAT} {name} {seed}")
    facts = Facts(dice)
    # Half of the used facts are quoted, half only mentioned; over the seeds each place has both.
    turn_of_use = seed

    def use() -> str:
        nonlocal turn_of_use
        turn_of_use += 1
        return "quoted" if turn_of_use % 2 == 0 else "mentioned"

    system_facts = [facts.add("system", "opening", use()), facts.add("system", "opening", "none")]
    dice.shuffle(system_facts)
    opening: dict[str, list[Block]] = {}
    later: list[dict[str, list[Block]]] = [{} for _ in range(LATER_TURNS)]
    for region in REGIONS:
        pair = [facts.add(region, "opening", use()), facts.add(region, "opening", "none")]
        opening[region] = dice.sample(pair, 2)
        for block in (facts.add(region, "random", use()), facts.add(region, "random", "none")):
            dice.choice(later).setdefault(region, []).append(block)
    opening["user"].insert(0, {"instruction": True})
    value, options = facts.options(facts._kinds.pop())
    system_texts = [words.SYSTEM, *(words.sentence(dice, "system") for _ in range(4))]
    segments: list[Block] = [
        {
            "role": "system",
            "region": "system",
            "blocks": _mixed(dice, system_texts, system_facts),
            "padding": words.padding(dice, "system"),
        }
    ]
    segments += _turn(dice, opening, words.OPENING_SENTENCES, plan=True)
    for planted in later:
        segments += _turn(dice, planted, words.LATER_SENTENCES, plan=False)
    return {
        "memdecay_scenario": FORMAT,
        "set": name,
        "seed": seed,
        "prefill": segments,
        "answer": {
            "region": "scratchpad",
            "blocks": [{"text": words.sentence(dice, "scratchpad")}],
            "padding": words.padding(dice, "scratchpad"),
        },
        "decode": _decoded(dice, facts.rows),
        "facts": facts.rows,
        "instruction": {"value": value, "options": options},
        "question": QUESTION,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", required=True, help="name of the set of seeds, like tune or held")
    parser.add_argument("--seeds", required=True, help="first and one past the last, like 0:32")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for SET-SEED.json")
    chosen = parser.parse_args()
    first, last = (int(part) for part in chosen.seeds.split(":"))
    chosen.out.mkdir(parents=True, exist_ok=True)
    for seed in range(first, last):
        text = json.dumps(scenario(chosen.set, seed), indent=1)
        (chosen.out / f"{chosen.set}-{seed}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
