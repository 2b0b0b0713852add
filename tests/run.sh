#!/bin/bash
# Installs what is missing, builds the default configuration and runs its tests. Options go to
# `meson test`: tests/run.sh --suite unit --verbose
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

configure_default
ninja -C "$root/build/default"
exec meson test -C "$root/build/default" --no-rebuild --print-errorlogs "$@"
