# shellcheck shell=bash
# Every process of an engine, its containers' included, lives below one control
# group, so that all of them can be found and ended whatever state the engine is in.

# cgroup_roots lists the engine's group in each mounted hierarchy (version 1 has many).
cgroup_roots() {
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    printf '%s\n' "/sys/fs/cgroup/$ENGINE_ID"
  else
    local hierarchy
    for hierarchy in /sys/fs/cgroup/*/; do
      printf '%s\n' "$hierarchy$ENGINE_ID"
    done
  fi
}

# cgroup_main is the group that counts the processes.
cgroup_main() {
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    printf '%s\n' "/sys/fs/cgroup/$ENGINE_ID"
  else
    printf '%s\n' "/sys/fs/cgroup/pids/$ENGINE_ID"
  fi
}

# engine_processes lists the ids of all processes of the engine, and of those that
# others started inside its network namespace.
engine_processes() {
  {
    find "$(cgroup_main)" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    if [[ -e $ENGINE_NETNS_PATH ]]; then ip netns pids "$ENGINE_NETNS" 2>/dev/null || true; fi
  } | sort -un
}

# processes_kill ends all of them and waits until they are gone, 20 s at most.
processes_kill() {
  local pids deadline=$((SECONDS + 20))
  while pids=$(engine_processes) && [[ -n $pids ]]; do
    ((SECONDS < deadline)) || die "processes that do not end: ${pids//$'\n'/ }"
    # A frozen (paused) container's processes cannot die before they are thawed.
    processes_thaw
    xargs -r kill -KILL <<<"$pids" 2>/dev/null || true
    sleep 0.05
  done
}

processes_thaw() {
  local root
  while read -r root; do
    find "$root" -name freezer.state -exec sh -c 'for f; do echo THAWED >"$f"; done' _ {} + 2>/dev/null || true
    find "$root" -name cgroup.freeze -exec sh -c 'for f; do echo 0 >"$f"; done' _ {} + 2>/dev/null || true
  done < <(cgroup_roots)
}

cgroups_remove() {
  local root
  while read -r root; do
    [[ ! -d $root ]] || find "$root" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done < <(cgroup_roots)
}

# alive says whether a process runs; one that ended and waits to be reaped does not.
alive() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  [[ ${stat##*) } != Z* ]]
}

# wait_gone PID SECONDS waits for a process that is no child of this shell.
wait_gone() {
  local deadline=$((SECONDS + $2))
  while alive "$1"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}
