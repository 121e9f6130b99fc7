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
# process that a test started. $SANITIZE_TESTS names other tests to run.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python}
export CXX=${CXX:-g++}

# Full paths of GCC's runtime libraries, separated by blanks.
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

# An environment whose own packages come before those of the current interpreter.
# A .pth file of ours does not run those found there, so that an editable
# installation of lhtree stays out of the way.
make_environment() {
  "$python" -m venv --without-pip "$1"
  local packages
  packages=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$python" -c 'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' \
    > "$packages/current_interpreter.pth"
  echo "$packages"
}

build() {
  local sanitizers=$1 packages=$2 folder=$3
  # The assertions see an index past the end of a vector whose memory goes on.
  CXXFLAGS="${CXXFLAGS:-} -D_GLIBCXX_ASSERTIONS" "$python" -m pip install --quiet \
    --disable-pip-version-check --no-build-isolation --no-deps --no-compile \
    --target "$packages" -Cbuild-dir="$folder/build" \
    -Ccmake.define.LHTREE_SANITIZE="$sanitizers" "$repository"
}

# The module under test must be ours, and must call the sanitizer.
check_module() {
  local sanitizers=$1 packages=$2 interpreter=$3 core symbol=__asan_init
  [[ $sanitizers == thread ]] && symbol=__tsan_init
  core=$(cd "$repository" && "${interpreter[@]}" -c 'import lhtree._core; print(lhtree._core.__file__)')
  if [[ $core != "$packages"/* ]]; then
    echo "The tests would run with $core instead of the sanitized build." >&2
    return 1
  fi
  if ! grep -q "$symbol" "$core"; then
    echo "$core was built without the $sanitizers sanitizer." >&2
    return 1
  fi
}

run_tests() {
  local sanitizers=$1 folder=$2
  local reports=$folder/report runtimes status=0 tests=() name
  for name in test_tree test_threads test_classifier; do
    [[ -e $repository/tests/$name.py ]] && tests+=("tests/$name.py")
  done
  [[ -n ${SANITIZE_TESTS:-} ]] && read -ra tests <<< "$SANITIZE_TESTS"
  # The C++ library comes first to be found by the sanitizer when it looks for what
  # throws exceptions; the interpreter itself does not load it.
  if [[ $sanitizers == thread ]]; then
    runtimes=$(find_runtimes libtsan.so libstdc++.so)
  else
    runtimes=$(find_runtimes libasan.so libubsan.so libstdc++.so)
  fi
  # The interpreter leaks by design, and its own allocator would hide our errors.
  local common="halt_on_error=1:log_path=$reports"
  local interpreter=(
    env "LD_PRELOAD=$runtimes" PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1
    "ASAN_OPTIONS=$common:detect_leaks=0:detect_stack_use_after_return=1"
    "UBSAN_OPTIONS=$common:print_stacktrace=1"
    "TSAN_OPTIONS=$common:suppressions=$repository/tools/tsan.supp:history_size=5"
    "$folder/environment/bin/python"
  )
  check_module "$sanitizers" "$3" "${interpreter[@]}"
  (cd "$repository" && "${interpreter[@]}" -m pytest -x -q -p no:cacheprovider \
    -p no:faulthandler --timeout=1800 "${tests[@]}") || status=$?
  if compgen -G "$reports*" > /dev/null; then
    cat "$reports"* >&2
    echo "The $sanitizers sanitizer reports errors." >&2
    return 1
  fi
  return "$status"
}

main() {
  local sanitizers folder packages
  if [[ $# -eq 0 ]]; then
    set -- address,undefined thread
  fi
  for sanitizers in "$@"; do
    case $sanitizers in
      address,undefined | address | undefined | thread) ;;
      *) echo "Unknown sanitizers $sanitizers: use address,undefined or thread." >&2; exit 2 ;;
    esac
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    echo "== $sanitizers"
    packages=$(make_environment "$folder/environment")
    build "$sanitizers" "$packages" "$folder"
    run_tests "$sanitizers" "$folder" "$packages"
    rm -rf "$folder"
  done
}

main "$@"
