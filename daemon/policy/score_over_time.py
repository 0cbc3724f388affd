"""Draws score_over_time.svg: what a page of each region is worth as it ages, unless it is used.

Why: the constants of README.md say little until one sees who overtakes whom, and when.
Two panels: memdecay_n (log2 b - min(t/h, 4), in half-lives) and memdecay (b 2^(-t/h)), with the
defaults of presets/default.yaml and presets/paper.yaml.
Usage: python3 daemon/policy/score_over_time.py > daemon/policy/score_over_time.svg
Not here: what use adds (README.md), what a real model said (tests/eval).
"""

from __future__ import annotations

import math
from collections.abc import Callable

# b, half-life in tokens, colour; presets_test.cc holds the presets to the program's defaults.
REGIONS = {
    "system": (1.0, 148.0, "#444444"),
    "plan": (0.9, 44.0, "#1b6ca8"),
    "user": (0.6, 31.0, "#2a9d4a"),
    "tool_in": (0.4, 22.0, "#b07d12"),
    "tool_out": (0.6, 37.0, "#d1495b"),
    "retrieval": (0.4, 76.0, "#7b4fa3"),
    "scratchpad": (0.4, 14.0, "#c77dba"),
}
DECAY_CAP = 4.0
LONGEST = 300  # tokens
WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 240, 56, 40, 60


def log_linear(b: float, half_life: float, age: float) -> float:
    return math.log2(b) - min(age / half_life, DECAY_CAP)


def paper(b: float, half_life: float, age: float) -> float:
    return b * 2 ** (-age / half_life)


def panel(
    left: int, title: str, low: float, high: float, score: Callable[[float, float, float], float]
) -> list[str]:
    def x(age: float) -> float:
        return left + WIDTH * age / LONGEST

    def y(value: float) -> float:
        return TOP + HEIGHT * (high - value) / (high - low)

    out = [f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}</text>']
    for age in range(0, LONGEST + 1, 50):
        out.append(f'<line x1="{x(age):.1f}" y1="{TOP}" x2="{x(age):.1f}" y2="{TOP + HEIGHT}"/>')
        out.append(f'<text x="{x(age):.1f}" y="{TOP + HEIGHT + 16}" class="c">{age}</text>')
    steps = 5
    for i in range(steps + 1):
        value = low + (high - low) * i / steps
        at = f"{y(value):.1f}"
        out.append(f'<line x1="{left}" y1="{at}" x2="{left + WIDTH}" y2="{at}"/>')
        out.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" class="e">{value:.1f}</text>')
    for b, half_life, colour in REGIONS.values():
        points = " ".join(
            f"{x(age):.1f},{y(score(b, half_life, age)):.1f}" for age in range(0, LONGEST + 1, 2)
        )
        out.append(f'<polyline points="{points}" stroke="{colour}"/>')
    return out


def main() -> None:
    total = LEFT + 2 * WIDTH + GAP + 110
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {TOP + HEIGHT + 48}">',
        "<style>text{font:12px sans-serif;fill:#333}.c{text-anchor:middle}.e{text-anchor:end}"
        "line{stroke:#ddd}polyline{fill:none;stroke-width:2}</style>",
        f'<rect width="{total}" height="{TOP + HEIGHT + 48}" fill="white"/>',
    ]
    out += panel(LEFT, "memdecay_n: half-lives", -6.0, 0.0, log_linear)
    out += panel(LEFT + WIDTH + GAP, "memdecay (as published)", 0.0, 1.0, paper)
    foot = TOP + HEIGHT + 38
    out.append(f'<text x="{LEFT + WIDTH}" y="{foot}" class="e">tokens since the last use</text>')
    for i, (name, (_, _, colour)) in enumerate(REGIONS.items()):
        at = LEFT + 2 * WIDTH + GAP + 14
        out.append(f'<text x="{at}" y="{TOP + 14 + 20 * i}" style="fill:{colour}">{name}</text>')
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
