# shellcheck shell=bash
# The data root is a file system of fixed size in a sparse file: filling the
# engine's disk fills nothing else.

disk_up() {
  local gb=${CAISSON_ENGINE_DISK_GB:-8}
  [[ $gb =~ ^[1-9][0-9]*$ ]] || die "CAISSON_ENGINE_DISK_GB must be a whole number of GiB: $gb"
  truncate -s "${gb}G" "$ENGINE_DIR/disk.img"
  # discard gives what was deleted inside back to the host's disk.
  local options=loop,discard
  case ${CAISSON_ENGINE_DISK_FS:-ext4} in
  ext4) mkfs.ext4 -q -F -m 0 -E lazy_itable_init=1,lazy_journal_init=1 "$ENGINE_DIR/disk.img" ;;
  xfs) # with project quotas, by which the engine caps containers and volumes
    need mkfs.xfs:xfsprogs
    mkfs.xfs -q "$ENGINE_DIR/disk.img"
    options+=,pquota
    ;;
  btrfs) # the engine's driver of that name caps containers, and nothing caps volumes
    need mkfs.btrfs:btrfs-progs
    mkfs.btrfs -q "$ENGINE_DIR/disk.img" >/dev/null
    ;;
  *) die "CAISSON_ENGINE_DISK_FS must be ext4, xfs or btrfs: $CAISSON_ENGINE_DISK_FS" ;;
  esac
  mkdir -p "$ENGINE_DIR/data"
  mount -o "$options" "$ENGINE_DIR/disk.img" "$ENGINE_DIR/data"
}

# disk_down unmounts whatever lies below the engine's directories, deepest first.
disk_down() {
  local target
  while read -r target; do
    umount "$target" 2>/dev/null || umount -l "$target"
  done < <(mounts_below "$ENGINE_DIR" "$ENGINE_RUN")
  local device
  while read -r device; do
    losetup -d "$device" 2>/dev/null || true
  done < <(losetup -n -O NAME -j "$ENGINE_DIR/disk.img" 2>/dev/null || true)
}

# mounts_below DIR... lists mount points, the last mounted first.
mounts_below() {
  local _ target dir
  while read -r _ target _; do
    target=$(printf '%b' "$target") # a blank in a path is written as \040
    for dir in "$@"; do
      case $target in "$dir" | "$dir"/*) printf '%s\n' "$target" ;; esac
    done
  done </proc/self/mounts | tac
}
