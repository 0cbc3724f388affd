#!/usr/bin/env bash
# Formats every C++ file that git knows (.clang-format: Google, 100 columns); with --check it changes
# nothing and names the files that differ. Exit 77 (skipped) when clang-format 14 is not there:
# other versions break lines elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "SKIPPED: no clang-format 14; run deploy/install_deps.sh test"
  exit 77
fi
mapfile -d '' files < <(git ls-files -z -c -o --exclude-standard -- '*.h' '*.hpp' '*.cc')
present=()
for file in "${files[@]}"; do [ ! -f "$file" ] || present+=("$file"); done
case "${1:-}" in
  '') clang-format -i "${present[@]}" ;;
  --check)
    differing=$(printf '%s\n' "${present[@]}" | xargs -P 2 -n 40 clang-format --dry-run 2>&1 |
      sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)
    [ -z "$differing" ] || {
      printf '%s\n' "$differing"
      echo "instead: bash tests/style/format.sh"
      exit 1
    } ;;
  *) echo "usage: tests/style/format.sh [--check]" >&2; exit 2 ;;
esac
echo "format: ${#present[@]} files"
