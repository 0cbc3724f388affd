"""What the scheduler's side tells the worker's in a step, and what it hears back.

What it is: plain records that can be pickled; connector.py wraps them in vLLM's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memdecay import Credentials

NO_SLAB = 0  # the daemon numbers from 1


@dataclass(frozen=True)
class Move:
    """One page of a request: the engine's block and the daemon's slot."""

    page: int
    block: int
    slab: int
    index: int


@dataclass
class RequestMoves:
    """The moves of one request, in page order; slots are those of the engine that it names."""

    request: str
    session: int
    credentials: Credentials
    moves: list[Move]


@dataclass
class Orders:
    """A step: loads before the model runs, saves after it."""

    loads: list[RequestMoves] = field(default_factory=list)
    saves: list[RequestMoves] = field(default_factory=list)


@dataclass(frozen=True)
class Saved:
    """Pages [first, first + pages) of a request are in their slots."""

    request: str
    session: int
    first: int
    pages: int


@dataclass
class Report:
    """What a step's worker did. Blocks that were not loaded go to vLLM, which recomputes them."""

    saved: list[Saved] = field(default_factory=list)
    # Requests of which a save failed: the rest of them is not saved.
    failed: list[str] = field(default_factory=list)
    loaded_blocks: int = 0
    load_us: int = 0
    save_us: int = 0
