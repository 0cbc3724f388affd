#!/usr/bin/env bash
# Settles on a GPU what the driver's documentation leaves open: a line of JSON for each check, then
# the device contract, then one line that says what was run. Under nine minutes.
#
# Why: nothing of memdecay has run on silicon; README.md beside this says which answer changes what.
# It takes memory by plain allocation and never resets or reconfigures the card.
# Without a device it says so and exits 77. --fake runs the same on the tests' fake driver, which
# proves the script and nothing about a GPU.
# Usage: tests/gpu/run.sh [--fake] [BUILD-FOLDER]      (default: build/release)
set -uo pipefail
cd "$(dirname "$0")/../.."

fake=no build=build/release
for arg in "$@"; do
  case "$arg" in
    --fake) fake=yes ;;
    --help | -h) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown argument '$arg'" >&2; exit 2 ;;
    *) build=$arg ;;
  esac
done
check=$build/bin/memdecay-gpu-check contract=$build/bin/memdecay-gpu-contract
for program in "$check" "$contract"; do
  [ -x "$program" ] || { echo "run.sh: build $program first (cmake --build --preset release)" >&2; exit 2; }
done

device=GPU
if [ "$fake" = yes ]; then
  device="the fake driver, no GPU"
  export LD_LIBRARY_PATH=$build/tests/fakecuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export FAKECUDA="seed=1 vram=402653184"
fi

made=0 not_made=()
for name in $("$check" --list); do
  timeout 40 "$check" "$name"
  case $? in
    0) made=$((made + 1)) ;;
    77) echo "SKIPPED: no device on this machine; nothing was measured" >&2; exit 77 ;;
    *) not_made+=("$name") ;;
  esac
done

contract_result=passed
timeout 180 "$contract" --gtest_brief=1 || contract_result=FAILED
echo "gpu checks on $device: $made made, ${#not_made[@]} not made (${not_made[*]-}); contract $contract_result"
[ ${#not_made[@]} -eq 0 ] && [ "$contract_result" = passed ]
