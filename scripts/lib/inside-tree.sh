#!/usr/bin/env bash
# Usage: inside-tree.sh TREE RUN-DIR REPO DATA COMMAND...
# Runs in a mount namespace of its own: makes a writable view of the tree the root and
# becomes the command in it. What lies at a fixed place for tests and for the host stays
# where it is. dockerd needs a root that is a mount point, which chroot alone is not.
set -euo pipefail
tree=$1 run=$2 repo=$3 data=$4
shift 4
root=$run/root
rm -rf --one-file-system "$root" "$run"/root-{upper,work} # of an earlier start
mkdir "$root" "$run"/root-{upper,work}
mount -t overlay -o "lowerdir=$tree,upperdir=$run/root-upper,workdir=$run/root-work" overlay "$root"
# share HOW DIR lays a directory of the host over the same place of the tree.
share() {
  mkdir -p "$root$2"
  mount "$1" "$2" "$root$2"
}
share --rbind /proc
share --rbind /sys
share --rbind /dev
share --bind /tmp
share --bind "$run"
# Not what is mounted below it: another engine's disk would be kept from going.
share --bind "$repo"
share --rbind "$data"
[[ ! -d /lib/modules ]] || share --bind "$(readlink -f /lib/modules)"
cd "$root"
mkdir -p .host
pivot_root . .host
umount -l .host
rmdir .host
exec "$@"
