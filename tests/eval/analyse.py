#!/usr/bin/env python3
"""Makes RESULTS.md and its figures from result files.

What was measured stands in the tables; what is expected of it stands in `expectations`, and each is
said to hold or not. Words about it are a file of their own (--reading), put in as they are.
Not here: statistics (bootstrap.py), tables (tables.py), figures (figures.py).
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace

import bootstrap
import tables
from results import (
    SYSTEM,
    UNUSED_OPENING,
    UNUSED_RANDOM,
    USED,
    USED_OPENING,
    USED_RANDOM,
    Array,
    Group,
    Results,
    Row,
    Run,
    read,
    read_lines,
)

HERE = pathlib.Path(__file__).resolve().parent
REFERENCES = ("full", "oracle", "random", "random+pin")
BLIND = tables.BLIND
CLAIMED_OVER = ("h2o+pin", "norm_sum+pin", "snapkv+pin", "tova+pin", "memdecay")


@dataclass
class Study:
    results: Results
    probes: list[Row]
    default: Run
    weights: Array

    def plain(self, mode: str, budget: int) -> list[Run]:
        """Every policy as it is, observed like the default; the default first, references last.

        Running budgets are few, so all of them are given, however they are observed."""
        like = replace(self.default, mode=mode)
        runs = self.results.runs(
            lambda run: (
                run.mode == mode
                and run.variant == "default"
                and (
                    mode == "running"
                    or run.policy in BLIND
                    or run == replace(like, policy=run.policy)
                )
            )
        )
        runs = [run for run in runs if self.results.rows_of(run, budget)]
        return sorted(
            runs,
            key=lambda run: (
                run.policy != self.default.policy,
                run.policy in REFERENCES,
                -self.results.cell(run, budget, USED).mean,
            ),
        )

    def cell_of(self, run: Run, budget: int, group: Group) -> bootstrap.Estimate:
        return bootstrap.share(self.results.cell(run, budget, group), self.weights)

    def gap(self, one: Run, other: Run, budget: int, group: Group) -> bootstrap.Estimate:
        cells = (self.results.cell(one, budget, group), self.results.cell(other, budget, group))
        return bootstrap.difference(*cells, self.weights)


def said(holds: bool) -> str:
    return "holds" if holds else "**does not hold**"


def expectations(study: Study) -> str:
    """What the policy was built to do, and whether it does, at 25 %, once."""
    default, lines = study.default, []
    pinned = [run for run in study.plain("once", 25) if run.policy.endswith("+pin")]
    pinned += [default, replace(default, policy="memdecay")]
    least = min(study.results.cell(run, 25, SYSTEM).mean for run in pinned)
    lines.append(["system facts: policies that pin keep all", tables.number(least),
                  said(least == 1.0)])  # fmt: skip
    for group in (USED_OPENING, USED_RANDOM):
        estimate = study.cell_of(default, 25, group)
        lines.append([f"{group.name}: the default keeps at least .80", tables.share(estimate),
                      said(estimate.value >= 0.8)])  # fmt: skip
    for policy in CLAIMED_OVER:
        other = replace(default, policy=policy)
        if not study.results.rows_of(other, 25):
            continue
        for group in (USED_OPENING, USED_RANDOM):
            estimate = study.gap(default, other, 25, group)
            lines.append([f"{group.name}: the default above `{policy}`",
                          tables.difference(estimate), said(estimate.low > 0)])  # fmt: skip
    for queries, told in (("mean", "the mean of 16 tokens"), ("last", "one of 16 tokens")):
        sparse = replace(default, sampling=16, queries=queries)
        if not study.results.rows_of(sparse, 25):
            continue
        for group in (USED_OPENING, USED_RANDOM):
            estimate = study.gap(sparse, default, 25, group)
            lines.append([f"{group.name}: told every 16th token, {told}: at most .05 lost",
                          tables.difference(estimate), said(estimate.value >= -0.05)])  # fmt: skip
    weak = [replace(default, policy=policy) for policy in ("memdecay", "random+pin", "h2o+pin")]
    user = Group("unused user facts, opening", used=False, planting="opening", region="user")
    weak[1] = _first(study, weak[1])
    values = [study.results.cell(run, 25, user) for run in weak]
    lines.append(
        ["`memdecay` has the paper's weakness: old unused user facts below `h2o+pin`",
         ", ".join(f"`{run.policy}` {tables.number(cell.mean)}"
                   for run, cell in zip(weak, values, strict=True)),
         said(values[0].mean < values[2].mean)]
    )  # fmt: skip
    estimate = study.gap(default, weak[1], 25, UNUSED_RANDOM)
    lines.append(["unused, random: no worse than `random+pin`", tables.difference(estimate),
                  said(estimate.high >= 0)])  # fmt: skip
    return tables.table(["expected", "measured", ""], lines)


def _first(study: Study, run: Run) -> Run:
    """The policy's run, however it was observed: chance does not look."""
    return next(iter(study.results.runs(lambda r: r.policy == run.policy and r.mode == run.mode)))


