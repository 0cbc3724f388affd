#!/usr/bin/env bash
# ruff over every Python file that git knows, with the rules of .ruff.toml. Exit 77 (skipped) when
# ruff is not in build/venv. mypy is run by the tests of client/python, whose types matter to users.
set -euo pipefail
cd "$(dirname "$0")/../.."
ruff=build/venv/bin/ruff

if [ ! -x "$ruff" ]; then
  echo "SKIPPED: no ruff; run deploy/install_deps.sh python"
  exit 77
fi
git ls-files -z -c -o --exclude-standard -- '*.py' | xargs -0 -r ls -d 2>/dev/null |
  xargs -r "$ruff" check --quiet --no-cache
echo "python: clean"
