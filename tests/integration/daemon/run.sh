#!/usr/bin/env bash
# One suite of tests against memdecayd. Usage: run.sh PYTHON BUILD_DIR BIN_DIR TEST_FILE.
# Exit 77: the Python packages are not installed.
set -euo pipefail
python=$1 out=$2 test=$4
export MEMDECAY_BIN=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
if ! "$python" -c 'import grpc, grpc_tools, pytest' 2>/dev/null; then
  echo "SKIPPED: no grpcio, grpcio-tools or pytest; run deploy/install_deps.sh python"
  exit 77
fi
"$python" "$root/client/python/generate.py" "$out"
export PYTHONPATH=$root/client/python:$out PYTHONDONTWRITEBYTECODE=1
exec "$python" -m pytest -q -p no:cacheprovider "$test"
