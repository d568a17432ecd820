#!/usr/bin/env bash
# Usage: inside.sh CGROUP RUN-DIR DAEMON...
# Runs inside the engine's namespaces: joins the control group, lays the engine's
# own directories over the fixed paths and becomes the daemon.
set -euo pipefail
echo $$ >"$1/cgroup.procs"
run=$2
shift 2
# overlay SOURCE TARGET mounts once: a daemon started again joins the namespace as it is.
overlay() {
  local target
  [[ ! -d $1 ]] || mkdir -p "$2"
  target=$(readlink -f "$2") || return 0
  if [[ -e $target ]] && ! grep -qF " $target " /proc/self/mounts; then
    mount --bind "$1" "$target"
  fi
}
overlay "$run/etc-docker" /etc/docker
overlay "$run/run-docker" /run/docker
overlay "$run/run-containerd" /run/containerd
overlay "$run/resolv.conf" /etc/resolv.conf
# crun makes no container where both versions of cgroups are mounted.
if [[ -e /sys/fs/cgroup/unified/cgroup.procs ]]; then umount /sys/fs/cgroup/unified; fi
exec "$@"
