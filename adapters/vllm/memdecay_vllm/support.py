"""What this adapter was tried with, and what it refuses, in words.

What it is: a list of facts about an engine and the reasons against each. connector.py collects the
facts; nothing here imports vLLM, so every refusal has a test.
"""

from __future__ import annotations

from dataclasses import dataclass

TESTED_VERSIONS = ("0.32.0",)


@dataclass(frozen=True)
class Facts:
    """What vLLM resolved about this engine."""

    version: str
    device: str
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    data_parallel: int = 1
    # The kinds of the KV cache groups, as vLLM names their specs.
    groups: tuple[str, ...] = ("FullAttentionSpec",)
    sliding_window: int | None = None
    attention_chunk: int | None = None
    mla: bool = False
    kv_quantised: bool = False
    speculative: bool = False
    async_scheduling: bool = False
    prefix_caching: bool = True
    random_weights: bool = False
    # Methods of vLLM's connector interface that this adapter needs and did not find.
    missing_methods: tuple[str, ...] = ()


def refusals(facts: Facts, try_anyway: bool) -> list[str]:
    """Why this engine cannot be served; empty: it can. `try_anyway` lifts the tested versions."""
    checks = (
        (
            facts.version not in TESTED_VERSIONS and not try_anyway,
            f"vLLM {facts.version} is not among the tested versions"
            f" ({', '.join(TESTED_VERSIONS)}); kv_connector_extra_config"
            ' {"try_untested_version": true} tries it',
        ),
        (
            bool(facts.missing_methods),
            "this vLLM's connector interface lacks " + ", ".join(facts.missing_methods),
        ),
        (facts.device != "cpu", f"device {facts.device}: only the CPU build was tried"),
        (facts.tensor_parallel > 1, f"tensor parallel size {facts.tensor_parallel}: only 1 yet"),
        (
            facts.pipeline_parallel > 1,
            f"pipeline parallel size {facts.pipeline_parallel}: only 1 yet",
        ),
        (facts.context_parallel > 1, f"context parallel size {facts.context_parallel}: only 1 yet"),
        (facts.data_parallel > 1, f"data parallel size {facts.data_parallel}: only 1 yet"),
        (facts.mla, "multi-head latent attention (MLA): its cache has another shape"),
        (
            len(facts.groups) != 1,
            f"a hybrid model with {len(facts.groups)} KV cache groups: only one yet",
        ),
        (
            any(kind != "FullAttentionSpec" for kind in facts.groups),
            f"KV cache of kind {', '.join(facts.groups)}: only full attention yet",
        ),
        (facts.sliding_window is not None, f"a sliding window of {facts.sliding_window} tokens"),
        (facts.attention_chunk is not None, f"attention in chunks of {facts.attention_chunk}"),
        (facts.kv_quantised, "a quantised KV cache: where its scales lie is not handled yet"),
        (facts.speculative, "speculative decoding: drafted tokens may be taken back"),
        (facts.async_scheduling, "asynchronous scheduling: steps would overlap with copies"),
        (not facts.prefix_caching, "prefix caching is off: restored blocks could not be used"),
        (
            facts.random_weights,
            "weights that were not read from files have no fingerprint (load_format dummy)",
        ),
    )
    return [reason for holds, reason in checks if holds]
