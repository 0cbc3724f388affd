"""Errors of memdecay calls: the code decides, the sentences tell a person.

What it is: one exception type that carries an ErrorDetail.
"""

from __future__ import annotations

from memdecay.v1 import common_pb2


def code_name(code: int) -> str:
    """The vocabulary's word: "resource_exhausted" and so on; "internal" for unknown numbers."""
    try:
        name = str(common_pb2.ErrorCode.Name(code))
    except ValueError:
        return "internal"
    return name.removeprefix("ERROR_CODE_").lower()


class MemdecayError(Exception):
    """What the daemon refused: asked, there, todo, and after how many milliseconds to try again."""

    def __init__(self, code: str, asked: str = "", there: str = "", todo: str = "", retry: int = 0):
        super().__init__(": ".join(part for part in (code, asked, there, todo) if part))
        self.code = code
        self.asked = asked
        self.there = there
        self.todo = todo
        self.retry_after_ms = retry

    @classmethod
    def of(cls, detail: common_pb2.ErrorDetail) -> MemdecayError:
        """From a reply's or a status' detail."""
        return cls(
            code_name(detail.code), detail.asked, detail.there, detail.todo, detail.retry_after_ms
        )
