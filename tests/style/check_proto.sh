#!/usr/bin/env bash
# Lints the protocol and checks that it still speaks to yesterday's clients: buf lint, and buf
# breaking against the committed descriptor. Exit 77 (skipped) when buf is not in build/venv.
set -euo pipefail
cd "$(dirname "$0")/../../proto"
buf=../build/venv/bin/buf

if [ ! -x "$buf" ]; then
  echo "SKIPPED: no buf; run deploy/install_deps.sh python"
  exit 77
fi
if ! compgen -G 'memdecay/v1/*.proto' >/dev/null; then
  echo "SKIPPED: no proto/memdecay/v1/*.proto"
  exit 77
fi
"$buf" lint || {
  echo "instead: what buf says; an exception stands, with its reason, in proto/buf.yaml"
  exit 1
}
[ -s memdecay_v1.binpb ] || {
  echo "proto/memdecay_v1.binpb is missing; run proto/update_descriptor.sh and commit it"
  exit 1
}
"$buf" breaking --against memdecay_v1.binpb || {
  echo "instead: add a field or a method, reserve what goes. Before the first release a break may"
  echo "be right: then say so in proto/README.md and run proto/update_descriptor.sh"
  exit 1
}
"$buf" build --as-file-descriptor-set --exclude-source-info -o - | cmp -s - memdecay_v1.binpb || {
  echo "the .proto files have grown: run proto/update_descriptor.sh and commit the descriptor"
  exit 1
}
echo "protocol: clean, compatible, descriptor up to date"
