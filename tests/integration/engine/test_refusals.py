"""What the engine refuses: its words name what was asked, what was there and what to do."""

from __future__ import annotations

import subprocess
import unittest

import tiny
from tiny import words


class Refusals(tiny.EngineTest):
    def run_engine(self, flags: str, **values: object) -> tuple[int, str]:
        command = [str(self.world.programs.engine), *words(flags, **values)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stdout + ended.stderr

    def test_no_daemon_there(self) -> None:
        code, text = self.run_engine(
            "--model {model} --episode {episode} --socket {folder}",
            model=self.world.programs.model,
            episode=self.world.episode("plain"),
            folder=self.world.folder,
        )
        self.assertEqual(code, 1)
        self.assertIn("unavailable", text)

    def test_a_model_file_that_ends_early(self) -> None:
        whole = self.world.programs.model.read_bytes()
        cut = self.world.folder / "cut.gguf"
        cut.write_bytes(whole[: len(whole) // 2])
        code, text = self.run_engine("--model {cut} --prompt hello --standalone", cut=cut)
        self.assertEqual(code, 1)
        self.assertIn("data_loss", text)

    def test_a_model_that_is_not_there(self) -> None:
        code, text = self.run_engine("--model {no} --prompt hi --standalone", no="/nowhere.gguf")
        self.assertEqual(code, 1)
        self.assertIn("not_found", text)

    def test_flags_that_contradict_each_other(self) -> None:
        base = "--model {model} --prompt hello "
        for flags in ("--standalone --mode lossy", "--standalone --resume x", "--budget 25%"):
            code, text = self.run_engine(base + flags, model=self.world.programs.model)
            self.assertEqual(code, 2, text)
        code, _ = self.run_engine("--model {model}", model=self.world.programs.model)
        self.assertEqual(code, 2)

    def test_help_has_an_example(self) -> None:
        code, text = self.run_engine("--help")
        self.assertEqual(code, 0)
        self.assertIn("examples:", text)

    def test_a_wrong_command_is_answered_and_the_next_one_works(self) -> None:
        daemon = self.world.daemon(device__pages=64)
        engine = self.world.session(daemon, "plain")
        _ = engine.ready
        for command in ("dance", "evict 3..1", "park lying", "generate", "logits", "evict 99"):
            engine.send(command)
            event = engine.next_event()
            self.assertEqual(event["event"], "error", command)
            self.assertTrue(event["asked"], command)
        self.assertEqual(engine.turn()["turn"], 0)

    def test_resuming_with_another_episode(self) -> None:
        daemon = self.world.daemon(device__pages=64)
        first = self.world.session(daemon, "plain", "--session v")
        first.turn()
        first.stop()
        with self.assertRaisesRegex(tiny.Failed, "not those of episode other"):
            _ = self.world.session(daemon, "other", "--resume v").ready

    def test_a_prompt_is_answered(self) -> None:
        events = self.world.folder / "prompt.jsonl"
        code, text = self.run_engine(
            "--model {model} --prompt hello --standalone --generate 5 --logits {events}",
            model=self.world.programs.model,
            events=events,
        )
        self.assertEqual(code, 0, text)
        self.assertIn('"event":"answered"', events.read_text())


if __name__ == "__main__":
    unittest.main()
