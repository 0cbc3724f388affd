#!/usr/bin/env bash
# Runs the example engine against a daemon of its own and asks memdecayctl afterwards.
# Usage: run_example.sh MEMDECAYD ENGINE MEMDECAYCTL
set -euo pipefail
daemon=$1 engine=$2 ctl=$3
folder=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$daemon" --set device.pages=16 --set host.pages=16 --set metrics.listen=none \
  --set "socket.directory=$folder" 2>"$folder/log" &
pid=$!
# The daemon's socket is there once it serves.
timeout 20 bash -c "until [ -S $folder/handles.sock ] && '$ctl' --socket $folder status >/dev/null \
  2>&1; do :; done" || { cat "$folder/log"; exit 1; }
"$engine" "$folder"
"$ctl" --socket "$folder" check
"$ctl" --socket "$folder" --json sessions
