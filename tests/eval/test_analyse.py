"""Tables and statistics on results whose truth is known: `test_analyse.py` (unittest; numpy)."""

from __future__ import annotations

import json
import pathlib
import tempfile
import unittest

import analyse
import bootstrap
import numpy as np
import results
import tables
from results import Cell, Run


def row(seed: int, policy: str, kept: int, **other: object) -> dict[str, object]:
    base: dict[str, object] = {
        "set": "made", "seed": seed, "mode": "once", "policy": policy, "variant": "default",
        "channel": "late", "sampling": 1, "queries": "last", "prefill": "observed", "budget": 25,
        "fact": "a", "region": "user", "planting": "random", "used": True, "kept": kept,
        "pages": 100, "resident": 25,
    }  # fmt: skip
    return {**base, **other}


class Statistics(unittest.TestCase):
    def test_the_interval_of_a_share_covers_it_as_often_as_it_says(self) -> None:
        chance = np.random.default_rng(7)
        covered = 0
        for _ in range(200):
            # Scenarios differ, and their four facts are alike.
            kept = chance.binomial(4, chance.choice([0.2, 0.8], 40)).astype(float)
            cell = Cell(kept, np.full(40, 4.0))
            estimate = bootstrap.share(cell, bootstrap.draws(40, 500))
            covered += estimate.low <= 0.5 <= estimate.high
        self.assertGreaterEqual(covered, 178)
        self.assertLessEqual(covered, 199)

    def test_a_difference_is_paired_within_scenarios(self) -> None:
        base = np.tile([0.0, 4.0], 20)  # scenarios differ much
        one, other = Cell(base + [1.0, 0.0] * 20, np.full(40, 5.0)), Cell(base, np.full(40, 5.0))
        estimate = bootstrap.difference(one, other, bootstrap.draws(40))
        self.assertAlmostEqual(estimate.value, 0.1)
        self.assertGreater(estimate.low, 0.06)
        self.assertTrue(estimate.clear_of_zero())
        self.assertEqual(bootstrap.wins(one, other), (20, 0, 20))

    def test_scenarios_that_one_side_lacks_are_left_out_of_the_difference(self) -> None:
        one, other = (
            Cell(np.array([2.0, 2.0]), np.array([2.0, 2.0])),
            Cell(np.array([1.0, 0.0]), np.array([2.0, 0.0])),
        )
        self.assertAlmostEqual(bootstrap.difference(one, other, bootstrap.draws(2)).value, 0.5)


class Reading(unittest.TestCase):
    def read(self, rows: list[dict[str, object]], tail: str = "") -> results.Results:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "results.jsonl"
            path.write_text("".join(json.dumps(r) + "\n" for r in rows) + tail, encoding="utf-8")
            return results.read([path], "made")

    def test_a_line_that_stands_twice_counts_once_and_other_sets_not_at_all(self) -> None:
        read = self.read([row(1, "lru", 0), row(1, "lru", 1), row(2, "lru", 0, set="other")])
        cell = read.cell(Run("lru", channel="late"), 25, results.USED_RANDOM)
        self.assertEqual((cell.kept.sum(), cell.asked.sum()), (1.0, 1.0))

    def test_a_broken_line_is_named(self) -> None:
        with self.assertRaisesRegex(SystemExit, "line 2 is no result"):
            self.read([row(1, "lru", 0)], '{"set": "made", "se')


class Report(unittest.TestCase):
    def test_wins_and_losses_are_told_apart(self) -> None:
        rows = []
        for seed in range(40):
            for fact in range(4):
                other = {"fact": str(fact), "planting": "opening" if fact % 2 else "random"}
                rows.append(row(seed, "memdecay_n", 1, **other))
                rows.append(row(seed, "h2o", 0 if fact % 2 else 1, **other))
        study = analyse.Study(
            results.Results(rows), [], Run("memdecay_n", channel="late"), bootstrap.draws(40)
        )
        text = analyse.wins_and_losses(study, 25)
        self.assertIn("*used, opening*: above `h2o`.", text)
        self.assertIn("*used, random*: not told apart from `h2o`.", text)

    def test_numbers_are_written_as_in_the_tables(self) -> None:
        self.assertEqual(tables.number(0.5), ".50")
        self.assertEqual(tables.number(1.0), "1.00")
        self.assertEqual(tables.difference(bootstrap.Estimate(-0.2, -0.3, -0.1)),
                         "**-.20 [-.30, -.10]**")  # fmt: skip
        self.assertEqual(tables.difference(bootstrap.Estimate(0.0, -0.1, 0.1)),
                         "+.00 [-.10, +.10]")  # fmt: skip

    def test_seeds_are_written_as_ranges(self) -> None:
        self.assertEqual(analyse.spans([1, 2, 3, 7, 9, 10]), "1–3, 7, 9–10")


if __name__ == "__main__":
    unittest.main()
