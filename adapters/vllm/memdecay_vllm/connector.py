"""MemdecayConnector: what `--kv-transfer-config` names.

What it is: vLLM's connector interface (V1), each method one line to the side that does it. The
scheduler's side keeps the book and talks to the daemon; the worker's side copies.
Thread: vLLM's; each side has its own process or shares one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memdecay import Credentials, Member
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorWorkerMetadata,
)
from vllm.logger import init_logger

from memdecay_vllm import resolved, support
from memdecay_vllm.blocks import BlockMap
from memdecay_vllm.deadlines import Deadlines
from memdecay_vllm.orders import Orders, Report
from memdecay_vllm.scheduler import SchedulerSide, directory_of
from memdecay_vllm.worker import Worker

if TYPE_CHECKING:
    import torch

logger = init_logger("vllm.memdecay")

_EXTRA = ("deadlines", "socket_directory", "try_untested_version")


@dataclass
class StepOrders(KVConnectorMetadata):
    """Down: the orders of a step."""

    orders: Orders


@dataclass
class StepReport(KVConnectorWorkerMetadata):
    """Up: what the worker did. There is one worker."""

    report: Report

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        raise RuntimeError("memdecay: two workers report, but tensor parallel > 1 is refused")


@dataclass
class WorkerMemory(KVConnectorHandshakeMetadata):
    """Up, once: what the worker's KV cache looks like."""

    memory: resolved.Memory


class MemdecayConnector(KVConnectorBase_V1):
    """Blocks are saved to memdecayd as they fill, and loaded when a prompt begins with them."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        extra = vllm_config.kv_transfer_config.kv_connector_extra_config or {}
        for name in extra:
            if name not in _EXTRA:
                raise ValueError(f"memdecay: kv_connector_extra_config has {name!r}, not {_EXTRA}")
        anyway = extra.get("try_untested_version") is True
        reasons = support.refusals(
            resolved.facts(vllm_config, kv_cache_config, KVConnectorBase_V1), anyway
        )
        if reasons:
            raise ValueError("memdecay cannot serve this engine: " + "; ".join(reasons))
        self._deadlines = Deadlines.of(extra.get("deadlines"))
        self._directory = directory_of(extra)
        self._worker: Worker | None = None
        self._memory: resolved.Memory | None = None
        self._scheduler: SchedulerSide | None = None
        if role == KVConnectorRole.SCHEDULER:
            # A page that does not come is a page to compute, never a failed request.
            vllm_config.kv_transfer_config.kv_load_failure_policy = "recompute"
            self._scheduler = SchedulerSide(
                resolved.source(vllm_config), self._directory, self._deadlines, logger
            )

    @property
    def requires_kv_delivery(self) -> bool:
        """A save that did not happen is a later miss, nothing else."""
        return False

    # ---- worker ------------------------------------------------------------------------------

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        blocks = BlockMap(resolved.layers(self._kv_cache_config, kv_caches))
        self._memory = resolved.memory(self._vllm_config, self._kv_cache_config, kv_caches)
        seconds = self._deadlines.answer_ms / 1000

        def join(credentials: Credentials) -> Member:
            return Member(credentials, self._directory, seconds)

        self._worker = Worker(blocks, join, self._deadlines)

    def get_handshake_metadata(self) -> KVConnectorHandshakeMetadata | None:
        return None if self._memory is None else WorkerMemory(self._memory)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        if self._worker is not None:
            self._worker.load(self._orders())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Loads are over before the model runs."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kw: Any) -> None:
        """Whole blocks are saved after the model ran."""

    def wait_for_save(self) -> None:
        if self._worker is not None:
            self._worker.save(self._orders())

    def get_block_ids_with_load_errors(self) -> set[int]:
        return set() if self._worker is None else self._worker.take_bad_blocks()

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        report = None if self._worker is None else self._worker.take_report()
        return None if report is None else StepReport(report)

    def _orders(self) -> Orders:
        metadata = self._get_connector_metadata()
        assert isinstance(metadata, StepOrders)
        return metadata.orders

    # ---- scheduler ---------------------------------------------------------------------------

    def set_xfer_handshake_metadata(
        self, metadata: dict[int, KVConnectorHandshakeMetadata]
    ) -> None:
        (told,) = metadata.values()
        assert isinstance(told, WorkerMemory)
        self._side().begin(told.memory)

    def on_new_request(self, request: Any) -> None:
        self._side().arrived(request)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        return self._side().matched(request, num_computed_tokens), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        self._side().allocated(request, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        return StepOrders(self._side().orders(scheduler_output, self._blocks_of))

    def update_connector_output(self, connector_output: Any) -> None:
        told = connector_output.kv_connector_worker_meta
        if isinstance(told, StepReport):
            self._side().reported(told.report)

    def request_finished(
        self, request: Any, block_ids: Iterable[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        return False, self._side().finished(request)

    def counters(self) -> dict[str, int]:
        """What happened so far, on the scheduler's side."""
        return self._side().counters()

    def shutdown(self) -> None:
        if self._worker is not None:
            self._worker.close()
        if self._scheduler is not None:
            self._scheduler.close()

    def _side(self) -> SchedulerSide:
        assert self._scheduler is not None
        return self._scheduler

    def _blocks_of(self, request: str) -> list[int]:
        assert self._kv_cache_manager is not None
        (blocks,) = self._kv_cache_manager.get_block_ids(request)
        return list(blocks)
