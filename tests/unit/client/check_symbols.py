#!/usr/bin/env python3
"""Checks that libmemdecay.so shows exactly the functions of memdecay.h, under their version.

What it is: nm -D against the version script and the header. A name that leaks (absl, protobuf)
would clash in engines that bring their own; a name that is missing breaks them at load time.
Usage: check_symbols.py LIBRARY VERSION_SCRIPT HEADER
"""

import re
import subprocess
import sys
from pathlib import Path


def main() -> int:
    library, script, header = sys.argv[1:4]
    table = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shown = {line.split()[-1] for line in table.splitlines() if line.split()[-2] != "A"}
    listed = {
        f"{name}@@MEMDECAY_1.0"
        for name in re.findall(r"^\s+(memdecay_\w+);", Path(script).read_text(), re.M)
    }
    declared = {
        f"{name}@@MEMDECAY_1.0"
        for name in re.findall(r"MEMDECAY_API[^;(]*?(memdecay_\w+)\(", Path(header).read_text())
    }
    for title, difference in (
        ("shown, not in the version script", shown - listed),
        ("in the version script, not shown", listed - shown),
        ("declared in memdecay.h, not in the version script", declared - listed),
        ("in the version script, not declared in memdecay.h", listed - declared),
    ):
        for name in sorted(difference):
            print(f"{title}: {name}", file=sys.stderr)
    return 0 if shown == listed == declared else 1


if __name__ == "__main__":
    sys.exit(main())
