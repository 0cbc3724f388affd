"""Tests of the checks: bad snippets that must be found, good ones that must not.

A rule without a bad snippet here is a rule that may have stopped working unseen:
test_every_ban_is_tried holds that. Not here: how C++ is read (test_cpp_text.py).
"""

from __future__ import annotations

import unittest

import checks
import rules

STORY = "// What this file is, why it exists, on which thread, what holds.\n"


def problems(path: str, body: str, story: str = STORY, paths: tuple[str, ...] = ()) -> list[str]:
    file = checks.SourceFile(path, story + body)
    return [p.rule for p in checks.check_file(file, frozenset(paths))]


# rule, path, a line that breaks it, a line like it that does not
BAN_SNIPPETS = (
    ("clock", "daemon/ledger/a.cc", "auto t = std::chrono::steady_clock::now();", "Instant now;"),
    ("sleep", "tests/unit/a.cc", "std::this_thread::sleep_for(d);", "void sleep() const;"),
    ("random", "daemon/tiers/a.cc", "std::random_device device;", "auto r = random_.next();"),
    ("random engine", "daemon/tiers/a.cc", "  std::mt19937_64 engine(7);", "  Random engine(7);"),
    ("environment", "cuda/a.cc", 'auto p = std::getenv("HOME");', "auto p = options.home;"),
    ("file", "daemon/reactor/a.cc", "int fd = ::open(p, 0);", "tier.open(page);"),
    ("output", "daemon/base/a.cc", 'printf("x");', 'log.info("printf(");'),
    ("thread", "daemon/ledger/a.cc", "std::thread worker;", "ThreadRole worker;"),
    ("detached thread", "daemon/tiers/a.cc", "worker.detach();", "worker.join();"),
    ("shared_ptr", "daemon/base/a.cc", "std::shared_ptr<Page> p;", "std::shared_ptr<const P> p;"),
    ("dynamic_cast", "cuda/a.cc", "auto* d = dynamic_cast<D*>(b);", "auto d = static_cast<D>(b);"),
    ("throw", "cuda/a.cc", 'throw std::runtime_error("x");', "// we never throw"),
    ("coroutine", "daemon/server/a.cc", "co_return;", "return;"),
    ("assert", "cuda/a.cc", "assert(a > b);", "static_assert(kA > kB);"),
    ("process exit", "daemon/server/a.cc", "std::exit(1);", "loop.exit(1);"),
    ("friend", "cuda/a.cc", "friend class Other;", "friend bool operator==(A, A) = default;"),
    ("using namespace", "tests/a.cc", "using namespace std;", "using namespace std::literals;"),
    ("using namespace in a header", "cuda/a.h", "using namespace memdecay;", "namespace a {}"),
    ("bool parameter", "cuda/a.cc", "void f(int a, bool fast);", "void OnReadDone(bool ok) {}"),
    ("fixed port", "tests/integration/a.cc", 'dial("127.0.0.1:9090");', 'dial("127.0.0.1:0");'),
    ("unfinished", "cuda/a.cc", "// TO" + "DO: later", "// to do this, call f"),
    (
        "standard library not in both compilers",
        "cuda/a.cc",
        "#include <format>",
        "#include <algorithm>",
    ),
)


class BanTest(unittest.TestCase):
    def test_every_ban_is_tried(self) -> None:
        self.assertEqual({b.name for b in rules.BANS}, {s[0] for s in BAN_SNIPPETS})

    def test_bad_snippets_are_found(self) -> None:
        for rule, path, bad, _ in BAN_SNIPPETS:
            with self.subTest(rule=rule):
                self.assertIn(rule, problems(path, bad + "\n"))

    def test_good_snippets_are_not(self) -> None:
        for rule, path, _, good in BAN_SNIPPETS:
            with self.subTest(rule=rule):
                self.assertNotIn(rule, problems(path, good + "\n"))

    def test_named_files_may(self) -> None:
        call = "  auto t = std::chrono::steady_clock::now();\n"
        self.assertEqual(problems("daemon/base/real_clock.cc", call), [])

    def test_a_ban_in_comment_or_string_is_not_one(self) -> None:
        self.assertEqual(problems("cuda/a.cc", '// throw\n  auto s = f("throw");\n'), [])


