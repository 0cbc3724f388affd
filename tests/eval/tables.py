"""The tables of RESULTS.md, as Markdown.

Each table names the model's size, the number of scenarios and what a cell is. A share stands with
its 95 % interval; a difference that is clear of 0 is set in bold.
Not here: statistics (bootstrap.py), the prose around (analyse.py), figures (figures.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import bootstrap
from results import (
    COLUMNS,
    UNUSED,
    USED,
    USED_OPENING,
    USED_RANDOM,
    Array,
    Group,
    Results,
    Row,
    Run,
)

MODEL = "SmolLM2-135M-Instruct, 135M parameters"
# Attention is nothing to them, so neither is how it is observed.
BLIND = (
    "full", "oracle", "random", "random+pin", "lru", "lru+pin",
    "streaming", "streaming+pin", "truncation", "truncation+pin",
)  # fmt: skip
REGIONS = ("plan", "user", "tool_in", "tool_out", "retrieval", "scratchpad")


def number(value: float) -> str:
    return "–" if value != value else f"{value:.2f}".replace("0.", ".", 1)


def share(estimate: bootstrap.Estimate) -> str:
    if estimate.value != estimate.value:
        return "–"
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


def signed(value: float) -> str:
    return "–" if value != value else f"{value:+.2f}".replace("0.", ".", 1)


def difference(estimate: bootstrap.Estimate) -> str:
    if estimate.value != estimate.value:
        return "–"
    text = f"{signed(estimate.value)} [{signed(estimate.low)}, {signed(estimate.high)}]"
    return f"**{text}**" if estimate.clear_of_zero() else text


def name_of(run: Run, plain: Run) -> str:
    """What sets the run apart from `plain`."""
    text = f"`{run.policy}`"
    if run.variant != "default":
        text += f", {run.variant}"
    if run.policy in BLIND:
        return text
    if run.channel != plain.channel:
        text += f", heads: {run.channel}"
    if run.sampling != plain.sampling:
        text += f", every {run.sampling}th token" if run.sampling > 1 else ", every token"
    if run.queries != plain.queries:
        text += ", told together" if run.queries == "mean" else ""
    if run.prefill != plain.prefill:
        text += f", prefill {run.prefill}"
    return text


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines)) + "\n"


def caption(text: str, scenarios: int, seen: str) -> str:
    return f"*{text} {MODEL}; N = {scenarios} scenarios; {seen}.*\n"


def retention(
    results: Results, runs: Sequence[Run], budget: int, plain: Run, weights: Array
) -> str:
    """Facts kept, by kind."""
    lines = []
    for run in runs:
        if not results.rows_of(run, budget):
            continue
        cells = [
            share(bootstrap.share(results.cell(run, budget, group), weights)) for group in COLUMNS
        ]
        lines.append([name_of(run, plain), *cells])
    return table(["policy", *(group.name for group in COLUMNS)], lines)


def against(
    results: Results, one: Run, others: Sequence[Run], budget: int, plain: Run, weights: Array
) -> str:
    """`one` minus each other on used facts, with the scenarios won and lost."""
    lines = []
    for other in others:
        if other == one or not results.rows_of(other, budget):
            continue
        cells = []
        for group in (USED_OPENING, USED_RANDOM):
            mine = results.cell(one, budget, group)
            theirs = results.cell(other, budget, group)
            won, lost, tied = bootstrap.wins(mine, theirs)
            cells.append(difference(bootstrap.difference(mine, theirs, weights)))
            cells.append(f"{won} : {lost} : {tied}")
        lines.append([name_of(other, plain), *cells])
    head = ["against", "used, opening", "won : lost : even", "used, random", "won : lost : even"]
    return table(head, lines)


def ablations(
    results: Results, default: Run, runs: Sequence[Run], budgets: Sequence[int], weights: Array
) -> str:
    """Used facts of each variant, and the variant minus the default."""
    lines = []
    for run in (default, *runs):
        cells = []
        for budget in budgets:
            for group in (USED, UNUSED):
                cell = results.cell(run, budget, group)
                text = number(cell.mean)
                if run != default:
                    base = results.cell(default, budget, group)
                    text += f" ({difference(bootstrap.difference(cell, base, weights))})"
                cells.append(text)
        lines.append([name_of(run, default) if run != default else "**default**", *cells])
    head = ["variant"]
    head += [f"{group.name}, {budget} %" for budget in budgets for group in (USED, UNUSED)]
    return table(head, lines)


def ways(results: Results, policies: Sequence[str], budget: int) -> str:
    """Used facts, opening / random, by policy and way of observing."""

    def way(run: Run) -> tuple[str, int, str, str]:
        return run.channel, run.sampling, run.queries, run.prefill

    runs = results.runs(
        lambda run: run.mode == "once" and run.variant == "default" and run.policy in policies
    )
    columns = sorted({way(run) for run in runs}, key=lambda w: (w[3] != "observed", w))
    head = ["policy"]
    for channel, sampling, queries, prefill in columns:
        text = channel if sampling == 1 else f"{channel}, {queries} of {sampling}"
        head.append(text if prefill == "observed" else f"{text}, prefill {prefill}")
    lines = []
    for policy in policies:
        cells = []
        for column in columns:
            run = next((r for r in runs if r.policy == policy and way(r) == column), None)
            pair = [
                number(results.cell(run, budget, group).mean) if run else "–"
                for group in (USED_OPENING, USED_RANDOM)
            ]
            cells.append(" / ".join(pair))
        lines.append([f"`{policy}`", *cells])
    return table(head, lines)


def by_region(results: Results, runs: Sequence[Run], budget: int, plain: Run) -> str:
    groups = [
        Group(f"{region}, {'used' if used else 'unused'}", used=used, region=region)
        for region in REGIONS
        for used in (True, False)
    ]
    asked = {
        group: sum(results.cell(run, budget, group).asked.sum() for run in runs) for group in groups
    }
    groups = [group for group in groups if asked[group] > 0]
    lines = [
        [name_of(run, plain)] + [number(results.cell(run, budget, group).mean) for group in groups]
        for run in runs
        if results.rows_of(run, budget)
    ]
    return table(["policy", *(group.name for group in groups)], lines)


def residency(results: Results, runs: Sequence[Run], budgets: Sequence[int], plain: Run) -> str:
    """What was held, what was kept, and what answering every probe would cost."""
    lines = []
    for run in runs:
        for budget in budgets:
            if not results.rows_of(run, budget):
                continue
            mean, peak = results.residency(run, budget)
            kept = [results.cell(run, budget, group) for group in (USED, UNUSED)]
            cost = [number(1 - cell.mean) for cell in kept]
            lines.append(
                [name_of(run, plain), f"{budget} %", number(mean), number(peak)]
                + [number(cell.mean) for cell in kept]
                + cost
            )
    head = ["policy", "budget", "mean residency", "peak residency", "used kept", "unused kept",
            "restores a used probe", "restores an unused probe"]  # fmt: skip
    return table(head, lines)


def probes(rows: Sequence[Row], plain: Run) -> str:
    """The validation's lines: what the model answers, by probe and whether the page was there."""
    kinds = sorted({row["probe"] for row in rows})
    by: dict[tuple[Run, int], list[Row]] = {}
    for row in rows:
        by.setdefault((Run.of(row), row["budget"]), []).append(row)
    lines = []
    for run, budget in sorted(by):
        cells = [name_of(run, plain), f"{budget} %"]
        for kind in kinds:
            here = [row for row in by[run, budget] if row["probe"] == kind]
            cells.append(f"{_right(here)} ({len(here)})")
            cells += [_right([row for row in here if row["kept"] == kept]) for kept in (1, 0)]
        lines.append(cells)
    head = ["policy", "budget"]
    head += [text for kind in kinds for text in (f"{kind} (asked)", "kept", "gone")]
    return table(head, lines)


def _right(rows: Sequence[Row]) -> str:
    return number(sum(row["right"] for row in rows) / len(rows)) if rows else "–"
