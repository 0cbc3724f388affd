"""Reads C++ well enough for style rules: text without comments and strings, includes, functions.

Why not clang: the style test has to run in a second, without a compiler and on broken code.
Invariants: blanking keeps every line and column, so positions are those of the file.
Not here: rules (rules.py, checks.py). Macros are not expanded: a macro with unbalanced braces
would confuse `functions`, and none of ours has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONTROL = re.compile(r"^\s*(if|else|for|while|do|switch|try|catch|return)\b")
_CLASS = re.compile(r"^(typedef\s+)?(class|struct|union|enum)\b")
_ACCESS = re.compile(r"^\s*(public|private|protected)\s*:")
_INIT_LIST = re.compile(r"\)\s*(const\s*)?(noexcept\s*)?:(?!:)")


@dataclass(frozen=True)
class Include:
    line: int
    path: str
    quoted: bool


@dataclass(frozen=True)
class Function:
    name: str
    first_line: int
    last_line: int

    @property
    def lines(self) -> int:
        return self.last_line - self.first_line + 1


_TOKENS = re.compile(
    r"""//(?:\\\n|[^\n])*                # line comment, also a continued one
      | /\*.*?(?:\*/|\Z)                 # block comment
      | R"(?P<delim>[^()\\\s]{0,16})\(.*?(?:\)(?P=delim)"|\Z)   # raw string
      | "(?:\\.|[^"\\\n])*"              # string
      | (?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'   # character; not the separator of 1'000
    """,
    re.S | re.X,
)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def blank_out(text: str) -> str:
    """The text with comments blanked and strings emptied; same length, same lines."""

    def replace(match: re.Match[str]) -> str:
        token = match.group(0)
        if token.startswith(("//", "/*")):
            return _blank(token)
        if token.startswith("R"):
            return 'R"' + _blank(token[2:-1]) + '"'
        return token[0] + _blank(token[1:-1]) + token[-1]

    return _TOKENS.sub(replace, text)


def includes(text: str) -> list[Include]:
    found = []
    code = _TOKENS.sub(
        lambda m: _blank(m.group(0)) if m.group(0).startswith(("//", "/*")) else m.group(0), text
    )
    for number, line in enumerate(code.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            found.append(Include(number, match.group(2), match.group(1) == '"'))
    return found


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _matching(code: str, opening: int) -> int:
    """Offset of the brace that closes the one at `opening`, or the end of the text."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def _without_templates(header: str) -> str:
    """Drops leading template<...>, requires-free attributes, alignas(...) and macro calls."""
    header = header.strip()
    while True:
        if header.startswith("template"):
            depth, end = 0, len(header)
            for index, char in enumerate(header):
                if char == "<":
                    depth += 1
                elif char == ">" and header[index - 1] != "-":
                    depth -= 1
                    if depth == 0:
                        end = index + 1
                        break
            header = header[end:].strip()
            continue
        shorter = re.sub(r"^\[\[[^\]]*\]\]\s*", "", header)
        if shorter == header:
            return header
        header = shorter


def _kind(header: str) -> str:
    """What the brace after `header` opens: scope, function or value."""
    header = _without_templates(header)
    if re.match(r"^(inline\s+)?namespace\b", header) or re.match(r'^extern\s*"\s*"$', header):
        return "scope"
    if _CLASS.match(header):
        bare = re.sub(r"\b(alignas|[A-Z][A-Z0-9_]+)\s*\([^()]*\)", "", header)
        if "(" not in bare and "=" not in bare:
            return "scope"
    without_operators = re.sub(r"operator\s*[=!<>]+", "operator", header)
    without_defaults = re.sub(r"\([^()]*\)", "()", without_operators)
    if re.search(r"(?<![=!<>])=(?!=)", without_defaults) and "](" not in without_defaults:
        return "value"
    return "function" if "(" in header else "value"


def _name(header: str) -> str:
    header = _without_templates(header)
    match = re.search(r"([~\w:]+|operator\s*\S+)\s*\(", header)
    return match.group(1) if match else header[:40]


def functions(code: str) -> list[Function]:
    """The functions of blanked code, methods in classes included, lambdas inside not apart."""
    code = re.sub(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", lambda m: _blank(m.group(0)), code)
    found: list[Function] = []
    start = 0  # where the current declaration starts
    depth = 0  # of parentheses
    position = 0
    token = re.compile(r"[{}();]")
    while match := token.search(code, position):
        position = match.end()
        char = match.group(0)
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == ";" and depth == 0:
            start = position
        elif char == "}":
            start, depth = position, 0
        elif char == "{":
            if depth > 0:  # a default argument or a value in a call
                position = _matching(code, match.start()) + 1
                continue
            header = code[start : match.start()]
            while access := _ACCESS.match(header):
                start += access.end()
                header = header[access.end() :]
            if _INIT_LIST.search(header) and re.search(r"[\w>]$", header):
                position = _matching(code, match.start()) + 1  # member{value} of a constructor
                continue
            kind = "value" if _CONTROL.match(header) else _kind(header)
            if kind == "scope":
                start = position
                continue
            end = _matching(code, match.start())
            if kind == "function":
                first = start + len(header) - len(header.lstrip())
                found.append(Function(_name(header), line_of(code, first), line_of(code, end)))
                start = end + 1
            position = end + 1
    return found
