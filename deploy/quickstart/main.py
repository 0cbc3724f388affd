#!/usr/bin/env python3
"""The quickstart: a real model decodes on pages that memdecayd owns, in six parts.

Usage: deploy/quickstart.sh (which builds first). Standard library only.
Exit code: 0 if every check holds. Writes report.json, and what the processes said, into --out.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

from baseline import GREEDY_TOKENS, run_baseline
from part_exact import run_exact
from part_lossy import run_lossy
from part_share import run_shared
from processes import Failed, Programs
from show import Show, print_checks

EPISODES = ("cold_chain", "night_train", "bridge_survey")


def run(show: Show) -> None:
    show.say("full: three sessions with unlimited memory, to compare with")
    baselines = [
        run_baseline(show, name, GREEDY_TOKENS if name == EPISODES[0] else 1) for name in EPISODES
    ]
    show.say("exact: the same three share 40 % of their pages and take turns")
    run_exact(show, baselines)
    show.say("lossy: one session at 25 % of its pages")
    run_lossy(show, baselines[0])
    run_shared(show, baselines[0])


def table(report: dict) -> str:
    lines = []
    for part, values in report.items():
        if not isinstance(values, dict):
            lines.append(f"{part:<10} {values}")
            continue
        for key, value in values.items():
            if isinstance(value, dict):
                value = ", ".join(f"{k} {v}" for k, v in value.items())
            elif isinstance(value, float):
                value = f"{value:.4f}"
            lines.append(f"{part:<10} {key:<26} {value}")
            part = ""
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--episodes", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--started", type=float, help="time.monotonic() when the script began")
    arguments = parser.parse_args()

    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    # Sockets have short paths only in a short folder.
    work = pathlib.Path(tempfile.mkdtemp(prefix="memdecay-"))
    show = Show(Programs(arguments.bin, arguments.model, arguments.episodes), work)
    if arguments.started is not None:
        show.started = arguments.started
    broken = None
    try:
        run(show)
    except Failed as failure:
        broken = str(failure)
    finally:
        for log in [*work.glob("*.err"), *work.glob("*.jsonl"), *work.glob("*/memdecayd.log")]:
            name = f"{log.parent.name}.log" if log.name == "memdecayd.log" else log.name
            shutil.copyfile(log, arguments.out / name)
        shutil.rmtree(work)
    show.report["wall_seconds"] = round(time.monotonic() - show.started, 1)
    (arguments.out / "report.json").write_text(json.dumps(show.report, indent=2) + "\n")
    print()
    print("\n".join(show.pictures))
    if show.checks:
        print_checks(show)
    print("\n" + table(show.report))
    print(f"\nreport: {arguments.out / 'report.json'}")
    if broken is not None:
        print(f"\nquickstart: {broken}", file=sys.stderr)
    for check in show.failed():
        print(f"quickstart: NOT SO: {check.part}: {check.what}: {check.seen}", file=sys.stderr)
    return 1 if broken is not None or show.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
