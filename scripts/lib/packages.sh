# shellcheck shell=bash
# Missing programs come from the distribution's packages.

# need COMMAND:PACKAGE... installs the packages whose command is missing.
need() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null || die "please install: ${missing[*]}"
  [[ $EUID == 0 ]] || die "run as root, or install first: ${missing[*]}"
  say "installing ${missing[*]}"
  install_packages "${missing[@]}"
}

# install_packages keeps the packages from starting their services: the engine's
# package would start a daemon on the host, which is exactly what is not wanted.
install_packages() (
  exec </dev/null >&2
  export DEBIAN_FRONTEND=noninteractive
  saved=$(mktemp -d)
  policy=/usr/sbin/policy-rc.d
  [[ ! -e $policy ]] || mv "$policy" "$saved/"
  trap 'rm -f "$policy"; [[ ! -e $saved/policy-rc.d ]] || mv "$saved/policy-rc.d" "$policy"; rm -rf "$saved"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  # An empty or old package list is the usual reason of a first failure.
  if ! apt_quiet install -y --no-install-recommends "$@" >"$saved/log" 2>&1 &&
    ! { apt_quiet update && apt_quiet install -y --no-install-recommends "$@"; } >"$saved/log" 2>&1; then
    cat "$saved/log"
    exit 1
  fi
)

apt_quiet() { apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }
