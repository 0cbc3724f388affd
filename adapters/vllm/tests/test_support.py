"""Every refusal has its reason, and the tested engine has none.

What it is: memdecay_vllm.support, one fact at a time.
"""

from dataclasses import replace
from typing import Any

import pytest
from memdecay_vllm.support import TESTED_VERSIONS, Facts, refusals

GOOD = Facts(version=TESTED_VERSIONS[0], device="cpu")


def test_tested_engine_is_served() -> None:
    assert refusals(GOOD, try_anyway=False) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"version": "0.31.0"}, "0.31.0"),
        ({"device": "cuda"}, "cuda"),
        ({"tensor_parallel": 2}, "tensor parallel size 2"),
        ({"pipeline_parallel": 2}, "pipeline parallel size 2"),
        ({"context_parallel": 2}, "context parallel"),
        ({"data_parallel": 2}, "data parallel"),
        ({"mla": True}, "MLA"),
        ({"groups": ("FullAttentionSpec", "MambaSpec")}, "hybrid"),
        ({"groups": ("SlidingWindowSpec",)}, "SlidingWindowSpec"),
        ({"sliding_window": 128}, "window of 128"),
        ({"attention_chunk": 64}, "chunks of 64"),
        ({"kv_quantised": True}, "quantised"),
        ({"speculative": True}, "speculative"),
        ({"async_scheduling": True}, "asynchronous"),
        ({"prefix_caching": False}, "prefix caching"),
        ({"random_weights": True}, "fingerprint"),
        ({"missing_methods": ("bind_kv_cache_manager",)}, "bind_kv_cache_manager"),
    ],
)
def test_each_fact_is_refused_with_its_reason(change: dict[str, Any], word: str) -> None:
    reasons = refusals(replace(GOOD, **change), try_anyway=False)
    assert any(word in reason for reason in reasons), reasons


def test_trying_lifts_the_version_and_nothing_else() -> None:
    other = replace(GOOD, version="0.99.0")
    assert refusals(other, try_anyway=True) == []
    assert len(refusals(replace(other, tensor_parallel=2), try_anyway=True)) == 1
