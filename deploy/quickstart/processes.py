"""Real processes of the quickstart: the daemon, engines, and what they say.

Why: everything the quickstart reports comes from processes that a reader could start by hand.
Invariants: a process that was started here is ended here, by its own handle; an answer is waited
for with a deadline; an engine's error event ends the wait with its text.
Not here: what is shown with them (parts_*.py), what is looked up from outside (outside.py).
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import queue
import signal
import subprocess
import threading
import time
from typing import Any

Event = dict[str, Any]

ANSWER_SECONDS = 300.0
STOP_SECONDS = 10.0


class Failed(Exception):
    """Something that must hold does not; the message is for the reader."""


def words(text: str, **values: object) -> list[str]:
    """A command line: split at blanks, then {names} are replaced, whatever is in them."""
    return [word.format(**values) for word in text.split()]


class Programs:
    """Where the built programs and the inputs are."""

    def __init__(self, bin_folder: pathlib.Path, model: pathlib.Path, episodes: pathlib.Path):
        self.daemon = bin_folder / "memdecayd"
        self.engine = bin_folder / "memdecay-engine"
        self.ctl = bin_folder / "memdecayctl"
        self.model = model
        self.episodes = episodes

    def episode(self, name: str) -> str:
        return str(self.episodes / f"{name}.json")


class Daemon:
    """One memdecayd in a folder of its own."""

    def __init__(self, programs: Programs, folder: pathlib.Path, settings: dict[str, Any]):
        folder.mkdir(parents=True)
        self.folder = folder
        self._programs = programs
        config = folder / "memdecayd.yaml"
        chosen = {"metrics.listen": "127.0.0.1:0", "socket.directory": str(folder), **settings}
        config.write_text(_yaml(chosen))
        self._log = (folder / "memdecayd.log").open("w")
        self.process = subprocess.Popen(
            [programs.daemon, "--config", config], stdout=self._log, stderr=self._log
        )
        try:
            self.metrics_address = self._wait_for_status()["metrics_address"]
        except BaseException:
            self.stop()
            raise

    def _wait_for_status(self) -> Event:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                text = (self.folder / "memdecayd.log").read_text()[-2000:]
                raise Failed(f"memdecayd ended with code {self.process.returncode}:\n{text}")
            if (self.folder / "control.sock").exists():
                asked = self._run_ctl("status", "--json")
                if asked.returncode == 0:
                    return json.loads(asked.stdout)
            time.sleep(0.05)
        raise Failed("memdecayd does not answer")

    def _run_ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs.ctl), "--socket", str(self.folder), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def ctl(self, *words: str) -> str:
        """Text of a memdecayctl command that must work."""
        asked = self._run_ctl(*words)
        if asked.returncode != 0:
            raise Failed(f"memdecayctl {' '.join(words)}: {asked.stdout}{asked.stderr}")
        return asked.stdout

    def ask(self, *words: str) -> Event:
        """The same, as JSON."""
        return json.loads(self.ctl(*words, "--json"))

    def session(self, name: str) -> Event:
        for session in self.ask("sessions")["sessions"]:
            if session["name"] == name:
                return session
        raise Failed(f"the daemon has no session {name}")

    def check(self) -> bool:
        return self._run_ctl("check").returncode == 0

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Engine:
    """One memdecay-engine; its events are read as they come."""

    def __init__(self, programs: Programs, log: pathlib.Path, *flags: str, threads: int = 2):
        command = [str(programs.engine), "--model", str(programs.model), "--threads", str(threads)]
        self._errors = log
        self._log = log.open("w")
        self.process = subprocess.Popen(
            [*command, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @functools.cached_property
    def ready(self) -> Event:
        """The event that says that model and session are there; waits for it."""
        return self.wait_for("ready")

    def _read(self) -> None:
        assert self.process.stdout is not None
        # A kill can cut a line short, and stop() closes the pipe: both end the reading.
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self._events.put(json.loads(line))
        self._events.put(None)

    @property
    def pid(self) -> int:
        return self.process.pid

    def next_event(self, seconds: float = ANSWER_SECONDS) -> Event | None:
        """None: the process has closed its output."""
        try:
            return self._events.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"engine {self.pid} says nothing for {seconds:.0f} s") from None

    def wait_for(self, name: str) -> Event:
        while (event := self.next_event()) is not None:
            if event["event"] == name:
                return event
            if event["event"] == "error":
                raise Failed(f"engine {self.pid}: {event}")
        raise Failed(f"engine {self.pid} ended before '{name}': {self._errors.read_text()}")

    def send(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def do(self, command: str, event: str) -> Event:
        self.send(command)
        return self.wait_for(event)

    def turn(self) -> Event:
        """The next turn of the episode, its pause included."""
        _ = self.ready
        event = self.do("turn", "turn")
        self.wait_for("parked")
        return event

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            try:
                self.send("quit")
                self.process.wait(STOP_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._log.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _yaml(settings: dict[str, Any]) -> str:
    """Keys with dots become nested keys."""
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        *parents, last = key.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value

    def lines(node: dict[str, Any], indent: str) -> list[str]:
        out: list[str] = []
        for key, value in node.items():
            if isinstance(value, dict):
                out += [f"{indent}{key}:", *lines(value, indent + "  ")]
            else:
                out.append(f"{indent}{key}: {value}")
        return out

    return "\n".join(lines(tree, "")) + "\n"
