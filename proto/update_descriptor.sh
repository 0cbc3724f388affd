#!/usr/bin/env bash
# Writes proto/memdecay_v1.binpb, the descriptor that `buf breaking` compares with: run it after a
# compatible change and commit the result. It refuses a breaking change unless told --break.
set -euo pipefail
cd "$(dirname "$0")"
buf=../build/venv/bin/buf
[ -x "$buf" ] || { echo "needs buf: run deploy/install_deps.sh python" >&2; exit 1; }

case "${1:-}" in
  '')
    if [ -s memdecay_v1.binpb ]; then
      "$buf" breaking --against memdecay_v1.binpb || {
        echo "this breaks clients; --break writes it all the same (say so in proto/README.md)" >&2
        exit 1
      }
    fi
    ;;
  --break) ;;
  *) echo "usage: proto/update_descriptor.sh [--break]" >&2; exit 2 ;;
esac
"$buf" build --as-file-descriptor-set --exclude-source-info -o memdecay_v1.binpb
echo "wrote proto/memdecay_v1.binpb"