def wins_and_losses(study: Study, budget: int) -> str:
    """In words: against whom the default is clearly better, clearly worse, neither."""
    text = []
    for group in (USED_OPENING, USED_RANDOM, UNUSED_OPENING, UNUSED_RANDOM):
        sorts: dict[str, list[str]] = {"above": [], "below": [], "not told apart from": []}
        for run in study.plain("once", budget):
            if run == study.default or run.policy in ("full", "oracle"):
                continue
            estimate = study.gap(study.default, run, budget, group)
            sort = ("above" if estimate.low > 0 else "below" if estimate.high < 0
                    else "not told apart from")  # fmt: skip
            sorts[sort].append(f"`{run.policy}`")
        parts = [f"{sort} {', '.join(names)}" for sort, names in sorts.items() if names]
        text.append(f"- *{group.name}*: " + "; ".join(parts) + ".")
    return "\n".join(text) + "\n"


ONCE = "one eviction after the decoded part (*once*)"
RUNNING = "the budget holds all along (*running*)"


class Sections:
    """The tables of the report, each with its caption."""

    def __init__(self, study: Study):
        self.study = study
        self.results = study.results
        self.default = study.default
        self.weights = study.weights

    def noted(self, text: str, body: str, runs: Sequence[Run] = (), budget: int = 25) -> str:
        shown = runs or [self.default]
        count = max((self.results.scenarios(run, budget) for run in shown), default=0)
        seen = ONCE if shown[0].mode == "once" else RUNNING
        return tables.caption(text, count, seen) + "\n" + body

    def expected(self) -> str:
        parts = []
        for channel in (self.default.channel, "chosen"):
            study = replace(self.study, default=replace(self.default, channel=channel))
            text = f"At a budget of 25 %, heads: {channel}."
            parts.append(self.noted(text, expectations(study)))
        return "\n".join(parts)

    def kept_by(self, channel: str, budget: int) -> str:
        default = replace(self.default, channel=channel)
        study = replace(self.study, default=default)
        runs = study.plain("once", budget)
        body = tables.retention(self.results, runs, budget, default, self.weights)
        text = f"Share of facts whose page stays at a budget of {budget} %, heads: {channel}."
        return self.noted(text, body, runs, budget)

    def kept(self, mode: str, budget: int) -> str:
        plain = replace(self.default, mode=mode)
        runs = self.study.plain(mode, budget)
        body = tables.retention(self.results, runs, budget, plain, self.weights)
        text = f"Share of facts whose page stays at a budget of {budget} %."
        return self.noted(text, body, runs, budget)

    def over(self, budget: int) -> str:
        runs = self.study.plain("once", budget)
        others = [run for run in runs if run.policy not in ("full", "oracle")]
        args = (self.default, others, budget, self.default, self.weights)
        text = f"`{self.default.policy}` minus each other at {budget} %, paired; scenarios."
        return self.noted(text, tables.against(self.results, *args))

    def other_ways(self) -> str:
        runs = self.results.runs(lambda run: run.mode == "once" and run.policy not in REFERENCES)
        sampled = {run.policy for run in runs if run.sampling > 1}
        order = sorted(sampled, key=lambda policy: (policy != self.default.policy, policy))
        text = (
            "Used facts kept at 25 %, opening / random, by whose attention is reported and how:"
            " every token's, that of the last of 16 tokens alone, the mean over all 16."
        )
        return self.noted(text, tables.ways(self.results, order, 25))

    def over_best(self, budget: int) -> str:
        best: dict[str, Run] = {}
        for run in self.results.runs(
            lambda run: run.mode == "once" and run.variant == "default" and run.sampling == 1
        ):
            if run.policy in (*REFERENCES, self.default.policy):
                continue
            kept = self.results.cell(run, budget, USED).mean
            known = best.get(run.policy)
            if known is None or kept > self.results.cell(known, budget, USED).mean:
                best[run.policy] = run
        others = sorted(best.values(), key=lambda run: -self.results.cell(run, budget, USED).mean)
        args = (self.default, others, budget, self.default, self.weights)
        text = (
            f"`{self.default.policy}` minus each other at {budget} %, which is observed by those"
            " heads that suit it best."
        )
        return self.noted(text, tables.against(self.results, *args))

    def ablations(self) -> str:
        def way(run: Run) -> tuple[str, int, str]:
            return run.channel, run.sampling, run.queries

        runs = self.results.runs(
            lambda run: (
                run.policy == self.default.policy
                and run.mode == "once"
                and (run.variant != "default" or run.prefill != self.default.prefill)
            )
        )
        parts = []
        for channel, sampling, queries in sorted({way(run) for run in runs}):
            here = [run for run in runs if way(run) == (channel, sampling, queries)]
            default = replace(self.default, channel=channel, sampling=sampling, queries=queries)
            told = "every token" if sampling == 1 else f"the mean of {sampling} tokens"
            text = (
                f"Heads: {channel}, {told}. One thing changed at a time; in brackets the variant"
                " minus the default."
            )
            body = tables.ablations(self.results, default, here, (25, 50), self.weights)
            parts.append(self.noted(text, body))
        return "\n".join(parts)

    def over_running(self, budget: int) -> str:
        default = replace(self.default, mode="running")
        runs = [run for run in self.study.plain("running", budget) if run != default]
        args = (default, runs, budget, default, self.weights)
        text = f"`{default.policy}` minus each other at {budget} %, paired; scenarios."
        return self.noted(text, tables.against(self.results, *args), [default], budget)

    def regions(self) -> str:
        runs = self.study.plain("once", 25)
        body = tables.by_region(self.results, runs, 25, self.default)
        return self.noted("Facts kept at 25 % by region.", body)

    def residency(self, mode: str) -> str:
        runs = self.study.plain(mode, 25)
        body = tables.residency(self.results, runs, (25, 50), replace(self.default, mode=mode))
        text = (
            "Pages held as shares of all, facts kept, and pages restored a probe if each probe"
            f" waits for its page ({mode})."
        )
        return self.noted(text, body, runs)

    def probes(self) -> str:
        rows = self.study.probes
        text = "Right answers: all (number asked), those whose page was there, whose page was gone."
        count = len({row["seed"] for row in rows})
        return tables.caption(text, count, "probes") + "\n" + tables.probes(rows, self.default)

    def all(self) -> list[tuple[str, str]]:
        running = bool(self.results.runs(lambda run: run.mode == "running"))
        listed = [
            ("What was expected", self.expected()),
            ("Wins and losses", wins_and_losses(self.study, 25)),
            ("Facts kept at 25 %, once", self.kept("once", 25)),
            ("Facts kept at 50 %, once", self.kept("once", 50)),
            ("Against the others at 25 %", self.over(25)),
            ("Against the others at 50 %", self.over(50)),
            ("Against the others at their best", self.over_best(25)),
        ]
        if running:
            listed += [
                ("Facts kept at 25 %, running", self.kept("running", 25)),
                ("Against the others at 25 %, running", self.over_running(25)),
            ]
            if self.study.plain("running", 50):
                listed.append(("Facts kept at 50 %, running", self.kept("running", 50)))
        listed += [
            ("Facts kept at 25 % with the chosen heads", self.kept_by("chosen", 25)),
            ("Facts kept at 25 % with all heads", self.kept_by("all", 25)),
            ("What each part is good for", self.ablations()),
            ("Observed otherwise", self.other_ways()),
            ("By region", self.regions()),
            ("Residency, and what restoring would cost", self.residency("once")),
        ]
        if running:
            listed.append(("The same, running", self.residency("running")))
        if self.study.probes:
            listed.append(("Does the page matter? Probes of the model", self.probes()))
        return listed


