#!/usr/bin/env python3
"""Checks the repository's style: `python3 tests/style/check_style.py [PATH ...]`.

Why: rules that a script checks are not argued about. Prints each problem as file:line, what was
found and what to do instead; exit 1 if there is one. With PATHs only files below them.
Files: those git tracks, and new ones that it does not ignore. Not here: rules, checks.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

import checks

BINARY = (".binpb", ".bin", ".png", ".gguf", ".gz", ".npy", ".patch")


def tracked(root: pathlib.Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return sorted({p for p in listed.split("\0") if p and (root / p).is_file()})


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Checks the style of the repository.",
        epilog="example: python3 tests/style/check_style.py daemon/ledger",
    )
    parser.add_argument("paths", nargs="*", help="files or folders, from the root; default all")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    paths = tracked(root)
    wanted = tuple(p.rstrip("/") for p in arguments.paths)
    problems = list(checks.check_top_level(paths)) if not wanted else []
    count = 0
    for path in paths:
        if wanted and not any(path == w or path.startswith(w + "/") for w in wanted):
            continue
        if path.endswith(BINARY) or path == "LICENSE":
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        count += 1
        problems.extend(checks.check_file(checks.SourceFile(path, text), frozenset(paths)))
    for problem in sorted(problems):
        print(problem)
    print(f"style: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
