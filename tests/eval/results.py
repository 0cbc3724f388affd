"""What the evaluation's result files say, as arrays: one value a scenario, so that everything that
is compared is compared within scenarios.

Lines are those of replay.h and of `memdecay-eval running`. A line that stands twice counts once.
Not here: intervals (bootstrap.py), tables (tables.py).
"""

from __future__ import annotations

import json
import pathlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True, order=True)
class Run:
    """One way of forgetting: what a column or a row of a table is about."""

    policy: str
    variant: str = "default"
    channel: str = "all"
    sampling: int = 1
    queries: str = "last"
    prefill: str = "observed"
    mode: str = "once"

    @staticmethod
    def of(row: Row) -> Run:
        return Run(
            row["policy"],
            row.get("variant") or "default",
            row.get("channel", "all"),
            int(row.get("sampling", 1)),
            row.get("queries", "last"),
            row.get("prefill", "observed"),
            row["mode"],
        )


@dataclass(frozen=True)
class Group:
    """A kind of fact. None: whatever it is."""

    name: str
    system: bool = False
    used: bool | None = None
    planting: str | None = None
    region: str | None = None

    def holds(self, row: Row) -> bool:
        if (row["region"] == "system") != self.system:
            return False
        return (
            (self.used is None or bool(row["used"]) == self.used)
            and (self.planting is None or row["planting"] == self.planting)
            and (self.region is None or row["region"] == self.region)
        )


SYSTEM = Group("system", system=True)
USED_OPENING = Group("used, opening", used=True, planting="opening")
USED_RANDOM = Group("used, random", used=True, planting="random")
UNUSED_OPENING = Group("unused, opening", used=False, planting="opening")
UNUSED_RANDOM = Group("unused, random", used=False, planting="random")
USED = Group("used", used=True)
UNUSED = Group("unused", used=False)
COLUMNS = (SYSTEM, USED_OPENING, USED_RANDOM, UNUSED_OPENING, UNUSED_RANDOM)


@dataclass
class Cell:
    """Of one run, budget and group: facts kept and facts asked for, by scenario."""

    kept: Array
    asked: Array

    @property
    def mean(self) -> float:
        return float(self.kept.sum() / self.asked.sum()) if self.asked.sum() else float("nan")


@dataclass
class Results:
    rows: list[Row]
    seeds: list[int] = field(default_factory=list)
    _by: dict[tuple[Run, int], list[Row]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.seeds = sorted({row["seed"] for row in self.rows})
        for row in self.rows:
            self._by[Run.of(row), row["budget"]].append(row)

    def runs(self, chosen: Callable[[Run], bool] = lambda run: True) -> list[Run]:
        return sorted({run for run, _ in self._by if chosen(run)})

    def budgets(self, run: Run) -> list[int]:
        return sorted(budget for known, budget in self._by if known == run)

    def rows_of(self, run: Run, budget: int) -> list[Row]:
        return self._by.get((run, budget), [])

    def scenarios(self, run: Run, budget: int) -> int:
        return len({row["seed"] for row in self.rows_of(run, budget)})

    def cell(self, run: Run, budget: int, group: Group) -> Cell:
        place = {seed: at for at, seed in enumerate(self.seeds)}
        cell = Cell(np.zeros(len(self.seeds)), np.zeros(len(self.seeds)))
        for row in self.rows_of(run, budget):
            if group.holds(row):
                cell.kept[place[row["seed"]]] += row["kept"]
                cell.asked[place[row["seed"]]] += 1
        return cell

    def residency(self, run: Run, budget: int) -> tuple[float, float]:
        """Mean and peak of the pages that were there, in shares of all."""
        shares = [
            (
                row.get("resident_mean", row.get("resident", 0)) / row.get("pages", 1),
                row.get("resident_peak", row.get("resident", 0)) / row.get("pages", 1),
            )
            for row in self.rows_of(run, budget)
        ]
        if not shares:
            return float("nan"), float("nan")
        return float(np.mean([s[0] for s in shares])), float(np.max([s[1] for s in shares]))


def read_lines(paths: Iterable[pathlib.Path]) -> list[Row]:
    rows = []
    for path in paths:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    rows.append(json.loads(line))
                except json.JSONDecodeError as error:
                    raise SystemExit(
                        f"analyse: {path} line {number} is no result ({error});"
                        " if a run was interrupted, start it again: it mends its last lines"
                    ) from error
    return rows


def read(paths: Iterable[pathlib.Path], chosen_set: str) -> Results:
    """The retention lines of one set, each once; the last one counts."""
    unique: dict[tuple[Any, ...], Row] = {}
    for row in read_lines(paths):
        if "probe" in row or row.get("set") != chosen_set:
            continue
        unique[Run.of(row), row["seed"], row["budget"], row["fact"]] = row
    return Results(list(unique.values()))
