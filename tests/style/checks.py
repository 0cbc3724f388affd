"""The checks: each takes files and yields problems. Pure, so that test_style.py can try them.

Invariant: a problem names file, line, rule, what was found and what to do instead.
Exempt: tests/ need not obey the include table, shared_ptr, friend, bool parameters and mutable
statics; they obey everything else. Not here: which files (check_style.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import cpp_text
import rules


@dataclass(frozen=True)
class SourceFile:
    path: str  # relative to the repository, with slashes
    text: str

    @property
    def is_cpp(self) -> bool:
        return self.path.endswith(rules.CPP_SUFFIXES) and self.path.startswith(
            tuple(f + "/" for f in rules.CPP_FOLDERS)
        )

    @property
    def is_header(self) -> bool:
        return self.path.endswith((".h", ".hpp"))

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")


@dataclass(frozen=True, order=True)
class Problem:
    path: str
    line: int
    rule: str
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.found}\n    instead: {self.instead}"


def check_file(file: SourceFile, all_paths: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Every check that applies to one file."""
    yield from check_forbidden_words(file)
    if file.is_cpp:
        code = cpp_text.blank_out(file.text)
        yield from check_size(file)
        yield from check_columns(file)
        yield from check_functions(file, code)
        yield from check_story(file, all_paths)
        yield from check_includes(file)
        yield from check_bans(file, code)
        if file.is_header:
            yield from check_pragma_once(file)
        yield from check_own_header_first(file, all_paths)
        if not file.is_test:
            yield from check_globals(file, code)
    elif file.path.endswith((".py", ".sh")):
        yield from check_size(file)
        yield from check_story(file)
        if file.path.endswith(".py"):
            yield from check_python_functions(file)


def check_size(file: SourceFile) -> Iterator[Problem]:
    lines = file.text.count("\n") + (not file.text.endswith("\n"))
    if lines > rules.MAX_FILE_LINES:
        yield Problem(
            file.path,
            rules.MAX_FILE_LINES + 1,
            "file size",
            f"{lines} lines, the limit is {rules.MAX_FILE_LINES}",
            "split it by idea: each half must have its own one-line story",
        )


def check_columns(file: SourceFile) -> Iterator[Problem]:
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > rules.MAX_COLUMNS:
            yield Problem(
                file.path,
                number,
                "columns",
                f"{len(line)} columns, the limit is {rules.MAX_COLUMNS}",
                "clang-format -i breaks code; break comments and strings by hand",
            )
        if "\t" in line:
            yield Problem(file.path, number, "tab", "a tab", "spaces, as clang-format writes them")


def check_functions(file: SourceFile, code: str) -> Iterator[Problem]:
    for function in cpp_text.functions(code):
        yield from _function_length(file, function.name, function.first_line, function.lines)


def check_python_functions(file: SourceFile) -> Iterator[Problem]:
    try:
        tree = ast.parse(file.text)
    except SyntaxError as error:
        yield Problem(file.path, error.lineno or 1, "python", "does not parse", "valid Python 3.11")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield from _function_length(file, node.name, node.lineno, lines)


def _function_length(file: SourceFile, name: str, line: int, lines: int) -> Iterator[Problem]:
    if lines > rules.MAX_FUNCTION_LINES:
        yield Problem(
            file.path,
            line,
            "function size",
            f"{name} has {lines} lines, the limit is {rules.MAX_FUNCTION_LINES}",
            "keep the branches here and move straight work into named helpers",
        )


