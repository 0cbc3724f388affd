"""kill -9: what was sealed stays, another process goes on, and the answers are the same."""

from __future__ import annotations

import select
import time
import unittest

import tiny
from tiny import PAGE_TOKENS, TURNS


class Kill(tiny.EngineTest):
    def orphaned(self, daemon: tiny.Daemon, name: str) -> None:
        deadline = time.monotonic() + 20
        while daemon.session(name)["state"] != "orphaned":
            self.assertLess(time.monotonic(), deadline, "the death was not noticed")
            select.select([], [], [], 0.01)

    def resume(self, kill_turn: int, kill_token: int) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=64, host__pages=64)
        victim = self.world.session(daemon, "plain", "--session v --trace")
        for _ in range(kill_turn):
            victim.turn()
        victim.send("turn")
        for _ in range(kill_token):
            token = victim.wait_for("token")
        victim.kill()
        self.orphaned(daemon, "v")
        heir = self.world.session(daemon, "plain", "--resume v")
        taken = heir.ready["resumed_tokens"]
        self.assertLess(token["computed_tokens"] - taken, PAGE_TOKENS)
        turns = [heir.turn() for _ in range(TURNS - heir.ready["turn"])]
        self.assertTrue(full.agrees(turns, heir.ready["turn"]))
        again = token["computed_tokens"] - taken + turns[0]["recomputed_tokens"]
        self.assertLess(again, 2 * PAGE_TOKENS)
        heir.do("forget", "forgetting")
        heir.stop()
        self.assertTrue(daemon.check())

    def test_killed_early_in_an_answer(self) -> None:
        self.resume(kill_turn=1, kill_token=2)

    def test_killed_late_in_an_answer(self) -> None:
        self.resume(kill_turn=2, kill_token=22)

    def test_killed_in_the_first_prefill(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=64, host__pages=64)
        victim = self.world.session(daemon, "plain", "--session v --chunk 20 --hold write:4")
        victim.send("turn")
        victim.wait_for("hold")
        victim.kill()
        self.orphaned(daemon, "v")
        heir = self.world.session(daemon, "plain", "--resume v")
        self.assertEqual(heir.ready["resumed_tokens"], 60 // PAGE_TOKENS * PAGE_TOKENS)
        self.assertTrue(full.agrees([heir.turn() for _ in range(TURNS)]))

    def test_a_living_engines_session_is_not_taken(self) -> None:
        daemon = self.world.daemon(device__pages=64)
        owner = self.world.session(daemon, "plain", "--session v")
        owner.turn()
        with self.assertRaisesRegex(tiny.Failed, "busy"):
            _ = self.world.session(daemon, "plain", "--resume v").ready

    def test_an_ended_session_goes_on(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=64, host__pages=64)
        first = self.world.session(daemon, "plain", "--session v")
        first.turn()
        first.stop()
        second = self.world.session(daemon, "plain", "--resume v")
        start = second.ready["turn"]
        self.assertTrue(full.agrees([second.turn() for _ in range(TURNS - start)], start))


if __name__ == "__main__":
    unittest.main()
