"""The same bits, wherever pages live and whatever happened to them meanwhile."""

from __future__ import annotations

import unittest

import tiny
from tiny import PAGE_TOKENS, TURNS


class Bits(tiny.EngineTest):
    def test_a_daemon_changes_no_bit(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=128)
        engine = self.world.session(daemon, "plain")
        turns = [engine.turn() for _ in range(TURNS)]
        self.assertEqual(
            [turn["logits_sha256"] for turn in turns],
            [turn["logits_sha256"] for turn in full.turns],
        )
        engine.do("unpark", "unparked")
        pages = engine.do("pages hash", "pages")["list"]
        hashes = [page.get("sha256") for page in pages]
        self.assertEqual(hashes[: len(full.pages)], full.pages)
        self.assertEqual(turns[-1]["recomputed_tokens"], 0)

    def test_threads_change_no_bit(self) -> None:
        one, two = self.world.full("plain"), self.world.full("plain", threads=2)
        self.assertTrue(one.agrees(two.turns))
        self.assertEqual(one.pages, two.pages)

    def test_pages_that_left_and_came_back_are_the_same_bytes(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=64, host__pages=64)
        engine = self.world.session(daemon, "plain", "--follow {f} --grants-ahead 0", f=full.events)
        before = engine.do("replay", "replayed")
        engine.do("park tool", "parked")
        engine.do(f"evict 0..{before['sealed_pages'] - 1}", "evicting")
        after = engine.do("logits", "logits")
        self.assertEqual(after["logits_sha256"], before["logits_sha256"])
        self.assertEqual(after["logits_sha256"], full.last)
        pages = engine.do("pages hash", "pages")["list"]
        self.assertEqual([page.get("sha256") for page in pages], full.pages)
        engine.stop()
        self.assertTrue(daemon.check())

    def test_a_second_engine_reads_the_first_ones_slots(self) -> None:
        full = self.world.full("plain")
        daemon = self.world.daemon(device__pages=64)
        first = self.world.session(daemon, "plain")
        first.turn()
        second = self.world.session(daemon, "plain")
        turns = [second.turn() for _ in range(TURNS)]
        shared = (turns[0]["prompt_tokens"] - 1) // PAGE_TOKENS
        self.assertGreater(shared, 0)
        self.assertEqual(turns[0]["shared_tokens"], shared * PAGE_TOKENS)
        self.assertTrue(full.agrees(turns))
        rows = [engine.do("pages", "pages")["list"] for engine in (first, second)]
        places = [[(page["slab"], page["slot"]) for page in row[:shared]] for row in rows]
        self.assertEqual(places[0], places[1])

    def test_an_engine_without_sharing_computes_everything(self) -> None:
        daemon = self.world.daemon(device__pages=64)
        self.world.session(daemon, "plain").turn()
        turn = self.world.session(daemon, "plain", "--no-share").turn()
        self.assertEqual(turn["shared_tokens"], 0)
        self.assertEqual(turn["prefilled_tokens"], turn["prompt_tokens"])


if __name__ == "__main__":
    unittest.main()
