#!/usr/bin/env bash
# Checks types and runs the tests of adapters/vllm that need no vLLM: a toy engine stands in for it,
# the daemon is real. Usage: run.sh PYTHON BUILD_DIR MEMDECAYD. Exit 77: packages are not installed.
# Not here: tests with vLLM itself (../test.sh).
set -euo pipefail
python=$1
out=$2
export MEMDECAYD=$3
adapter=$(cd "$(dirname "$0")/.." && pwd)
client=$adapter/../../client/python
if ! "$python" -c 'import grpc, grpc_tools, mypy, pytest' 2>/dev/null; then
  echo "SKIPPED: no grpcio, grpcio-tools, mypy or pytest; run deploy/install_deps.sh python"
  exit 77
fi
"$python" "$client/generate.py" "$out"
export PYTHONPATH=$client:$out:$adapter PYTHONDONTWRITEBYTECODE=1
(cd "$adapter" && MYPYPATH=$client "$python" -m mypy --config-file pyproject.toml \
  --cache-dir "$out/mypy" -p memdecay_vllm)
exec timeout 240 "$python" -m pytest -q -p no:cacheprovider "$adapter/tests"
