"""What can be seen of daemon and engines without asking their programs.

Why: a claim about memory is worth what the kernel and the metrics endpoint say about it.
Invariant: nothing here goes through memdecay's own code but /metrics.
"""

from __future__ import annotations

import re
import threading
import urllib.request
from dataclasses import dataclass

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([-+.\deE]+|NaN|Nan|[+-]Inf)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')

# A page lies in a slot of any of these states.
OCCUPIED = ("reserved", "valid", "copying_out", "copying_in", "quarantined")


def metrics(address: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples of /metrics by name."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    out: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        if found := SAMPLE.match(line):
            name, labels, value = found.groups()
            out.setdefault(name, []).append((dict(LABEL.findall(labels or "")), float(value)))
    return out


def total(address: str, name: str, **labels: str) -> int:
    """Sum of a metric's samples that have these labels."""
    wanted = labels.items()
    samples = metrics(address).get(f"memdecay_{name}", [])
    return int(sum(value for have, value in samples if wanted <= have.items()))


def occupied_slots(address: str) -> int:
    samples = metrics(address).get("memdecay_device_slots", [])
    return int(sum(value for labels, value in samples if labels.get("state") in OCCUPIED))


class ResidencyWatch:
    """Asks /metrics for the occupied slots again and again; remembers the most."""

    def __init__(self, address: str, every_seconds: float = 0.05):
        self.most = 0
        self.samples = 0
        self._address = address
        self._every = every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def look(self) -> None:
        self.most = max(self.most, occupied_slots(self._address))
        self.samples += 1

    def _watch(self) -> None:
        while not self._stop.wait(self._every):
            self.look()

    def __enter__(self) -> ResidencyWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@dataclass(frozen=True)
class Mapping:
    begin: int
    end: int
    rights: str
    offset: int
    inode: int
    name: str


def mappings(pid: int) -> list[Mapping]:
    """/proc/PID/maps."""
    out = []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            span, rights, offset, _, inode, *name = line.split(maxsplit=5)
            begin, end = (int(part, 16) for part in span.split("-"))
            text = name[0].strip() if name else ""
            out.append(Mapping(begin, end, rights, int(offset, 16), int(inode), text))
    return out


@dataclass(frozen=True)
class Place:
    """Physical identity of a byte of a shared file: equal places are the same memory."""

    inode: int
    offset: int
    rights: str


def places(pid: int, addresses: list[int]) -> list[Place | None]:
    """Where these addresses of a process lie; None: not in a memfd."""
    maps = mappings(pid)
    out: list[Place | None] = []
    for address in addresses:
        inside = (m for m in maps if m.begin <= address < m.end and "memfd:" in m.name)
        found = next(inside, None)
        offset = found.offset + address - found.begin if found else 0
        out.append(Place(found.inode, offset, found.rights) if found else None)
    return out


def anonymous_bytes(pid: int) -> int:
    """Memory that is the process's own."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    raise ValueError("no Anonymous line in smaps_rollup")


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise ValueError("no VmRSS line in status")
