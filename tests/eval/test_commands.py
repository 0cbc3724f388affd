"""memdecay-eval refuses what it cannot do, in words, before it computes anything.

Usage: test_commands.py MEMDECAY_EVAL
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()


class Refusals(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)

    def live(self, command: str, runs: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"budgets": [25], "runs": runs}))
        results = self.folder / "results.jsonl"
        asked = self.run_it(
            *(command, "--model", "/nowhere.gguf", "--plan", str(plan)),
            *("--results", str(results), "--programs", "/nowhere", "/nowhere.json"),
        )
        self.assertFalse(results.exists())
        return asked

    def test_no_command_is_a_wrong_command_line(self) -> None:
        self.assertEqual(self.run_it().returncode, 2)
        self.assertEqual(self.run_it("record").returncode, 2)

    def test_a_missing_model_is_named(self) -> None:
        out = self.folder / "out"
        asked = self.run_it("record", "--model", "/nowhere.gguf", "--out", str(out), "a.json")
        self.assertEqual(asked.returncode, 1)
        self.assertIn("/nowhere.gguf", asked.stderr)

    def test_running_knows_no_pinned_facts(self) -> None:
        asked = self.live("running", [{"policy": "random+pin", "pin_facts": True}])
        self.assertEqual(asked.returncode, 1)
        self.assertIn("no page to pin", asked.stderr)

    def test_a_plan_without_runs_is_refused(self) -> None:
        asked = self.live("validate", [])
        self.assertEqual(asked.returncode, 1)
        self.assertIn("plan", asked.stderr)


if __name__ == "__main__":
    unittest.main()
