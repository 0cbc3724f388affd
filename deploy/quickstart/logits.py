"""Comparing rows of logits that two runs wrote.

Why: how far a session that forgets is from one that does not is measured on the logits themselves.
Units: nats. Not here: running anything.
"""

from __future__ import annotations

import array
import hashlib
import math
import pathlib

FLOAT_BYTES = 4


def rows(path: pathlib.Path, vocabulary: int) -> list[array.array[float]]:
    data = path.read_bytes()
    size = vocabulary * FLOAT_BYTES
    if not data or len(data) % size:
        raise ValueError(f"{path}: {len(data)} bytes are no rows of {vocabulary} floats")
    return [array.array("f", data[at : at + size]) for at in range(0, len(data), size)]


def sha256(row: array.array[float]) -> str:
    return hashlib.sha256(row.tobytes()).hexdigest()


def _log_partition(row: array.array[float]) -> float:
    top = max(row)
    exp = math.exp
    return top + math.log(math.fsum([exp(x - top) for x in row]))


def divergence(full: array.array[float], other: array.array[float]) -> float:
    """KL(full || other) of the two distributions over the next token."""
    z_full, z_other = _log_partition(full), _log_partition(other)
    shift = z_other - z_full
    exp = math.exp
    terms = [exp(f - z_full) * (f - o + shift) for f, o in zip(full, other, strict=True)]
    return math.fsum(terms)
