"""Too little memory: sessions take turns by themselves; a lossy one forgets and is repaired."""

from __future__ import annotations

import unittest

import tiny
from tiny import TURNS, outside


class Memory(tiny.EngineTest):
    def test_three_sessions_at_once_in_a_pool_for_less_than_two(self) -> None:
        names = ("one", "two", "three")
        fulls = [self.world.full(name) for name in names]
        pages = max(full.turns[-1]["pages"] for full in fulls)
        daemon = self.world.daemon(device__pages=pages * 3 // 2, host__pages=pages * 4)
        engines = [self.world.session(daemon, name) for name in names]
        turns = [[] for _ in names]
        for _ in range(TURNS):
            for engine in engines:  # all of them compute at the same time
                engine.send("turn")
            for index, engine in enumerate(engines):
                turns[index].append(engine.wait_for("turn"))
        for full, own in zip(fulls, turns, strict=True):
            self.assertTrue(full.agrees(own))
            self.assertEqual(own[-1]["recomputed_tokens"], 0)
        self.assertGreater(outside.total(daemon.metrics_address, "evictions_total"), 0)
        for engine in engines:
            engine.stop()
        self.assertTrue(daemon.check())

    def test_a_lossy_session_stays_in_its_budget_and_can_be_repaired(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=128, host__pages=128)
        flags = "--mode lossy --budget 40% --lockstep --follow {f} --chunk 32"
        engine = self.world.session(daemon, "plain", flags, f=full.events)
        budget = engine.ready["budget_pages"]
        with outside.ResidencyWatch(daemon.metrics_address, 0.005) as watch:
            turns = [engine.turn() for _ in range(TURNS)]
            watch.look()
        self.assertLessEqual(watch.most, budget)
        self.assertGreater(turns[-1]["hole_pages"], 0)
        self.assertGreater(turns[-1]["approximate_pages"], 0)
        engine.do("unpark", "unparked")
        self.assertNotEqual(engine.do("logits", "logits")["logits_sha256"], full.last)
        repaired = engine.do("repair", "repaired")
        self.assertGreater(repaired["repair_tokens"], 0)
        self.assertEqual(repaired["hole_pages"], 0)
        self.assertEqual(repaired["approximate_pages"], 0)
        self.assertEqual(engine.do("logits", "logits")["logits_sha256"], full.last)

    def test_lockstep_makes_a_lossy_run_repeatable(self) -> None:
        hashes = []
        for _ in range(2):
            daemon = self.world.daemon(device__pages=128, host__pages=128)
            flags = "--mode lossy --budget 40% --lockstep --chunk 32"
            engine = self.world.session(daemon, "plain", flags)
            hashes.append([engine.turn()["logits_sha256"] for _ in range(TURNS)])
            engine.stop()
            daemon.stop()
        self.assertEqual(hashes[0], hashes[1])


if __name__ == "__main__":
    unittest.main()
