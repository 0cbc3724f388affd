"""Intervals: paired cluster bootstrap over scenarios.

The facts of a scenario share its text and its attention, so scenarios are what is drawn, with
replacement, and all runs are judged on the same draws. Percentile intervals of 95 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from results import Array, Cell

DRAWS = 4000
_SEED = 20260710


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float

    def clear_of_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def draws(scenarios: int, count: int = DRAWS) -> Array:
    """How often each scenario was drawn: [draw, scenario]."""
    chance = np.random.default_rng(_SEED)
    drawn: NDArray[np.int64] = chance.multinomial(scenarios, [1 / scenarios] * scenarios, count)
    return drawn.astype(np.float64)


def _ratio(top: Array, bottom: Array) -> Array:
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def _interval(value: float, samples: Array) -> Estimate:
    if np.isnan(samples).all():
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.nanpercentile(samples, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def share(cell: Cell, weights: Array) -> Estimate:
    return _interval(cell.mean, _ratio(weights @ cell.kept, weights @ cell.asked))


def difference(one: Cell, other: Cell, weights: Array) -> Estimate:
    """one - other, over the scenarios that both have."""
    both = ((one.asked > 0) & (other.asked > 0)).astype(np.float64)
    a = Cell(one.kept * both, one.asked * both)
    b = Cell(other.kept * both, other.asked * both)
    samples = _ratio(weights @ a.kept, weights @ a.asked)
    samples -= _ratio(weights @ b.kept, weights @ b.asked)
    return _interval(a.mean - b.mean, samples)


def wins(one: Cell, other: Cell) -> tuple[int, int, int]:
    """Scenarios in which one keeps more, fewer, as many facts as the other."""
    both = (one.asked > 0) & (other.asked > 0)
    gap = (one.kept - other.kept)[both]
    return int((gap > 0).sum()), int((gap < 0).sum()), int((gap == 0).sum())
