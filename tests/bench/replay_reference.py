"""Holds `memdecayctl replay` against figures that were computed independently.

For the public trace `conversation_trace.jsonl` of kvcache-ai/Mooncake (FAST25-release, Apache-2.0;
12,031 requests, 288,500 block references), which is not part of this repository: `lru` and `min`
must equal the reference ratios to six digits, `decay` must reach at least 0.97 of its published
figures as a mean of ten salts, and be above `lru`, `arc` and `s3_fifo` at every capacity.
Usage: python3 tests/bench/replay_reference.py build/release/bin/memdecayctl TRACE
Exit 0: all holds. 1: a figure differs, and is named. Takes about a minute of one core.
Not here: the unit tests of the replay (tests/unit/client/ctl/replay).
"""

from __future__ import annotations

import json
import subprocess
import sys

CAPACITIES = (1000, 5000, 10000, 30000)
LRU = (0.044475, 0.110364, 0.211165, 0.325709)
MIN = (0.190620, 0.341227, 0.366412, 0.366412)
DECAY_AT_LEAST = (0.0834, 0.1695, 0.2295, 0.3240)
SECONDS_A_CAPACITY = 10.0


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    capacities = ",".join(str(capacity) for capacity in CAPACITIES)
    command = [sys.argv[1], "replay", sys.argv[2], "--json", "--capacity", capacities]
    command += ["--policy", "lru,arc,s3_fifo,decay,min"]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    prefix = {(r["policy"], r["capacity"]): r["prefix_hit_ratio"] for r in result["rows"]}
    wrong: list[str] = []

    def expect(holds: bool, what: str) -> None:
        if not holds:
            wrong.append(what)

    for key, value in (("requests", 12031), ("blocks", 288500), ("unique", 182790)):
        expect(result[key] == value, f"{key}: {result[key]} instead of {value}")
    for at, capacity in enumerate(CAPACITIES):
        for policy, reference in (("lru", LRU[at]), ("min", MIN[at])):
            got = prefix[policy, capacity]
            expect(round(got, 6) == reference, f"{policy} at {capacity}: {got}, not {reference}")
        decay = prefix["decay", capacity]
        expect(decay >= DECAY_AT_LEAST[at], f"decay at {capacity}: {decay}")
        for policy in ("lru", "arc", "s3_fifo"):
            expect(decay > prefix[policy, capacity], f"decay is not above {policy} at {capacity}")
        spent = sum(r["seconds"] for r in result["rows"] if r["capacity"] == capacity)
        expect(spent < SECONDS_A_CAPACITY, f"capacity {capacity} took {spent:.1f} s")
    for row in result["rows"]:
        low, high = row.get("prefix_hit_ratio_min"), row.get("prefix_hit_ratio_max")
        spread = "" if low is None else f"  {low:.4f} .. {high:.4f} over {row['salts']} salts"
        print(f"{row['policy']:8} {row['capacity']:6} {row['prefix_hit_ratio']:.6f}{spread}")
    for what in wrong:
        print(f"differs: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
