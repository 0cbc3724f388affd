#!/usr/bin/env bash
# The evaluation from seeds to RESULTS.md (README.md says what is measured and how).
#
# Why: whoever doubts a table can make it again, and CI shows that the chain works.
# --quick  two scenarios, a few policies, and checks that hold whatever the model attends to; minutes.
# --full   everything; each step goes on where it was interrupted, so only the scenario or session
#          that was being computed is lost. Hours on two cores.
# Not here: what a step does (memdecay-eval, generate.py, analyse.py).
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'TEXT'
usage: tests/eval/run.sh --quick | --full [--out FOLDER] [--bin FOLDER]

  --quick       the chain on two scenarios; exit 77 without the model (deploy/fetch_model.sh)
  --full        both sets of seeds, all policies, ablations, running budgets, probes, RESULTS.md
  --out FOLDER  scenarios, recordings, results (build/eval); a quick run has a folder of its own
  --bin FOLDER  memdecayd and memdecay-eval (build/release/bin)

example: tests/eval/run.sh --full --out /var/tmp/eval
TEXT
}

mode= out=build/eval bin=build/release/bin
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --quick | --full) mode=${1#--} ;;
    --out | --bin)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      if [ "$1" = --out ]; then out=$2; else bin=$2; fi
      shift ;;
    *) usage >&2; echo "run.sh: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done
[ -n "$mode" ] || { usage >&2; exit 2; }
for program in memdecayd memdecay-eval; do
  [ -x "$bin/$program" ] || { echo "run.sh: no $bin/$program; build it first" >&2; exit 1; }
done

step() { printf '\n== %s  (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }
here=tests/eval
heads=23:4,28:2,15:3,28:0,29:8,22:6,21:4,22:2,23:2,23:7,7:7,17:0  # chosen on tune

find_model() {  # into MEMDECAY_MODEL; without a way to it: 1
  if [ -z "${MEMDECAY_MODEL:-}" ]; then
    MEMDECAY_MODEL=$(bash deploy/fetch_model.sh $1 2>/dev/null) || return 1
  fi
  export MEMDECAY_MODEL
}

record() {  # SET FIRST LAST FLAGS...
  local set=$1 first=$2 last=$3 files=() seed
  shift 3
  step "record $set: seeds $first to $((last - 1))"
  python3 -B $here/generate.py --set "$set" --seeds "$first:$last" --out "$out/scenarios"
  for ((seed = first; seed < last; seed++)); do files+=("$out/scenarios/$set-$seed.json"); done
  "$bin/memdecay-eval" record --heads "$heads" --out "$out/traces" "$@" "${files[@]}"
}

replay() {  # SET PLAN
  step "replay $1: $2"
  mkdir -p "$out/results"
  "$bin/memdecay-eval" replay --recordings "$out/traces" --set "$1" --plan "$here/plans/$2.json" \
    --results "$out/results/$2.jsonl"
}

quick() {
  find_model --check || { echo "SKIPPED: no model; run deploy/fetch_model.sh"; exit 77; }
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
  record quick 9000 9002
  replay quick quick
  replay quick quick  # finds everything done
  step "check"
  python3 -B $here/check_quick.py "$out/results/quick.jsonl"
}

full() {
  find_model "" || { echo "run.sh: no model; run deploy/fetch_model.sh" >&2; exit 1; }
  local venv=build/eval-venv seed scenarios=()
  if ! cmp -s $here/requirements.txt $venv/requirements.installed; then
    step "packages of $here/requirements.txt into $venv"
    python3 -m venv $venv
    $venv/bin/python -m pip install -q --disable-pip-version-check -r $here/requirements.txt
    cp $here/requirements.txt $venv/requirements.installed
  fi
  record tune 0 32
  record held 1000 1120
  replay held policies
  replay held ablations
  for ((seed = 1000; seed < 1032; seed++)); do scenarios+=("$out/scenarios/held-$seed.json"); done
  step "validate: 32 scenarios"
  "$bin/memdecay-eval" validate --plan $here/plans/validate.json --programs "$bin" \
    --results "$out/results/validation.jsonl" "${scenarios[@]}"
  step "running: 32 scenarios"
  "$bin/memdecay-eval" running --plan $here/plans/running.json --programs "$bin" \
    --results "$out/results/running.jsonl" "${scenarios[@]}"
  step "tables"
  $venv/bin/python -B $here/analyse.py --set held --out $here --reading $here/reading.md \
    "$out"/results/{policies,ablations,validation,running}.jsonl
}

$mode
