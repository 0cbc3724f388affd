"""Namespaces and page keys in Python equal the golden vectors of the contract.

What it is: proto/golden/page_keys.json, read by another language than the one that wrote it.
"""

import json
from pathlib import Path

import pytest
from memdecay.identity import Group, Layout, Rope, namespace, page_key, page_key_encoding

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "proto" / "golden" / "page_keys.json").read_text(encoding="utf-8")
)


def _layout(fields: dict) -> Layout:
    return Layout(
        **{key: value for key, value in fields.items() if key not in ("groups", "rope")},
        groups=tuple(Group(**group) for group in fields["groups"]),
        rope=Rope(**fields["rope"]),
    )


@pytest.mark.parametrize("case", GOLDEN["layouts"], ids=lambda case: case["name"])
def test_layout_encoding_and_namespace_are_golden(case: dict) -> None:
    layout = _layout(case["layout"])
    assert layout.encoding().hex() == case["encoding_hex"]
    assert namespace(layout).hex() == case["namespace_hex"]
    assert layout.page_bytes == case["page_bytes"]


@pytest.mark.parametrize("case", GOLDEN["pages"], ids=lambda case: case["name"])
def test_page_key_is_golden(case: dict) -> None:
    parent = bytes.fromhex(case["parent_hex"]) if case["parent_hex"] else None
    extras = [(extra["kind"], bytes.fromhex(extra["value_hex"])) for extra in case["extras"]]
    arguments = (bytes.fromhex(case["namespace_hex"]), parent, case["tokens"], extras)
    assert page_key_encoding(*arguments).hex() == case["encoding_hex"]
    assert page_key(*arguments).hex() == case["key_hex"]


def test_message_carries_every_field() -> None:
    layout = _layout(GOLDEN["layouts"][0]["layout"])
    message = layout.message()
    for descriptor in message.DESCRIPTOR.fields:
        assert getattr(message, descriptor.name), descriptor.name
