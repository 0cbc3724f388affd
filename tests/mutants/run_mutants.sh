#!/usr/bin/env bash
# Breaks the code on purpose, once for each tests/mutants/*.patch, and expects the tests to go red.
#
# Why: a test that cannot fail proves nothing; this shows which breaks the suites notice. It works on
# a copy of the tree in build/mutants, so the working tree is never touched. README.md beside this
# file has the form of a patch. Called by tests/run.sh --mutants [NAME ...].
# What always holds: before the first mutant the copy is green, else red would mean nothing.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
copy=$root/build/mutants/tree
logs=$root/build/mutants/logs
default_tests="-L unit|contract|sim|reactor"
suites=(suite_unit suite_contract suite_sim suite_reactor)

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for patch in tests/mutants/*.patch; do
    [ -e "$patch" ] && names+=("$(basename "$patch" .patch)")
  done
fi
[ ${#names[@]} -gt 0 ] || { echo "no tests/mutants/*.patch"; exit 1; }

field() { sed -n "/^diff \|^--- /q; s/^$2: *//p" "tests/mutants/$1.patch" | head -n 1; }

# The copy keeps its build folder; a file is written only when it differs, so little is rebuilt.
refresh_copy() {
  mkdir -p "$copy" "$logs"
  python3 - "$root" "$copy" <<'PY'
import pathlib, shutil, subprocess, sys
root, copy = map(pathlib.Path, sys.argv[1:])
listed = subprocess.run(
    ["git", "-C", root, "ls-files", "-z", "-c", "-o", "--exclude-standard"],
    capture_output=True, check=True, text=True).stdout
wanted = {p for p in listed.split("\0") if p and (root / p).is_file()}
for old in copy.rglob("*"):
    path = old.relative_to(copy)
    if path.parts[0] != "build" and old.is_file() and str(path) not in wanted:
        old.unlink()
for path in wanted:
    source, target = root / path, copy / path
    if not target.exists() or source.read_bytes() != target.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
PY
}

build() {  # LOG
  (cd "$copy" && cmake --preset release && cmake --build --preset release -j 2 \
    --target "${suites[@]}") >"$1" 2>&1
}

# The ceiling keeps git from taking the copy for a folder of the repository around it.
apply() { GIT_CEILING_DIRECTORIES=$(dirname "$copy") git -C "$copy" apply -p1 "$1"; }

run_tests() {  # LOG CTEST-ARGUMENTS...
  local log=$1
  shift
  (cd "$copy" && ctest --preset release -j 2 --no-tests=error --stop-on-failure "$@") >"$log" 2>&1
}

refresh_copy
echo "building the unbroken copy"
build "$logs/unbroken.build.log" || { tail -n 30 "$logs/unbroken.build.log"; exit 1; }
run_tests "$logs/unbroken.test.log" $default_tests || {
  tail -n 30 "$logs/unbroken.test.log"
  echo "the tests are red before any mutant; mend them first"
  exit 1
}

noticed=0 missed=0
for name in "${names[@]}"; do
  patch=tests/mutants/$name.patch
  log=$logs/$name
  if ! apply "$root/$patch" >"$log.patch.log" 2>&1; then
    echo "FAILED  $name: the patch does not apply"
    missed=$((missed + 1))
  elif ! build "$log.build.log"; then
    echo "FAILED  $name: does not compile ($log.build.log)"
    missed=$((missed + 1))
  else
    eval "arguments=($(field "$name" Tests))"
    if [ ${#arguments[@]} -eq 0 ]; then read -ra arguments <<<"$default_tests"; fi
    if run_tests "$log.test.log" "${arguments[@]}"; then
      echo "FAILED  $name: no test noticed ($(field "$name" Breaks))"
      missed=$((missed + 1))
    else
      echo "noticed $name by $(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (.*)$/\1/p' "$log.test.log" | head -n 1)"
      noticed=$((noticed + 1))
    fi
  fi
  refresh_copy
done
echo "$noticed passed, $missed failed, 0 skipped"
[ "$missed" -eq 0 ]
