"""Tests of the C++ reader: what counts as a function, what is comment, what is an include.

Each snippet is one that a simpler reader gets wrong. Not here: rules (test_style.py).
"""

from __future__ import annotations

import unittest

import cpp_text


def found(code: str) -> list[tuple[str, int]]:
    return [(f.name, f.lines) for f in cpp_text.functions(cpp_text.blank_out(code))]


class BlankOutTest(unittest.TestCase):
    def test_comments_and_strings_are_blank_and_lines_stay(self) -> None:
        text = 'int a; // throw\n/* throw\n*/ auto b = "throw \\" {"; char c = \'{\';\n'
        code = cpp_text.blank_out(text)
        self.assertNotIn("throw", code)
        self.assertNotIn("{", code)
        self.assertEqual(len(code), len(text))
        self.assertEqual(code.count("\n"), text.count("\n"))

    def test_raw_string_is_blank(self) -> None:
        self.assertNotIn("throw", cpp_text.blank_out('auto a = R"x(throw " { )" )x"; int b;'))
        self.assertIn("int b", cpp_text.blank_out('auto a = R"(throw " {)"; int b;'))

    def test_digit_separator_is_no_character(self) -> None:
        self.assertIn("throw", cpp_text.blank_out("int a = 1'000'000; throw 1; int b = 2'0;"))

    def test_includes_keep_their_lines_and_kind(self) -> None:
        code = '// #include <a>\n#include <vector>\n#  include "cuda/device.h"  // why\n'
        self.assertEqual(
            cpp_text.includes(code),
            [cpp_text.Include(2, "vector", False), cpp_text.Include(3, "cuda/device.h", True)],
        )


class FunctionTest(unittest.TestCase):
    def test_free_function_counts_signature_to_brace(self) -> None:
        self.assertEqual(found("int f(\n    int a) {\n  return a;\n}\n"), [("f", 4)])

    def test_methods_in_namespace_and_class(self) -> None:
        code = "namespace a::b {\nclass C final : public D {\n public:\n  C() {}\n"
        code += "  int g() const {\n"
        code += "    return 1;\n  }\n private:\n  int x_{0};\n};\n}  // namespace\n"
        self.assertEqual(found(code), [("C", 1), ("g", 3)])

    def test_constructor_with_braced_members(self) -> None:
        code = "C::C(int a)\n    : a_{a}, b_(b),\n      c_{1, {2}} {\n  run();\n}\nvoid h() {\n}\n"
        self.assertEqual(found(code), [("C::C", 5), ("h", 2)])

    def test_default_argument_in_braces(self) -> None:
        self.assertEqual(found("void f(Options o = {}, int b = 1) {\n  g();\n}\n"), [("f", 3)])

    def test_declarations_and_tables_are_no_functions(self) -> None:
        code = "struct S { int a; };\nconstexpr int kTable[] = {\n  1,\n  f(2),\n};\nint f(int);\n"
        code += "enum class E : int { kA, kB };\nusing F = std::function<void(int)>;\n"
        self.assertEqual(found(code), [])

    def test_annotated_and_aligned_classes_are_scopes(self) -> None:
        code = 'class CAPABILITY("mutex") M {\n  void lock() ACQUIRE() {\n  }\n};\n'
        code += "struct alignas(64) S {\n  int f() { return 1; }\n};\n"
        self.assertEqual(found(code), [("lock", 2), ("f", 1)])

    def test_templates_operators_trailing_types_and_lambdas(self) -> None:
        code = "template <typename T, typename = std::enable_if_t<(sizeof(T) > 1)>>\n"
        code += "auto f(T t) -> std::vector<T> {\n  auto g = [&](int a) {\n    return a;\n  };\n"
        code += "  return g(1);\n}\nbool operator==(A a, B b) { return true; }\n"
        names = found(code)
        self.assertEqual([lines for _, lines in names], [7, 1])

    def test_test_macros_are_functions(self) -> None:
        self.assertEqual(found("TEST(Suite, rule) {\n  run();\n}\n"), [("TEST", 3)])

    def test_preprocessor_braces_do_not_count(self) -> None:
        code = "#define M(x) \\\n  do {        \\\n  } while (0\nint f() {\n  return 1;\n}\n"
        self.assertEqual(found(code), [("f", 3)])

    def test_function_after_struct_with_methods(self) -> None:
        code = "struct A {\n  int v() const { return 1; }\n  int w = 2;\n} a;\nint f() {\n}\n"
        self.assertEqual(found(code), [("v", 1), ("f", 2)])

    def test_function_returning_struct_type(self) -> None:
        code = "struct stat read_it(int fd) {\n  return {};\n}\n"
        self.assertEqual(found(code), [("read_it", 3)])


if __name__ == "__main__":
    unittest.main()
