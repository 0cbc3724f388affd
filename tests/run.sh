#!/usr/bin/env bash
# Runs every test of the repository and ends with one line: N passed, N failed, N skipped.
#
# Why one script: a newcomer, a reviewer and CI run the same thing. It installs what is missing,
# builds and tests `release`, then the parts that sanitizers can say something about in `asan` and
# `tsan`. A second run builds nothing. Logs and JUnit files lie in build/test-results.
# What is not here: what a test does (ctest knows), mutants (tests/mutants/run_mutants.sh).
set -uo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
usage: tests/run.sh [--release] [--fast] [--kill N] [--mutants [NAME ...]] [--help]

  (nothing)   release: unit, contract, scenarios, integration, style, Python;
              asan: unit, contract, simulated scenarios, reactor; tsan: reactor
  --release   release only, all of it
  --fast      release only, without tests against real processes
  --kill N    N rounds of SIGKILL on real engines while others decode (release)
  --mutants   breaks the code on purpose, once for each tests/mutants/*.patch, and expects red

example: tests/run.sh --kill 200
EOF
}

mode=all rounds=0 names=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --release) mode=release ;;
    --fast) mode=fast ;;
    --mutants) mode=mutants; shift; names=("$@"); break ;;
    --kill)
      mode=kill rounds=${2:-}
      [[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "run.sh: --kill needs a number of rounds" >&2; exit 2; }
      shift ;;
    *) usage >&2; echo "run.sh: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done

jobs=2
results=build/test-results
failed_builds=()
junits=()

stage() { printf '\n== %s  (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# Ninja's lines thinned out; everything else, errors above all, passes.
thin_build() {
  awk '/^\[[0-9]+\/[0-9]+\]/ { n++; last = $0; if (n % 25 == 1) { print; fflush() } next }
       { print; fflush() } END { if (n % 25 != 1 && n) print last }'
}

# ctest's lines for tests that passed, thinned out; failures with their output pass.
thin_tests() {
  awk '/^ *Start +[0-9]+:/ { next }
       / Passed +[0-9.]+ sec/ { n++; if (n % 50 == 0) { print; fflush() } next }
       { print; fflush() }'
}

build() {  # PRESET [TARGET ...]
  local preset=$1
  shift
  stage "build $preset"
  if ! cmake --preset "$preset" >"$results/$preset-configure.log" 2>&1; then
    cat "$results/$preset-configure.log"
    failed_builds+=("$preset")
    return 1
  fi
  if ! cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"} 2>&1 | thin_build; then
    failed_builds+=("$preset")
    return 1
  fi
}

run_tests() {  # PRESET CTEST-ARGUMENTS...
  local preset=$1 junit=$PWD/$results/$1.xml
  shift
  stage "test $preset"
  rm -f "$junit"
  junits+=("$junit")
  ctest --preset "$preset" -j "$jobs" --no-tests=error --output-junit "$junit" \
    --test-output-size-passed 200000 --test-output-size-failed 200000 "$@" 2>&1 | thin_tests
}

finish() {
  stage "summary"
  local preset
  for preset in ${failed_builds[@]+"${failed_builds[@]}"}; do echo "the $preset build FAILED"; done
  python3 -B tests/summarize.py --extra-failures ${#failed_builds[@]} \
    ${junits[@]+"${junits[@]}"}
  exit $?
}

mkdir -p "$results"
# A small quarantine: tests that measure growth would measure ASan's otherwise.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:quarantine_size_mb=4
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

stage "dependencies"
case $mode in
  all | release) components=(core test python model) ;;
  fast) components=(core python) ;;
  kill) components=(core model) ;;
  mutants) components=(core) ;;
esac
bash deploy/install_deps.sh "${components[@]}" || exit 1

case $mode in
  mutants) exec bash tests/mutants/run_mutants.sh ${names[@]+"${names[@]}"} ;;
  kill)
    build release || finish
    stage "$rounds rounds of kill -9"
    exec python3 -B tests/integration/kill_rounds.py --rounds "$rounds" ;;
  release)
    build release && run_tests release
    finish ;;
  fast)
    build release && run_tests release -L 'unit|contract|sim|reactor|style'
    finish ;;
esac

sanitizer_suites=(suite_unit suite_contract suite_sim suite_reactor)
build release && run_tests release
export MEMDECAY_SWARM_SEEDS=200  # some twenty times slower here
build asan "${sanitizer_suites[@]}" && run_tests asan -L 'unit|contract|sim|reactor'
build tsan suite_reactor && run_tests tsan -L reactor
finish