class IncludeTest(unittest.TestCase):
    def rules_of(self, path: str, include: str) -> list[str]:
        return problems(path, f"#include {include}\n")

    def test_arrows_that_point_up_are_found(self) -> None:
        for path, include in (
            ("proto/contract/a.cc", '"cuda/device.h"'),
            ("cuda/a.cc", '"daemon/base/limits.h"'),
            ("client/a.cc", '"daemon/base/limits.h"'),
            ("daemon/server/a.cc", '"client/memdecay.hpp"'),
            ("daemon/ledger/a.cc", '"cuda/device.h"'),
            ("daemon/ledger/a.cc", '"daemon/tiers/tier.h"'),
            ("daemon/tiers/a.cc", '"daemon/ledger/ledger.h"'),
            ("daemon/policy/a.cc", '"daemon/ledger/ledger.h"'),
            ("daemon/reactor/a.cc", '"daemon/server/config.h"'),
            ("adapters/reference/a.cc", '"daemon/base/limits.h"'),
            ("client/memdecay.hpp", '"proto/contract/ids.h"'),
        ):
            with self.subTest(path=path, include=include):
                self.assertIn("include", self.rules_of(path, include))

    def test_third_party_outside_its_folder_is_found(self) -> None:
        for path, include in (
            ("daemon/ledger/a.cc", "<grpcpp/grpcpp.h>"),
            ("proto/contract/layout.cc", "<openssl/sha.h>"),
            ("cuda/host_device.cc", "<cuda.h>"),
            ("daemon/reactor/a.cc", '"spdlog/spdlog.h"'),
            ("daemon/policy/a.cc", '"absl/synchronization/mutex.h"'),
            ("daemon/ledger/a.cc", "<mutex>"),
            ("daemon/ledger/a.cc", "<sys/mman.h>"),
            ("client/memdecay.h", '"absl/status/status.h"'),
        ):
            with self.subTest(path=path, include=include):
                self.assertIn("include", self.rules_of(path, include))

    def test_arrows_that_point_down_are_not(self) -> None:
        for path, include in (
            ("daemon/ledger/a.cc", '"daemon/policy/policy.h"'),
            ("daemon/reactor/a.cc", '"daemon/tiers/tier.h"'),
            ("proto/contract/page_key.cc", "<openssl/sha.h>"),
            ("cuda/driver.cc", "<cuda.h>"),
            ("daemon/server/a.cc", "<grpcpp/grpcpp.h>"),
            ("daemon/server/a.cc", '"memdecay/v1/memory.pb.h"'),
            ("tests/unit/a.cc", '"daemon/ledger/ledger.h"'),
        ):
            with self.subTest(path=path, include=include):
                self.assertEqual(self.rules_of(path, include), [])

    def test_include_not_from_the_root_is_found(self) -> None:
        self.assertIn("include", self.rules_of("cuda/a.cc", '"device.h"'))

    def test_own_header_comes_first(self) -> None:
        body = '#include <vector>\n#include "cuda/a.h"\n'
        self.assertIn("own header first", problems("cuda/a.cc", body, paths=("cuda/a.h",)))
        self.assertEqual(problems("cuda/a.cc", body, paths=()), [])