def spans(seeds: Sequence[int]) -> str:
    """1, 2, 3, 7 as 1–3, 7."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{a}–{b}" if a < b else str(a) for a, b in parts)


def commit() -> str:
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=12"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def document(study: Study, reading: str, command: str, chosen_set: str, at: str) -> str:
    head = (
        "# What forgetting does to a real model\n\n"
        f"{tables.MODEL}. Set `{chosen_set}`, seeds {spans(study.results.seeds)}; commit {at}. "
        f"Made by:\n\n```\n{command}\n```\n\n"
        "`README.md` says how it is measured. Intervals are 95 %, by a bootstrap over scenarios; "
        "differences are paired within scenarios, and bold where the interval is clear of 0. "
        "Constants, heads and tables were chosen on the set `tune`, whose seeds are others.\n"
    )
    body = [f"## {title}\n\n{text}" for title, text in Sections(study).all()]
    figures = (
        "## Figures\n\n![used facts kept at 25 %](figures/retention_25.svg)\n\n"
        "![used facts kept at 50 %](figures/retention_50.svg)\n\n"
        "![pages restored a probe against pages held](figures/pareto.svg)\n"
    )
    return "\n".join([head, reading, *body, figures])


def draw(study: Study, folder: pathlib.Path) -> None:
    import figures  # not needed for tables, and slow to load

    for budget in (25, 50):
        runs = study.plain("once", budget)
        drawn = figures.retention(study.results, runs, budget, study.default, study.weights)
        figures.save(drawn, folder, f"retention_{budget}")
    shown = ("memdecay_n", "memdecay", "h2o", "h2o+pin", "norm_sum+pin", "snapkv+pin", "tova+pin",
             "lru+pin", "random+pin", "oracle")  # fmt: skip
    runs = [run for run in study.plain("once", 25) if run.policy in shown]
    figures.save(figures.pareto(study.results, runs, study.default), folder, "pareto")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Makes RESULTS.md and its figures from result files.",
        epilog="example: analyse.py --set held --out tests/eval build/eval/results/*.jsonl",
    )
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="files of result lines")
    parser.add_argument("--set", required=True, help="which scenarios")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of RESULTS.md")
    parser.add_argument("--reading", type=pathlib.Path, help="words to put in, Markdown")
    parser.add_argument("--command", default="bash tests/eval/run.sh --full")
    parser.add_argument("--commit", default="", help="of the code that measured")
    parser.add_argument("--channel", default="late", help="how the default is observed")
    parser.add_argument("--no-figures", action="store_true")
    arguments = parser.parse_args()
    results = read(arguments.results, arguments.set)
    default = Run("memdecay_n", channel=arguments.channel)
    if not results.rows_of(default, 25):
        raise SystemExit(f"analyse: no line of set {arguments.set} is about {default} at 25 %")
    probes = [row for row in read_lines(arguments.results)
              if "probe" in row and row.get("set") == arguments.set]  # fmt: skip
    study = Study(results, probes, default, bootstrap.draws(len(results.seeds)))
    reading = arguments.reading.read_text(encoding="utf-8") if arguments.reading else ""
    text = document(study, reading, arguments.command, arguments.set, arguments.commit or commit())
    (arguments.out / "RESULTS.md").write_text(text, encoding="utf-8")
    if not arguments.no_figures:
        draw(study, arguments.out / "figures")
    print(f"analyse: {arguments.out}/RESULTS.md, {len(results.seeds)} scenarios")


if __name__ == "__main__":
    main()
