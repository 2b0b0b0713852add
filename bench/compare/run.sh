#!/bin/bash
# From a fresh machine with a Hopper GPU to the table: installs what is missing, the rivals into
# .venv-compare/, builds headrace, measures, and writes results, table and pictures to
# build/compare/. Options go to `compare measure`: bench/compare/run.sh --quick. Only the table goes
# to stdout. The same command goes on after an interruption.
source "$(dirname "${BASH_SOURCE[0]}")/../../tests/setup.sh"

venv=$root/.venv-compare
out=$root/build/compare
requirements=$root/bench/compare/requirements.txt

command -v nvcc >/dev/null || fail "needs nvcc of CUDA 13 on the PATH"
command -v python3.12 >/dev/null || fail "needs python3.12, which the rivals' wheels are pinned for"
if ! cmp -s "$requirements" "$venv/installed.txt"; then
  echo "installing the rivals into $venv" >&2
  python3.12 -m venv --clear "$venv" || fail "python3.12 could not make $venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
    -r "$requirements" >&2 || fail "pip could not install $requirements"
  cp "$requirements" "$venv/installed.txt"
fi

configure_default
meson compile -C "$root/build/default" headrace:shared_library >&2

mkdir -p "$out"
export PYTHONPATH=$root/bench PATH=$venv/bin:$PATH
python -m compare measure --json "$out/compare.json" "$@" | tee "$out/compare.md"
python -m compare plot "$out/compare.json" --out "$out" >&2
