"""vLLM's scheduler calls, translated for the book.

What it is: what is eligible, which tokens are whose, which blocks a step has. Nothing is decided
here about pages (book.py), and nothing is read of vLLM's configuration (resolved.py).
Thread: the scheduler's.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdecay import Client

from memdecay_vllm import identity, params
from memdecay_vllm.book import Book, Scheduled
from memdecay_vllm.deadlines import Deadlines
from memdecay_vllm.link import Link
from memdecay_vllm.orders import Orders, Report
from memdecay_vllm.resolved import Memory

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.request import Request

# A call may take as long as the daemon takes: who waits for it has a deadline, the call has not.
_PATIENCE_S = 3600.0

BlocksOf = Callable[[str], list[int]]


class SchedulerSide:
    """Begins when the worker has told what its KV cache looks like."""

    def __init__(
        self,
        source: identity.Source,
        directory: str | None,
        deadlines: Deadlines,
        log: logging.Logger,
    ) -> None:
        self._source = source
        self._directory = directory
        self._deadlines = deadlines
        self._log = log
        self._complaints = params.Complaints(log.warning)
        self._link: Link | None = None
        self._book: Book | None = None

    def begin(self, memory: Memory) -> None:
        """Attaches. ValueError: this engine's pages have no certain identity."""
        cache = identity.user_cache(os.environ)
        layout = identity.layout(memory.shape, self._source, cache)
        name = f"vllm-{os.getpid()}"

        def connect() -> Client:
            return Client(name, self._directory, _PATIENCE_S, layout.page_tokens, layout.page_bytes)

        def say(text: str) -> None:
            self._log.warning("memdecay: %s", text)

        self._link = Link(connect, self._deadlines, say)
        self._book = Book(layout, self._link, self._deadlines, say)
        self._log.warning(
            "memdecay: copied form, exact mode: %d blocks of %d tokens, %d bytes in %d pieces;"
            " weights %s, packing %s",
            memory.blocks,
            layout.page_tokens,
            layout.page_bytes,
            memory.spans,
            layout.weights_fingerprint[:23],
            layout.groups[0].packing,
        )
        self._link.start()

    def arrived(self, request: Request) -> None:
        """A request was added."""
        if self._book is None:
            return
        tags = params.tags_of(
            request.kv_transfer_params, request.num_prompt_tokens, self._complaints
        )
        reason = _foreign(request)
        if reason:
            self._book.counters[f"foreign_{reason}"] += 1
            return
        self._book.arrived(
            request.request_id,
            request.all_token_ids,
            identity.extras(request.cache_salt),
            tags,
            may_load=not request.skip_reading_prefix_cache,
        )

    def matched(self, request: Request, local_tokens: int) -> int | None:
        """As vLLM's get_num_new_matched_tokens."""
        return 0 if self._book is None else self._book.matched(request.request_id, local_tokens)

    def allocated(self, request: Request, external_tokens: int) -> None:
        """As vLLM's update_state_after_alloc."""
        if self._book is not None:
            self._book.allocated(request.request_id, external_tokens)

    def orders(self, output: SchedulerOutput, blocks_of: BlocksOf) -> Orders:
        """As vLLM's build_connector_meta."""
        if self._book is None:
            return Orders()
        for request in output.preempted_req_ids or ():
            self._book.preempted(request)
        computed = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        cached = output.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        steps = [
            Scheduled(request, blocks_of(request), computed[request] + tokens)
            for request, tokens in output.num_scheduled_tokens.items()
        ]
        return self._book.orders(steps)

    def reported(self, report: Report) -> None:
        """What the worker did."""
        if self._book is not None:
            self._book.reported(report)

    def finished(self, request: Request) -> dict[str, Any] | None:
        """Answers to those who asked, so that other clients see what they always saw."""
        if self._book is None:
            return None
        told = self._book.finished(request.request_id)
        if told is None or not params.asked_by(request.kv_transfer_params):
            return None
        return {params.KEY: told}

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        if self._book is None or self._link is None:
            return {}
        found = dict(self._book.counters)
        found["attachments"] = self._link.attachments
        found["jobs_dropped"] = self._link.dropped
        found.update({f"bad_params_{kind}": n for kind, n in self._complaints.counts.items()})
        return found

    def close(self) -> None:
        """The engine ends."""
        if self._link is not None:
            self._log.info("memdecay: %s", self.counters())
            self._link.close()


def _foreign(request: Request) -> str:
    """Why a request's pages are not named by its tokens alone; empty: they are."""
    if request.prompt_token_ids is None or request.prompt_embeds is not None:
        return "prompt_embeds"
    if request.mm_features:
        return "multimodal"
    if request.lora_request is not None:
        return "lora"
    if request.pooling_params is not None:
        return "pooling"
    if request.resumable:
        return "streaming_input"
    return ""


def directory_of(extra: dict[str, Any]) -> str | None:
    """The user's choice of the daemon's folder; None: the usual places."""
    given = extra.get("socket_directory")
    if given is None:
        return None
    if not isinstance(given, str) or not Path(given).is_absolute():
        raise ValueError(f"socket_directory: an absolute path, not {given!r}")
    return given
