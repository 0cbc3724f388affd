"""What requests say about themselves: read where it can be read, counted where not.

What it is: memdecay_vllm.params on well-formed and on malformed kv_transfer_params.
"""

import pytest
from memdecay_vllm.params import MAX_SPANS, Complaints, Tag, asked_by, tags_of


def _read(params: object, prompt: int = 100) -> tuple[list[Tag], dict[str, int], list[str]]:
    said: list[str] = []
    complaints = Complaints(said.append)
    return tags_of(params, prompt, complaints), dict(complaints.counts), said


def test_spans_are_lists_or_mappings_with_names_numbers_or_aliases() -> None:
    tags, counts, _ = _read(
        {
            "memdecay": {
                "regions": [
                    [0, 10, "system"],
                    {"begin": 10, "end": 20, "region": "plan", "atomic": True},
                    [20, 30, "reasoning"],
                    [30, 40, 9],
                    [40, 50, "tool_out", True],
                ]
            }
        }
    )
    assert tags == [
        Tag(0, 10, 0),
        Tag(10, 20, 1, True),
        Tag(20, 30, 6),
        Tag(30, 40, 9),
        Tag(40, 50, 4, True),
    ]
    assert counts == {}


def test_a_span_ends_with_the_prompt() -> None:
    assert _read({"memdecay": {"regions": [[90, 200, "user"]]}})[0] == [Tag(90, 100, 2)]


def test_other_connectors_keys_are_no_complaint() -> None:
    assert _read({"do_remote_prefill": True}) == ([], {}, [])
    assert _read(None) == ([], {}, [])
    assert not asked_by({"do_remote_prefill": True})
    assert asked_by({"memdecay": {}})


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        (["memdecay"], "not_a_mapping"),
        ("memdecay", "not_a_mapping"),
        ({"memdecay": 3}, "not_a_mapping"),
        ({"memdecay": {"region": []}}, "unknown_key"),
        ({"memdecay": {"regions": {}}}, "bad_span"),
        ({"memdecay": {"regions": [[0, 10]]}}, "bad_span"),
        ({"memdecay": {"regions": ["0-10 system"]}}, "bad_span"),
        ({"memdecay": {"regions": [[10, 10, "user"]]}}, "bad_span"),
        ({"memdecay": {"regions": [[-1, 10, "user"]]}}, "bad_span"),
        ({"memdecay": {"regions": [[0, 1.5, "user"]]}}, "bad_span"),
        ({"memdecay": {"regions": [[False, True, "user"]]}}, "bad_span"),
        ({"memdecay": {"regions": [[0, 10, "user", "yes"]]}}, "bad_span"),
        ({"memdecay": {"regions": [{"begin": 0, "end": 9, "region": 0, "x": 1}]}}, "bad_span"),
        ({"memdecay": {"regions": [[0, 10, "kitchen"]]}}, "unknown_region"),
        ({"memdecay": {"regions": [[0, 10, -2]]}}, "unknown_region"),
        ({"memdecay": {"regions": [[0, 10, None]]}}, "unknown_region"),
        ({"memdecay": {"regions": [[100, 110, "user"]]}}, "beyond_prompt"),
    ],
)
def test_what_cannot_be_read_is_left_out_counted_and_said(params: object, kind: str) -> None:
    tags, counts, said = _read(params)
    assert tags == []
    assert counts == {kind: 1}
    assert len(said) == 1


def test_one_bad_span_does_not_spoil_the_others() -> None:
    tags, counts, _ = _read({"memdecay": {"regions": [[0, 5, "nowhere"], [5, 9, "user"]]}})
    assert tags == [Tag(5, 9, 2)]
    assert counts == {"unknown_region": 1}


def test_a_kind_is_said_once_and_counted_always() -> None:
    said: list[str] = []
    complaints = Complaints(said.append)
    for _ in range(5):
        tags_of({"memdecay": 1}, 10, complaints)
    assert complaints.counts["not_a_mapping"] == 5
    assert len(said) == 1


def test_a_flood_of_spans_is_cut_and_a_long_value_is_not_repeated() -> None:
    tags, counts, _ = _read({"memdecay": {"regions": [[0, 1, "user"]] * (MAX_SPANS + 1)}})
    assert len(tags) == MAX_SPANS
    assert counts == {"too_many": 1}
    assert len(_read({"memdecay": "x" * 10_000})[2][0]) < 300
