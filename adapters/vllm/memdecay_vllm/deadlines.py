"""How long anything may wait for the daemon: every deadline and every bound of this adapter.

What it is: one frozen record, so that "nothing blocks the scheduler" can be read in one place.
`kv_connector_extra_config={"deadlines": {"answer_ms": 80}}` changes single ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Deadlines:
    """Milliseconds unless the name says otherwise."""

    # The scheduler holds one request for an answer at most this long. A daemon that takes longer is
    # silent: until its answer comes no request waits for it at all.
    answer_ms: int = 50
    # Of that, how long slots for the prompt's own pages are waited for; later ones come unwaited.
    grant_ms: int = 15
    # A request may be put off (others run on) while its pages come back from a lower tier: in all,
    restore_ms: int = 2000
    # and without one more page having come.
    restore_pause_ms: int = 80
    # A worker waits so long for a slab's descriptor, which comes on another socket than the order.
    slab_ms: int = 50
    # The start of the engine waits so long for the first attachment.
    start_ms: int = 1000
    # Between attempts to attach: doubles from the first to the second.
    retry_ms: int = 250
    retry_limit_ms: int = 4000
    # Requests whose pages are looked up as they arrive; others when their turn comes.
    early_requests: int = 4
    # Jobs that may wait for the daemon; one more is given up and counted.
    queue_jobs: int = 1024
    # Blocks that are copied to the daemon in one step of the engine; the rest in later steps.
    save_blocks: int = 64

    @classmethod
    def of(cls, given: object) -> Deadlines:
        """From the user's configuration. ValueError: an unknown name, or no positive number."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ValueError(f"deadlines: a mapping of names to numbers, not {given!r}")
        names = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in names:
                raise ValueError(
                    f"deadlines: there is no {name!r}, only {', '.join(sorted(names))}"
                )
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"deadlines: {name} is a number from 1 on, not {value!r}")
            values[name] = value
        return cls(**values)
