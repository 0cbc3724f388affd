"""memdecay-eval replay on made-up recordings and a real daemon; no model.

Usage: test_replay.py MEMDECAY_EVAL
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()
HERE = pathlib.Path(__file__).resolve().parent
RUNS = [
    {"policy": "memdecay_n", "sampling": [1, 16], "queries": "mean"},
    {"policy": "h2o+pin", "channel": "both"},
    {"policy": "random+pin", "as": "oracle", "pin_facts": True, "set": {"policy.seed": "{seed}"}},
]
PLAN = {"channels": {"both": "all+late"}, "runs": RUNS}


class Replay(unittest.TestCase):
    folder: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        make = [sys.executable, "-B", str(HERE / "synthetic.py"), str(cls.folder), "made", "1", "2"]
        subprocess.run(make, check=True)

    def replay(
        self, results: str, plan: object = PLAN, *flags: str, set_name: str = "made"
    ) -> subprocess.CompletedProcess[str]:
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        words = ["replay", "--recordings", str(self.folder), "--set", set_name, "--plan", str(path)]
        words += ["--results", str(self.folder / results), *flags]
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=100)

    def lines(self, results: str) -> list[str]:
        return (self.folder / results).read_text().splitlines(keepends=True)

    def test_falling_budgets_keep_what_budgets_apart_keep(self) -> None:
        self.assertEqual(self.replay("falling").returncode, 0)
        self.assertEqual(self.replay("apart", PLAN, "--apart").returncode, 0)
        self.assertEqual(self.lines("falling"), self.lines("apart"))
        rows = [json.loads(line) for line in self.lines("falling")]
        self.assertEqual(len(rows), 2 * 4 * 2 * 10)  # recordings, runs, budgets, facts
        for row in rows:
            self.assertEqual(row["resident"], row["pages"] * row["budget"] // 100)
            if row["policy"] == "oracle" or row["region"] == "system":
                self.assertEqual(row["kept"], 1, row)
        self.assertIn(0, {row["kept"] for row in rows})

    def test_an_interrupted_replay_goes_on_and_gives_the_same(self) -> None:
        self.assertEqual(self.replay("whole").returncode, 0)
        whole = self.lines("whole")
        (self.folder / "cut").write_text("".join(whole[:47]) + whole[47][:30])
        self.assertEqual(self.replay("cut").returncode, 0)
        self.assertEqual(self.lines("cut"), whole)

    def test_plans_that_say_nothing_sensible_are_refused(self) -> None:
        for plan, word in (
            ({"runs": []}, "no runs"),
            ({"runs": [{"policy": "lru", "budget": 25}]}, "unknown key budget"),
            ({"runs": [{"variant": "a"}]}, "names no policy"),
            ({"budgets": [25, 50], "runs": [{"policy": "lru"}]}, "falling"),
            ({"runs": [{"policy": "lru", "sampling": 0}]}, "sampling 0"),
            ({"runs": [{"policy": "lru", "queries": "some"}]}, "last or mean"),
            ({"runs": [{"policy": "lru"}, {"policy": "lru"}]}, "twice"),
        ):
            asked = self.replay("refused", plan)
            self.assertEqual(asked.returncode, 1, plan)
            self.assertIn(word, asked.stderr)
            self.assertFalse((self.folder / "refused").exists())

    def test_recordings_that_are_none_are_refused(self) -> None:
        trace = self.folder / "odd-1.trace"
        facts = json.loads((self.folder / "made-1.facts.json").read_text())
        (self.folder / "odd-1.facts.json").write_text(json.dumps(facts))
        head = '{"memdecay_trace":1,"page_tokens":16,"sinks":4,"regions":["system"]}\n'
        seal = '{"t":0,"e":"seal","s":1,"p":%d,"n":16,"r":[[0,16]]}\n'
        for text, word in (
            (head, "no page was sealed"),
            (head + seal % 1, "seals page 1 after 0"),
            (head + seal % 0 + '{"t":0,"e":"lost","events":3}\n', "lost events"),
            (head + seal % 0, "fact0 is nowhere"),
        ):
            trace.write_text(text)
            asked = self.replay("odd", {"runs": [{"policy": "lru"}]}, set_name="odd")
            self.assertNotEqual(asked.returncode, 0)
            self.assertIn(word, asked.stderr)


if __name__ == "__main__":
    unittest.main()
