#!/usr/bin/env bash
# Generates the messages into the build folder, checks types, runs the tests of client/python.
# Usage: run.sh PYTHON BUILD_DIR MEMDECAYD. Exit 77: the Python packages are not installed.
set -euo pipefail
python=$1
out=$2
export MEMDECAYD=$3
here=$(cd "$(dirname "$0")" && pwd)
client=$here/../../client/python
if ! "$python" -c 'import grpc, grpc_tools, mypy, pytest' 2>/dev/null; then
  echo "SKIPPED: no grpcio, grpcio-tools, mypy or pytest; run deploy/install_deps.sh python"
  exit 77
fi
"$python" "$client/generate.py" "$out"
export PYTHONPATH=$client:$out PYTHONDONTWRITEBYTECODE=1
(cd "$client" && MYPYPATH=$out "$python" -m mypy --config-file pyproject.toml \
  --cache-dir "$out/mypy" -p memdecay && MYPYPATH=$out:$client "$python" -m mypy \
  --config-file pyproject.toml --cache-dir "$out/mypy" examples/engine.py generate.py)
exec timeout 120 "$python" -m pytest -q -p no:cacheprovider "$here"
