"""What the parts of the quickstart share: folders, progress, the report and its checks.

Invariant: a figure in the report was measured in this run; a check that fails is remembered and
makes the run fail at its end, so that one run shows everything.
"""

from __future__ import annotations

import pathlib
import time
from dataclasses import dataclass, field
from typing import Any

from processes import Programs


@dataclass(frozen=True)
class Check:
    part: str
    what: str
    holds: bool
    seen: str


@dataclass
class Show:
    programs: Programs
    folder: pathlib.Path
    started: float = field(default_factory=time.monotonic)
    report: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)  # page maps and explanations, for the end

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    def check(self, part: str, what: str, holds: bool, seen: object) -> None:
        self.checks.append(Check(part, what, bool(holds), str(seen)))
        if not holds:
            self.say(f"  NOT SO: {what}: {seen}")

    def failed(self) -> list[Check]:
        return [check for check in self.checks if not check.holds]

    def path(self, name: str) -> pathlib.Path:
        return self.folder / name


def print_checks(show: Show) -> None:
    width = max(len(check.what) for check in show.checks)
    print("\npart       check".ljust(width + 12) + "     seen")
    for check in show.checks:
        mark = "ok " if check.holds else "NOT"
        print(f"{check.part:<10} {check.what:<{width}}  {mark} {check.seen}")