def check_story(
    file: SourceFile, all_paths: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """A .cc beside its header may be short, because the header tells the story."""
    text = re.sub(r"^#![^\n]*\n", "", file.text)
    if file.path.endswith(".py"):
        match = re.match(r"\s*(?:#[^\n]*\n)*\s*(\"\"\".*?\"\"\"|#[^\n]*)", text, re.S)
    elif file.path.endswith(".sh"):
        match = re.match(r"(\s*#[^\n]*\n)+", text)
    else:
        match = re.match(r"(?:[ \t]*//[^\n]*\n)+|/\*.*?\*/", text, re.S)
    words = re.findall(r"\w+", match.group(0)) if match else []
    header = file.path.removesuffix(".cc") + ".h"
    if len(words) < (2 if header != file.path and header in all_paths else 8):
        if file.path.endswith("__init__.py") and not text.strip():
            return
        yield Problem(
            file.path,
            1,
            "story",
            "the file does not open with its story",
            "a first comment: what it is, why, its thread, what always holds, what is not here",
        )


def _folder_of(path: str) -> rules.Folder | None:
    matching = [f for f in rules.INCLUDE_TABLE if path.startswith(f.prefix)]
    return max(matching, key=lambda f: len(f.prefix)) if matching else None


def _third_party_of(include: str) -> str | None:
    for name, starts in rules.THIRD_PARTY.items():
        if include.startswith(starts):
            return name
    return None


def check_includes(file: SourceFile) -> Iterator[Problem]:
    """The include table of daemon/STYLE.md, rule 2."""
    folder = _folder_of(file.path)
    if folder is None:
        yield Problem(file.path, 1, "include", "no row in the table", "add one to rules.py")
        return
    ours = tuple(name + "/" for name in rules.CPP_FOLDERS)
    for include in cpp_text.includes(file.text):
        party = _third_party_of(include.path)
        if _is_banned_std(include.path, folder.banned_std):
            yield Problem(
                file.path,
                include.line,
                "include",
                f"{folder.prefix} is pure and may not use {include.path}",
                "decide here, return an effect, let tiers, reactor or server do it",
            )
        elif party is not None and party not in folder.third_party:
            yield Problem(
                file.path,
                include.line,
                "include",
                f"{folder.prefix} may not use {party} ({include.path})",
                f"it may use: {', '.join(folder.third_party) or 'the standard library only'}",
            )
        elif party is None and include.quoted and not include.path.startswith(ours):
            yield Problem(
                file.path,
                include.line,
                "include",
                f'"{include.path}" is not written from the root',
                'write the whole path from the repository root: "daemon/base/limits.h"',
            )
        elif include.path.startswith(ours) and not include.path.startswith(folder.may_include):
            yield Problem(
                file.path,
                include.line,
                "include",
                f"{folder.prefix} may not include {include.path}",
                f"dependencies point down: {', '.join(folder.may_include) or 'nothing of ours'}",
            )


def _is_banned_std(path: str, banned: Iterable[str]) -> bool:
    return any(path == b or (b.endswith("/") and path.startswith(b)) for b in banned)


def check_bans(file: SourceFile, code: str) -> Iterator[Problem]:
    for ban in rules.BANS:
        if ban.only and not ban.only.search(file.path):
            continue
        if ban.allowed and ban.allowed.search(file.path):
            continue
        text = file.text if ban.name in rules.WHOLE_TEXT_BANS else code
        if ban.name == "standard library not in both compilers":
            text = cpp_text.blank_out(file.text)
        lines = text.split("\n")
        for match in ban.pattern.finditer(text):
            number = cpp_text.line_of(text, match.start())
            line = lines[number - 1]
            if ban.name == "bool parameter" and rules.BOOL_PARAMETER_EXCEPTIONS.search(line):
                continue
            shown = " ".join(match.group(0).split())
            yield Problem(file.path, number, ban.name, f"`{shown}`", ban.instead)


def check_pragma_once(file: SourceFile) -> Iterator[Problem]:
    guarded = file.path == rules.C_HEADER and re.search(r"(?m)^#ifndef MEMDECAY_H$", file.text)
    if not guarded and not re.search(r"(?m)^#pragma once$", file.text):
        yield Problem(
            file.path, 1, "pragma once", "no #pragma once", "one, right after the story comment"
        )


def check_own_header_first(file: SourceFile, all_paths: frozenset[str]) -> Iterator[Problem]:
    """A .cc that includes its own header first proves that header self-contained."""
    stem, _, suffix = file.path.rpartition(".")
    own = [p for p in (stem + ".h", stem + ".hpp") if p in all_paths]
    if suffix != "cc" or not own:
        return
    found = cpp_text.includes(file.text)
    if not found or found[0].path not in own:
        line = found[0].line if found else 1
        yield Problem(
            file.path,
            line,
            "own header first",
            f'the first include is not "{own[0]}"',
            "put it first: that proves the header compiles alone",
        )


_STATIC = re.compile(
    r"(?m)^[ \t]*(inline[ \t]+)?(static|thread_local)[ \t]+(?!const\b|constexpr\b|constinit const\b"
    r"|inline constexpr\b|inline const\b)[\w:<>, \t*&]+[ \t*&]\w+[ \t]*(=[^=(]|;|\{[^{}]*\}[ \t]*;)"
)
_NAMESPACE_SCOPE = re.compile(
    r"(?m)^(?!(using|typedef|return|class|struct|union|enum|namespace|extern|template|friend|const|"
    r"constexpr|inline const|static|public|private|protected|goto|case|default|delete|else|concept|"
    r"MEMDECAY_|[A-Z_]+\()\b)(inline )?[\w:]+(<[^;(){}]*>)?[ *&]+\w+(\[\w*\])?"
    r"( = [^;]*|\{[^;]*\})?;"
)


def check_globals(file: SourceFile, code: str) -> Iterator[Problem]:
    if file.path in rules.GLOBALS:
        return
    for pattern in (_STATIC, _NAMESPACE_SCOPE):
        for match in pattern.finditer(code):
            if pattern is _NAMESPACE_SCOPE and file.is_header and not match.group(5):
                continue  # a function declared through a type's name; a variable would not link
            start = match.start() + len(match.group(0)) - len(match.group(0).lstrip())
            yield Problem(
                file.path,
                cpp_text.line_of(code, start),
                "mutable global",
                f"`{' '.join(match.group(0).split())[:60]}`",
                "make it constexpr, or a member that the constructor receives",
            )


def check_forbidden_words(file: SourceFile) -> Iterator[Problem]:
    for number, line in enumerate(file.text.split("\n"), 1):
        for pattern, instead in rules.FORBIDDEN_WORDS:
            if match := pattern.search(line):
                yield Problem(file.path, number, "forbidden word", f"`{match.group(0)}`", instead)


def check_top_level(paths: Iterable[str]) -> Iterator[Problem]:
    for name in sorted({path.split("/", 1)[0] for path in paths}):
        if name not in rules.TOP_LEVEL and not name.startswith("."):
            yield Problem(
                name,
                1,
                "top level",
                f"`{name}` stands at the root",
                "put it under proto, cuda, daemon, client, adapters, deploy or tests",
            )
