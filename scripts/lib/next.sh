# shellcheck shell=bash disable=SC2034
# ENGINE=next: a newer engine, from the distribution's testing suite. Its programs live
# in a tree of their own, which its daemons have as their root.

NEXT_SUITE=forky
NEXT_PACKAGES=(docker.io crun iptables nftables iproute2 mount procps ca-certificates)

# engine_kind prints which engine `up` is asked for.
engine_kind() {
  case ${ENGINE:-distribution} in
  distribution | next) printf '%s\n' "${ENGINE:-distribution}" ;;
  *) die "ENGINE must be distribution or next: $ENGINE" ;;
  esac
}

# engine_is_asked fails where an engine of the other kind runs under this name.
engine_is_asked() {
  local asked runs=distribution
  asked=$(engine_kind)
  [[ -n ${ENGINE:-} ]] || return 0
  [[ -z $(engine_tree) ]] || runs=next
  [[ $runs == "$asked" ]] ||
    die "engine '$ENGINE_NAME' runs and is ENGINE=$runs; scripts/engine down $ENGINE_NAME first"
}

# engine_tree prints the tree that this engine's daemons have as their root, nothing
# where that is the host's own.
engine_tree() { cat "$ENGINE_DIR/tree" 2>/dev/null || true; }

# next_up chooses the engine's tree, and makes it where the cache has none.
next_up() {
  local tree
  [[ $(engine_kind) == next ]] || return 0
  tree=$(cache_dir)/engine-next-$(key_of next_make debian_rootfs -- <(echo "$NEXT_SUITE ${NEXT_PACKAGES[*]}"))
  if [[ ! -d $tree ]]; then
    say "making the tree of ENGINE=next from $NEXT_SUITE, a minute or so"
    next_make "$tree"
    next_prune "$tree"
  fi
  printf '%s\n' "$tree" >"$ENGINE_DIR/tree"
}

# next_make TREE
next_make() (
  work=$(mktemp -d "$1.XXXXXX")
  trap 'rm -rf --one-file-system "$work"' EXIT
  chmod 755 "$work"
  mkdir "$work/tree"
  # The suite's release file can be past its date.
  echo 'Acquire::Check-Valid-Until "false";' >"$work/apt.conf"
  SUITE=$NEXT_SUITE
  APT_CONFIG=$work/apt.conf debian_rootfs "$work/tree" "${NEXT_PACKAGES[@]}"
  : >"$work/tree/etc/resolv.conf"
  rm -rf "$work"/tree/{var/cache/apt,var/lib/apt/lists}/*
  # Another one may have made it meanwhile.
  mv -T "$work/tree" "$1" 2>/dev/null || [[ -d $1 ]]
)

# next_prune TREE removes earlier trees that no engine runs in.
next_prune() {
  local tree
  for tree in "$(cache_dir)"/engine-next-????????????????; do
    [[ $tree == "$1" ]] || grep -qsF "lowerdir=$tree," /proc/[0-9]*/mountinfo ||
      rm -rf --one-file-system "$tree"
  done
}
