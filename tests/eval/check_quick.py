#!/usr/bin/env python3
"""What must hold of a quick run's results, whatever the model attends to: `check_quick.py FILE`.

With two scenarios no figure means anything; these are facts of the mechanism. Exit 1 and a sentence
for each that is broken.
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections import Counter
from typing import Any

FACTS = 14  # of a scenario
PINNED = ("memdecay_n", "memdecay", "h2o+pin")


def problems(rows: list[dict[str, Any]]) -> list[str]:
    found = []
    for row in rows:
        name = f"{row['policy']} seed {row['seed']} budget {row['budget']} {row['fact']}"
        if row["resident"] != row["pages"] * row["budget"] // 100:
            found.append(
                f"{name}: {row['resident']} of {row['pages']} pages: the budget is not met"
            )
        if row["policy"] in ("full", "oracle") and row["kept"] != 1:
            found.append(f"{name}: {row['policy']} keeps every fact")
        if row["policy"] in PINNED and row["region"] == "system" and row["kept"] != 1:
            found.append(f"{name}: a pinned page left")
    counts = Counter(
        (r["policy"], r["sampling"], r["queries"], r["seed"], r["budget"]) for r in rows
    )
    found += [f"{key}: {n} facts, not {FACTS}" for key, n in counts.items() if n != FACTS]
    for policy in (*PINNED, "full", "oracle", "random", "h2o"):
        if all(row["policy"] != policy for row in rows):
            found.append(f"{policy}: no line")
    dropped = [row for row in rows if row["policy"] == "random" and not row["kept"]]
    if not dropped:
        found.append("random: it dropped nothing")
    return found


def main() -> int:
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    found = problems([json.loads(line) for line in lines])
    for problem in found:
        print(f"check_quick: {problem}")
    print(f"check_quick: {len(lines)} lines, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