class ShapeTest(unittest.TestCase):
    def test_long_file_is_found(self) -> None:
        self.assertIn("file size", problems("cuda/a.cc", "\n" * 400))
        self.assertEqual(problems("cuda/a.cc", "\n" * 399), [])
        shell_story = STORY.replace("//", "#")
        self.assertIn("file size", problems("deploy/a.sh", "\n" * 401, story=shell_story))

    def test_long_function_is_found_by_name(self) -> None:
        long = "void f() {\n" + "  g();\n" * 69 + "}\n"
        self.assertIn("function size", problems("cuda/a.cc", long))
        self.assertEqual(problems("cuda/a.cc", long.replace("  g();\n", "", 1)), [])

    def test_long_python_function_is_found(self) -> None:
        body = '"""What this file is and why, in more than eight words."""\ndef f():\n'
        self.assertIn("function size", problems("a/b.py", body + "    pass\n" * 70, story=""))

    def test_long_line_is_found(self) -> None:
        self.assertIn("columns", problems("cuda/a.cc", "// " + "x" * 98 + "\n"))
        self.assertEqual(problems("cuda/a.cc", "// " + "x" * 97 + "\n"), [])

    def test_missing_story_is_found(self) -> None:
        self.assertIn("story", problems("cuda/a.cc", "int f();\n", story=""))
        self.assertIn("story", problems("cuda/a.cc", "// short\n", story=""))

    def test_source_beside_its_header_may_point_to_it(self) -> None:
        body = '// See a.h.\n#include "cuda/a.h"\n'
        self.assertEqual(problems("cuda/a.cc", body, story="", paths=("cuda/a.h",)), [])
        self.assertIn("story", problems("cuda/a.cc", body, story=""))

    def test_missing_pragma_once_is_found(self) -> None:
        self.assertIn("pragma once", problems("cuda/a.h", "int f();\n"))
        self.assertEqual(problems("cuda/a.h", "#pragma once\nint f();\n"), [])

    def test_mutable_globals_are_found(self) -> None:
        for bad in (
            "static int counter = 0;",
            "int counter = 0;",
            "std::vector<int> all;",
            "  static std::string last;",
            "thread_local int depth = 0;",
        ):
            with self.subTest(bad=bad):
                self.assertIn("mutable global", problems("cuda/a.cc", bad + "\n"))

    def test_constants_and_declarations_are_no_globals(self) -> None:
        for good in (
            "constexpr int kLimit = 1;",
            "static constexpr int kLimit = 1;",
            "const std::array<int, 2> kTable = {1, 2};",
            "static Status run(int a);",
            "int f(int a);",
            "using A = B<int>;",
            "concept C = D<int>;",
            "  static const auto kNames = make();",
            "class A;",
        ):
            with self.subTest(good=good):
                self.assertEqual(problems("cuda/a.cc", good + "\n"), [])

    def test_function_declared_through_a_type_is_no_global(self) -> None:
        self.assertEqual(problems("cuda/a.h", "#pragma once\nHashFunction hash_avx2;\n"), [])
        self.assertIn("mutable global", problems("cuda/a.h", "#pragma once\nint last = 0;\n"))

    def test_stranger_at_the_root_is_found(self) -> None:
        found = list(checks.check_top_level(["src/a.cc", "cuda/a.cc", ".ci/run", "README.md"]))
        self.assertEqual([p.path for p in found], ["src"])

    def test_forbidden_words_are_found(self) -> None:
        for word in ("/wor" + "k/main/x", "py" + "pi.org", "see issue" + " #3"):
            with self.subTest(word=word):
                self.assertIn("forbidden word", problems("daemon/a.md", word + "\n"))
        self.assertEqual(problems("daemon/a.md", "$root/work/x ./root/x the issue is\n"), [])

    def test_message_names_place_and_remedy(self) -> None:
        file = checks.SourceFile("cuda/a.cc", STORY + "#include <vector>\nassert(a);\n")
        (problem,) = checks.check_file(file)
        self.assertTrue(str(problem).startswith("cuda/a.cc:3: [assert]"))
        self.assertIn("instead: MEMDECAY_CHECK", str(problem))


if __name__ == "__main__":
    unittest.main()
