"""The figures of RESULTS.md, as SVG and PNG.

Drawn with matplotlib without a display; fonts stay text in the SVG. Not here: what the numbers are
(results.py, bootstrap.py).
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import bootstrap
import matplotlib
import tables
from results import UNUSED, USED, USED_OPENING, USED_RANDOM, Array, Results, Run

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

matplotlib.rcParams.update(
    {"svg.fonttype": "none", "svg.hashsalt": "memdecay", "font.size": 9, "axes.grid": True,
     "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False}
)  # fmt: skip
_OURS = "#c0392b"
_OTHERS = "#34495e"


def save(figure: Figure, folder: pathlib.Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=130, metadata={"Software": None})
    plt.close(figure)


def retention(
    results: Results, runs: Sequence[Run], budget: int, plain: Run, weights: Array
) -> Figure:
    """Used facts by policy, opening beside random, with intervals."""
    runs = [run for run in runs if results.rows_of(run, budget)]
    runs = sorted(runs, key=lambda run: results.cell(run, budget, USED).mean)
    figure, axes = plt.subplots(1, 2, figsize=(9, 0.6 + 0.24 * len(runs)), sharey=True)
    for axis, group in zip(axes, (USED_OPENING, USED_RANDOM), strict=True):
        for at, run in enumerate(runs):
            estimate = bootstrap.share(results.cell(run, budget, group), weights)
            colour = _OURS if run == plain else _OTHERS
            reach = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
            axis.errorbar(estimate.value, at, xerr=reach, fmt="o", color=colour, capsize=2, ms=4)
        axis.set_title(f"facts {group.name}, kept at {budget} %")
        axis.set_xlim(-0.02, 1.02)
    axes[0].set_yticks(range(len(runs)), [tables.name_of(run, plain).strip("`") for run in runs])
    figure.text(0.99, 0.005, f"{tables.MODEL}; N = {len(results.seeds)}", ha="right", size=7)
    return figure


def pareto(results: Results, runs: Sequence[Run], plain: Run) -> Figure:
    """Each policy and budget: pages that a probe has to wait for, against pages held."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for axis, group in zip(axes, (USED, UNUSED), strict=True):
        for at, run in enumerate(runs):
            points = []
            for budget in results.budgets(run):
                cell = results.cell(run, budget, group)
                points.append((results.residency(run, budget)[0], 1 - cell.mean))
            ours = run == plain
            axis.plot(*zip(*points, strict=True), "-", marker="osD^v<>Px*"[at % 10], ms=4,
                      lw=2.5 if ours else 1, color=_OURS if ours else f"C{at % 10}",
                      label=run.policy)  # fmt: skip
        axis.set_title(f"facts {group.name}")
        axis.set_xlabel("pages held, share of all")
    axes[0].set_ylabel("pages restored a probe (recall 1)")
    axes[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.text(0.99, 0.005, f"{tables.MODEL}; N = {len(results.seeds)}", ha="right", size=7)
    return figure
