#!/bin/bash
# Installs what is missing, builds headrace-bench and runs it. Options go to the program:
# bench/run.sh --help. Only the program writes to stdout.
source "$(dirname "${BASH_SOURCE[0]}")/../tests/setup.sh"

configure_default
ninja -C "$root/build/default" bench/headrace-bench >&2
exec "$root/build/default/bench/headrace-bench" "$@"
