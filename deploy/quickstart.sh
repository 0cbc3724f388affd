#!/usr/bin/env bash
# The quickstart: installs what is missing, builds `release`, and shows on real processes what
# memdecay is for: six parts, each checked from outside, then a table and build/quickstart/report.json.
#
# Why: a newcomer runs one command and sees a language model decode on pages that a daemon owns.
# Everything is measured in this run. It ends only what it started, and leaves nothing outside
# build/ and the model's cache.
# Usage: deploy/quickstart.sh        (about a quarter of an hour the first time, minutes after that)
# What is not here: the parts (deploy/quickstart/*.py), dependencies (deploy/install_deps.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  '') ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; [ "$1" = --help ] && exit 0; exit 2 ;;
esac

say() { printf '\n== %s\n' "$*"; }
die() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

started=$(cut -d' ' -f1 /proc/uptime)  # the clock of Python's time.monotonic()

say "dependencies and model"
bash deploy/install_deps.sh core model
model=$(bash deploy/fetch_model.sh)

say "build (release)"
mkdir -p build/quickstart
if ! cmake --preset release >build/quickstart/configure.log 2>&1; then
  tail -n 30 build/quickstart/configure.log >&2
  die "the build could not be configured"
fi
cmake --build --preset release -j "$(nproc)" --target memdecayd memdecayctl memdecay-engine |
  awk '!/^\[[0-9]+\/[0-9]+\]/ { print; fflush(); next }
       { n++; last = $0; if (n % 20 == 1) { print; fflush() } } END { if (n % 20 != 1 && n) print last }'

say "a model decodes on pages it does not own"
exec python3 -B deploy/quickstart/main.py --bin build/release/bin --model "$model" \
  --episodes adapters/reference/episodes --out build/quickstart --started "$started"
