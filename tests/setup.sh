# shellcheck shell=bash
# Sourced by tests/run.sh, bench/run.sh and .ci/run: tools and packages of a build, and the one
# build that the first two share, build/default. Everything here is quick when nothing is missing.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
meson_needed=1.4
packages=(g++ pkg-config libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev catch2 cmake make
  python3-numpy python3-matplotlib)

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  else
    command -v sudo >/dev/null || fail "needs root or sudo for: $*"
    sudo "$@"
  fi
}

# Installs those of the named Debian packages that are missing. A system without dpkg has to bring
# them itself; Meson names what it does not find.
install_packages() {
  command -v dpkg-query >/dev/null || return 0
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  echo "installing ${missing[*]}" >&2
  as_root apt-get -qq update >&2 || fail "apt-get update failed"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "${missing[@]}" >&2 ||
    fail "apt-get could not install ${missing[*]}"
}

is_new_enough() {
  local version
  version=$("$1" --version 2>/dev/null) || return 1
  [[ $(printf '%s\n' "$meson_needed" "$version" | sort -V | head -n 1) == "$meson_needed" ]]
}

# Puts Meson and Ninja on PATH: the system's if they will do, else those of .venv.
find_meson() {
  if is_new_enough meson && command -v ninja >/dev/null; then return; fi
  export PATH=$root/.venv/bin:$PATH
  if is_new_enough meson && command -v ninja >/dev/null; then return; fi
  install_packages python3-venv
  echo "installing Meson and Ninja into .venv" >&2
  python3 -m venv --clear "$root/.venv" || fail "python3 could not make $root/.venv"
  "$root/.venv/bin/pip" install --quiet --disable-pip-version-check \
    "meson>=$meson_needed" ninja >&2 || fail "pip could not install Meson and Ninja"
  is_new_enough meson || fail "needs Meson >= $meson_needed, given $(meson --version)"
}

# Configures build/default unless that is done; ninja configures again what changes.
configure_default() {
  install_packages "${packages[@]}"
  find_meson
  [[ -f $root/build/default/build.ninja ]] || meson setup "$root/build/default" "$root" >&2
}
