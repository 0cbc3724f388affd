#!/usr/bin/env python3
"""Adds up what ctest wrote (JUnit files) and prints the closing lines of tests/run.sh.

Why JUnit and not ctest's text: skipped tests are told apart there, with their reasons. The last
line is `N passed, N failed, N skipped`; exit 1 when something failed or nothing ran.
Scenario files are counted from the closing lines of the runs of memdecay-scenario.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

KINDS = ("passed", "failed", "skipped")
CLOSING = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


def scenario_counts(name: str, output: str) -> tuple[str, int, int, int] | None:
    """World and counts when this test was a run of scenario files."""
    if not name.startswith(("scenario", "golden")):
        return None
    found = CLOSING.findall(output)
    if not found:
        return None
    world = "real" if "real" in name else "sim"
    passed, failed, skipped = (int(n) for n in found[-1])
    return world, passed, failed, skipped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra-failures", type=int, default=0, help="failed builds")
    parser.add_argument("junit", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()

    totals: collections.Counter[str] = collections.Counter(failed=arguments.extra_failures)
    scenarios: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for path in arguments.junit:
        preset = path.stem
        if not path.is_file():
            print(f"{preset}: no results; ctest did not run")
            totals["failed"] += 1
            continue
        counts: collections.Counter[str] = collections.Counter()
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name, status = case.get("name", ""), case.get("status", "run")
            output = case.findtext("system-out") or ""
            if status == "fail":
                counts["failed"] += 1
                print(f"FAILED  {preset}: {name}")
            elif status == "notrun" and "Unable to find" in output:
                counts["failed"] += 1
                print(f"FAILED  {preset}: {name} (its program was not built)")
            elif status in ("notrun", "disabled"):
                counts["skipped"] += 1
                reason = re.search(r"SKIPPED: (.*)|Skipped\n(.*)|GTEST_SKIP.*", output)
                print(f"skipped {preset}: {name}" + (f" ({reason.group(0)})" if reason else ""))
            else:
                counts["passed"] += 1
            if found := scenario_counts(name, output):
                world, *numbers = found
                key = f"{world}, {preset}"
                scenarios[key].update(dict(zip(KINDS, numbers, strict=True)))
        print(f"{preset}: " + ", ".join(f"{counts[k]} {k}" for k in KINDS))
        totals.update(counts)
    for key in sorted(scenarios):
        count = scenarios[key]
        print(
            f"scenarios ({key}): {sum(count.values())} files,"
            f" {count['passed']} pass, {count['failed']} fail, {count['skipped']} skip"
        )
    if not scenarios:
        print("scenarios: 0 files ran")
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped")
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
