# shellcheck shell=bash disable=SC2034
# Programs of the Go registry at fixed versions, kept in .tools.

GOLANGCI_VERSION=v2.15.0
GOVULNCHECK_VERSION=v1.9.0
CYCLONEDX_VERSION=v1.10.0
# The database of vulnerabilities as of that day: a check's verdict does not change by itself.
VULNDB_VERSION=v0.0.0-20261105234957-e22db6528018

# tool NAME VERSION PACKAGE prints the program's path, and builds it where it is missing.
tool() {
  local path=$REPO/.tools/$1-$2 dir
  if [[ ! -x $path ]]; then
    say "building $1 $2"
    mkdir -p "$REPO/.tools"
    dir=$(mktemp -d "$REPO/.tools/build.XXXXXX")
    GOBIN=$dir GOFLAGS='' go install -trimpath "$3@$2" >&2
    mv "$dir/$1" "$path"
    rmdir "$dir"
  fi
  printf '%s\n' "$path"
}

# go_floor prints the Go version that docs/security.md wants for what is released.
go_floor() { sed -n 's/^| Go standard library | \(go[0-9.]*\) |.*/\1/p' "$REPO/docs/security.md"; }
