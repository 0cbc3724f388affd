"""The scenarios are what they claim to be: the same for a seed, unused facts truly unused."""

from __future__ import annotations

import collections
import json
import re
import unittest
from typing import Any

import generate
import words

SEEDS = range(8)


def texts(episode: dict[str, Any], *, with_uses: bool) -> str:
    """Everything that is said but the facts themselves."""
    parts = []
    for segment in [*episode["prefill"], episode["answer"], *episode["decode"]]:
        for block in segment["blocks"]:
            if "text" in block and (with_uses or "use" not in block):
                parts.append(block["text"])
        parts += segment["padding"]
    return " ".join(parts)


def holds(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None


class Scenarios(unittest.TestCase):
    def setUp(self) -> None:
        self.episodes = [generate.scenario("test", seed) for seed in SEEDS]

    def test_a_seed_is_one_episode_and_another_seed_another(self) -> None:
        again = [json.dumps(generate.scenario("test", seed)) for seed in SEEDS]
        self.assertEqual(again, [json.dumps(episode) for episode in self.episodes])
        self.assertEqual(len(set(again)), len(SEEDS))
        self.assertNotEqual(generate.scenario("other", 0)["facts"], self.episodes[0]["facts"])

    def test_every_episode_has_every_place_used_and_unused(self) -> None:
        places = [
            (region, planting)
            for region in generate.REGIONS
            for planting in ("opening", "random")
        ] + [("system", "opening")]
        for episode in self.episodes:
            found = collections.Counter(
                (row["region"], row["planting"], row["use"] != "none") for row in episode["facts"]
            )
            wanted = {(*place, used): 1 for place in places for used in (False, True)}
            self.assertEqual(found, wanted)

    def test_over_the_seeds_a_place_is_quoted_as_often_as_mentioned(self) -> None:
        uses = collections.Counter(
            (row["id"], row["use"]) for episode in self.episodes for row in episode["facts"]
        )
        for (fact, use), count in uses.items():
            if use != "none":
                self.assertEqual(count, len(SEEDS) // 2, (fact, use))

    def test_facts_are_planted_once_where_they_belong(self) -> None:
        for episode in self.episodes:
            planted = collections.Counter()
            for segment in episode["prefill"]:
                for block in segment["blocks"]:
                    if "fact" in block:
                        planted[block["fact"]] += 1
                        row = episode["facts"][block["fact"]]
                        self.assertEqual(row["region"], segment["region"])
            self.assertEqual(planted, dict.fromkeys(range(len(episode["facts"])), 1))

    def test_an_unused_fact_and_its_options_do_not_come_again(self) -> None:
        for episode in self.episodes:
            said = texts(episode, with_uses=True)
            for row in episode["facts"]:
                if row["use"] != "none":
                    continue
                kind, owner = row["key"].split(" for ")
                for word in (kind, owner, *row["options"]):
                    self.assertFalse(holds(said, word), f"{episode['seed']}: {word}")

    def test_a_used_fact_comes_once_and_only_a_quoted_one_with_its_value(self) -> None:
        for episode in self.episodes:
            self.assertFalse(
                any(
                    holds(texts(episode, with_uses=False), word)
                    for row in episode["facts"]
                    for word in (row["key"].split(" for ")[1], *row["options"])
                )
            )
            uses = {
                block["use"]: block["text"]
                for segment in episode["decode"]
                for block in segment["blocks"]
                if "use" in block
            }
            for index, row in enumerate(episode["facts"]):
                self.assertEqual(index in uses, row["use"] != "none")
                if index in uses:
                    self.assertTrue(holds(uses[index], row["key"].split(" for ")[1]))
                    self.assertEqual(holds(uses[index], row["value"]), row["use"] == "quoted")

    def test_no_value_has_two_kinds_and_no_sentence_holds_one(self) -> None:
        values = [value.lower() for pool in words.KINDS.values() for value in pool]
        self.assertEqual(len(values), len(set(values)))
        said = " ".join(texts(episode, with_uses=False) for episode in self.episodes).lower()
        spoken = set(re.findall(r"\w+", said))
        self.assertEqual(spoken & set(values), set())
        self.assertTrue(all(len(pool) >= generate.OPTIONS for pool in words.KINDS.values()))


if __name__ == "__main__":
    unittest.main()
