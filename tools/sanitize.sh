#!/usr/bin/env bash
# Run the tests of the core on a build with sanitizers.
#
#   tools/sanitize.sh                    both of the following, one after the other
#   tools/sanitize.sh address,undefined  wrong memory accesses and undefined behaviour
#   tools/sanitize.sh thread             data races
#
# Builds into a temporary virtual environment that also sees the packages of the
# current interpreter ($PYTHON, python by default): your own installation stays as
# it is. Needs GCC ($CXX, g++ by default), since its runtimes are loaded before the
# interpreter. Fails if a test fails or if a sanitizer reports anything, also from a
# process that a test started. $SANITIZE_TESTS names other tests to run, $SANITIZE_COMMAND
# a Python program with its arguments to run instead, such as "tools/fuzz_load.py -n 1000",
# $SANITIZE_BUILD a folder for what is compiled, so that another run need not do it again.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python}
export CXX=${CXX:-g++}

# The first six are for the exact engine, the others for that of version 0.1. A file that
# is gone is an error of pytest.
default_tests=(
  tests/native/test_exact_cases.py
  tests/native/test_exact_forests.py
  tests/native/test_exact_class_forests.py
  tests/native/test_exact_refusals.py
  tests/native/test_interrupts.py
  tests/estimators/test_boosting.py
  tests/native/test_tree.py
  tests/native/test_copies_of_rows.py
  tests/native/test_exact_projections.py
  tests/estimators/test_threads.py
  tests/estimators/test_classifier.py
)

# Set up an environment whose own packages come before those of the current
# interpreter; print the folder of its packages. A .pth file does not run those that
# it leads to, so an editable installation of lhtree stays out of the way.
make_environment() {
  "$python" -m venv --without-pip "$1"
  local packages
  packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$python" -c 'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' \
    > "$packages/current_interpreter.pth"
  echo "$packages"
}

# Build with sanitizers $1 in folder $2 and install as one of the packages $3.
build() {
  # The assertions see an index past the end of a vector whose memory goes on.
  CXXFLAGS="${CXXFLAGS:-} -D_GLIBCXX_ASSERTIONS" "$python" -m pip install --quiet \
    --disable-pip-version-check --no-build-isolation --no-deps --no-compile \
    --target "$3" -Cbuild-dir="$2" -Ccmake.build-type=RelWithDebInfo \
    -Ccmake.define.LHTREE_SANITIZE="$1" "$repository"
}

# Print GCC's runtime libraries of the names given.
find_runtimes() {
  local name path
  for name in "$@"; do
    path=$("$CXX" -print-file-name="$name")
    if [[ $path != /* ]]; then
      echo "$CXX has no $name; install GCC's sanitizer runtimes or set CXX to a GCC." >&2
      return 1
    fi
    printf '%s ' "$path"
  done
}

# Have every interpreter started from here load the runtimes of sanitizers $1 and
# write their reports to files that start with $2.
preload() {
  local runtimes=(libasan.so libubsan.so) common="halt_on_error=1:log_path=$2"
  if [[ $1 == thread ]]; then
    runtimes=(libtsan.so)
  fi
  # What throws exceptions must be there when the sanitizer looks for it at start.
  runtimes=$(find_runtimes "${runtimes[@]}" libstdc++.so)
  # The interpreter leaks by design, and its own allocator would hide errors of ours.
  export PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 LD_PRELOAD=$runtimes
  export ASAN_OPTIONS=$common:detect_leaks=0:detect_stack_use_after_return=1
  export UBSAN_OPTIONS=$common:print_stacktrace=1
  export TSAN_OPTIONS=$common:history_size=5
}

# Fail unless the tests would run with the module among the packages $2, and it calls
# sanitizers $1.
check_module() {
  local core=$3 symbol=__asan_init
  case $1 in
    undefined) symbol=__ubsan_handle ;;
    thread) symbol=__tsan_init ;;
  esac
  if [[ $core != "$2"/* ]] || ! grep -q "$symbol" "$core"; then
    echo "The tests would run with $core, which is no build with the $1 sanitizer." >&2
    return 1
  fi
}

run_tests() (
  sanitizers=$1 folder=$2 packages=$3 status=0
  interpreter=$folder/environment/bin/python
  read -ra tests <<< "${SANITIZE_TESTS:-${default_tests[*]}}"
  left_out="not little_memory"  # the sanitizers take some themselves
  if [[ $sanitizers == thread ]]; then
    # This sanitizer dies when a forked process starts threads, and polars, which
    # brings an allocator of its own, cannot even be imported under it.
    left_out+=" and not after_a_fork and not polars and not both_libraries"
  fi
  cd "$repository"
  preload "$sanitizers" "$folder/report"
  core=$("$interpreter" -c 'import lhtree._core; print(lhtree._core.__file__)')
  check_module "$sanitizers" "$packages" "$core"
  # What a dying process writes must not end in a buffer of pytest.
  command=(-m pytest -x -q -p no:cacheprovider -p no:faulthandler --capture=sys
    --timeout=1800 -k "$left_out" "${tests[@]}")
  if [[ -n ${SANITIZE_COMMAND:-} ]]; then read -ra command <<< "$SANITIZE_COMMAND"; fi
  "$interpreter" "${command[@]}" || status=$?
  if compgen -G "$folder/report*" > /dev/null; then
    cat "$folder/report"* >&2
    echo "The $sanitizers sanitizer reports errors." >&2
    status=1
  fi
  exit "$status"
)

run() (
  sanitizers=$1
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  echo "== $sanitizers"
  packages=$(make_environment "$folder/environment")
  build "$sanitizers" "${SANITIZE_BUILD:-$folder}/${sanitizers//,/-}" "$packages"
  run_tests "$sanitizers" "$folder" "$packages"
)

for sanitizers in "${@:-address,undefined}"; do
  case $sanitizers in
    address,undefined | address | undefined | thread) ;;
    *) echo "Unknown sanitizers $sanitizers: use address,undefined or thread." >&2; exit 2 ;;
  esac
done
if [[ $# -eq 0 ]]; then
  set -- address,undefined thread
fi
for sanitizers in "$@"; do
  run "$sanitizers"
done
