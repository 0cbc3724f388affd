"""What a request says about itself: kv_transfer_params={"memdecay": {"regions": [...]}}.

What it is: a parser that never fails. What it cannot read is left out, counted by kind, and said
once a kind: a request goes on whatever its client wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memdecay.v1 import common_pb2

KEY = "memdecay"
MAX_SPANS = 256
MAX_REGION = 1 << 16
_ALIASES = {"dialogue": "user", "reasoning": "scratchpad"}


@dataclass(frozen=True)
class Tag:
    """The tokens [begin, end) are of a region; an atomic span is kept or given up whole."""

    begin: int
    end: int
    region: int
    atomic: bool = False


class Complaints:
    """Counts what is wrong by kind; says each kind once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._say = say

    def add(self, kind: str, text: str) -> None:
        """One more of a kind."""
        self.counts[kind] += 1
        if self.counts[kind] == 1:
            self._say(f"kv_transfer_params: {text}; ignored (more of this kind are only counted)")


def asked_by(params: object) -> bool:
    """Whether the client spoke to us, so that the answer may speak back."""
    return isinstance(params, Mapping) and KEY in params


def tags_of(params: object, prompt_tokens: int, complaints: Complaints) -> list[Tag]:
    """The request's tags. Other connectors' keys are none of our business."""
    if params is None:
        return []
    if not isinstance(params, Mapping):
        complaints.add("not_a_mapping", f"a mapping was expected, not {_short(params)}")
        return []
    if KEY not in params:
        return []
    ours = params[KEY]
    if not isinstance(ours, Mapping):
        complaints.add("not_a_mapping", f"{KEY!r} holds a mapping, not {_short(ours)}")
        return []
    for name in ours:
        if name != "regions":
            complaints.add("unknown_key", f"there is no {_short(name)}")
    given = ours.get("regions", [])
    if not isinstance(given, list):
        complaints.add("bad_span", f"'regions' is a list, not {_short(given)}")
        return []
    if len(given) > MAX_SPANS:
        complaints.add("too_many", f"{len(given)} spans, of which {MAX_SPANS} count")
    tags = (_tag(span, prompt_tokens, complaints) for span in given[:MAX_SPANS])
    return [tag for tag in tags if tag is not None]


def _tag(span: Any, prompt_tokens: int, complaints: Complaints) -> Tag | None:
    if isinstance(span, Mapping):
        parts = [span.get("begin"), span.get("end"), span.get("region"), span.get("atomic", False)]
        if set(span) - {"begin", "end", "region", "atomic"}:
            complaints.add("bad_span", f"{_short(span)} has other fields than a span")
            return None
    elif isinstance(span, list) and len(span) in (3, 4):
        parts = [*span, False][:4]
    else:
        complaints.add("bad_span", f"{_short(span)} is not [begin, end, region]")
        return None
    begin, end, named, atomic = parts
    if not (_is_number(begin) and _is_number(end) and 0 <= begin < end and atomic in (True, False)):
        complaints.add("bad_span", f"{_short(span)} is no span of tokens")
        return None
    if begin >= prompt_tokens:
        complaints.add("beyond_prompt", f"{_short(span)} begins after the prompt's {prompt_tokens}")
        return None
    region = _region(named)
    if region is None:
        complaints.add("unknown_region", f"{_short(named)} is no region")
        return None
    return Tag(begin, min(end, prompt_tokens), region, bool(atomic))


def _region(named: Any) -> int | None:
    if _is_number(named):
        return int(named) if 0 <= named < MAX_REGION else None
    if not isinstance(named, str):
        return None
    name = "REGION_" + _ALIASES.get(named, named).upper()
    return dict(common_pb2.Region.items()).get(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
