#!/usr/bin/env bash
# Installs what memdecay needs to build, to be tested and to be shown, from Debian 12 packages.
#
# Why: a newcomer's two commands (deploy/quickstart.sh, tests/run.sh) must work on a bare machine,
# and must cost nothing, and need no root, on one that has everything.
# Usage: deploy/install_deps.sh [--list] [--check] [COMPONENT ...]     (--help has examples)
# What is not here: versions of Debian packages. The list of names is fixed; Debian 12 fixes the
# versions. Python packages are pinned in deploy/requirements-dev.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd)

# component | package | what it is for. A package name of the form name?command counts as there when
# the command succeeds, whatever it was installed by.
packages='
core|g++|compiler of the release preset
core|cmake|the build
core|ninja-build|the build
core|pkg-config|finds xxHash, OpenSSL and PCRE2
core|git?git --version|revision in the version string, and the tests that read the tree
core|ccache|a second build, or a second clone, in seconds
core|mold|linking in a second instead of ten
core|libprotobuf-dev|messages; gRPC only recommends it, so it is named
core|protobuf-compiler|generates the messages
core|protobuf-compiler-grpc|generates the services
core|libgrpc++-dev|control protocol between daemon, engines and tools
core|libabsl-dev|Status, containers, annotated mutexes
core|libboost-dev|Boost.Interprocess: mapped regions
core|libspdlog-dev|log
core|libfmt-dev|formatting, under spdlog
core|libyaml-cpp-dev|configuration file
core|libcli11-dev|command line flags
core|prometheus-cpp-dev|metrics endpoint
core|libxxhash-dev|page checksums
core|libssl-dev|SHA-256 of content keys
core|zlib1g-dev|traces of requests come packed
core|libpcre2-dev|tokeniser of the reference engine
core|nlohmann-json3-dev|episodes, reports and --json output
core|libgtest-dev|tests are configured together with the code
core|libgmock-dev|tests
core|libbenchmark-dev|memdecay-bench
core|python3?python3 -c "import sys; assert sys.version_info >= (3, 11)"|style tests and the checks from outside
core|procps?ps --version|shows what a stuck test is doing
test|clang|compiler of the asan and tsan presets
test|libclang-rt-14-dev|sanitizer runtimes
test|clang-format|one way to lay out code; version 14, as .clang-format expects
test|llvm|llvm-symbolizer: sanitizer reports with names and lines
python|python3?python3 -c "import sys; assert sys.version_info >= (3, 11)"|client/python
python|python3-venv?python3 -c "import ensurepip, venv"|keeps the Python packages in build/venv
python|ca-certificates?test -s /etc/ssl/certs/ca-certificates.crt|pip checks the index it talks to
model|python3?python3 -c "import sys; assert sys.version_info >= (3, 11)"|fetches and unpacks the model
model|python3-venv?python3 -c "import ensurepip, venv"|brings pip
model|ca-certificates?test -s /etc/ssl/certs/ca-certificates.crt|pip checks the index it talks to
'

usage() {
  cat <<'EOF'
usage: deploy/install_deps.sh [--check] [--list] [COMPONENT ...]

components (default: core)
  core     compilers and libraries of the release build
  test     what the sanitizer builds need as well
  python   build/venv with the packages of deploy/requirements-dev.txt
  model    the demo model, 93 MB, in the user's cache (deploy/fetch_model.sh)

  --check  install nothing; exit 1 and name what is missing
  --list   print every package and its reason

example: deploy/install_deps.sh core model
EOF
}

say() { printf '%s\n' "$*"; }
die() { printf 'install_deps: %s\n' "$*" >&2; exit 1; }

mode=install
components=()
for arg in "$@"; do
  case "$arg" in
    --help|-h) usage; exit 0 ;;
    --check) mode=check ;;
    --list) mode=list ;;
    core|test|python|model) components+=("$arg") ;;
    *) usage >&2; die "unknown argument '$arg'" ;;
  esac
done
[ ${#components[@]} -gt 0 ] || components=(core)

if [ "$mode" = list ]; then
  printf '%s\n' "$packages" | while IFS='|' read -r component package reason; do
    [ -z "$component" ] || printf '%-8s %-24s %s\n' "$component" "${package%%\?*}" "$reason"
  done
  exit 0
fi

wanted() {
  local component
  for component in "${components[@]}"; do [ "$component" != "$1" ] || return 0; done
  return 1
}

is_there() {  # PACKAGE[?PROBE]
  case "$1" in
    *\?*) bash -c "${1#*\?}" >/dev/null 2>&1 ;;
    *) [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  esac
}

missing=()
while IFS='|' read -r component package reason; do
  [ -n "$component" ] && wanted "$component" || continue
  is_there "$package" || missing+=("${package%%\?*}")
done <<<"$packages"

if [ ${#missing[@]} -gt 0 ]; then
  mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
  [ "$mode" = install ] || die "missing Debian packages: ${missing[*]}"
  command -v apt-get >/dev/null || die "missing: ${missing[*]}; there is no apt-get here.
  memdecay is built on Debian 12: use it, or install these packages' counterparts yourself."
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      sudo=(sudo)
    else
      die "missing Debian packages, and installing them needs root. Run once:
  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  export DEBIAN_FRONTEND=noninteractive
  install=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq
           --no-install-recommends "${missing[@]}")
  if ! { "${sudo[@]}" apt-get update -qq && "${install[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "apt-get could not install the packages above; mend that and run this again"
  fi
fi

# The venv is made once, and made again when the pinned list changes.
make_venv() {
  local venv=$root/build/venv requirements=$root/deploy/requirements-dev.txt
  if [ -x "$venv/bin/python" ] && cmp -s "$requirements" "$venv/requirements.installed"; then
    return 0
  fi
  [ "$mode" = install ] || die "build/venv is missing or older than deploy/requirements-dev.txt"
  say "installing the Python packages of deploy/requirements-dev.txt into build/venv"
  mkdir -p "$root/build"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" ||
    die "pip could not install deploy/requirements-dev.txt; is a package index configured?"
  cp "$requirements" "$venv/requirements.installed"
}

if wanted python; then make_venv; fi
if wanted model; then
  if [ "$mode" = install ]; then
    bash deploy/fetch_model.sh >/dev/null
  else
    bash deploy/fetch_model.sh --check >/dev/null
  fi
fi
say "install_deps: everything is there for: ${components[*]}"
