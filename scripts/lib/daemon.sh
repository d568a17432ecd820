# shellcheck shell=bash
# dockerd and its containerd, in the engine's network namespace and in a mount
# namespace of their own: what they keep at fixed places (/etc/docker, the shims'
# sockets below /run/containerd) stays theirs and goes when they go.

daemon_configure() {
  mkdir -p "$ENGINE_RUN"/{etc-docker,run-docker,run-containerd}
  # An address on the link that nobody holds: names resolve only where a test
  # plays the resolver, whatever resolver the host itself uses.
  printf 'nameserver %s.53\noptions timeout:1 attempts:1\n' "$ENGINE_NET" >"$ENGINE_RUN/resolv.conf"
  cat >"$ENGINE_DIR/containerd.toml" <<TOML
version = 2
root = "$ENGINE_DIR/data/containerd"
state = "$ENGINE_RUN/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[debug]
  level = "warn"
[grpc]
  address = "$ENGINE_CONTAINERD"
TOML
  local driver=overlay2
  [[ ${CAISSON_ENGINE_DISK_FS:-} != btrfs ]] || driver=btrfs
  cat >"$ENGINE_DIR/daemon.json" <<JSON
{
  "data-root": "$ENGINE_DIR/data/docker",
  "exec-root": "$ENGINE_RUN/exec",
  "pidfile": "$ENGINE_PIDFILE",
  "hosts": ["unix://$ENGINE_SOCKET", "tcp://$ENGINE_NET.2:2376"],
  "group": "root",
  "tlsverify": true,
  "tlscacert": "$ENGINE_DIR/server/ca.pem",
  "tlscert": "$ENGINE_DIR/server/cert.pem",
  "tlskey": "$ENGINE_DIR/server/key.pem",
  "containerd": "$ENGINE_CONTAINERD",
  "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "cgroup-parent": "/$ENGINE_ID/containers",
  "storage-driver": "$driver",
  "runtimes": {"crun": {"path": "/usr/bin/crun"}},
  "live-restore": ${CAISSON_ENGINE_LIVE_RESTORE:-false},
  "userland-proxy": false,
  "insecure-registries": ["$ENGINE_NET.0/24"],
  "shutdown-timeout": 5
}
JSON
}

# spawn MOUNT-NAMESPACE-COMMAND... -- DAEMON... starts a daemon detached from the
# caller and prints its process id. Every step execs, so the id stays the same.
spawn() {
  local enter=()
  while [[ $1 != -- ]]; do
    enter+=("$1")
    shift
  done
  shift
  # A job that a script puts behind itself ignores signals, and every container
  # would inherit that.
  setsid -- env --default-signal -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    nsenter --net="$ENGINE_NETNS_PATH" -- "${enter[@]}" \
    bash "$REPO/scripts/lib/inside.sh" "$(cgroup_main)/engine" "$ENGINE_RUN" "$@" \
    </dev/null >>"$ENGINE_LOG" 2>&1 9>&- &
  printf '%s\n' "$!"
}

daemon_start() {
  local containerd tree enter=(unshare --mount --propagation private)
  tree=$(engine_tree)
  [[ -z $tree ]] || enter+=(bash "$REPO/scripts/lib/inside-tree.sh" "$tree" "$ENGINE_RUN" "$REPO" "$ENGINE_DIR/data")
  mkdir -p "$(cgroup_main)/engine"
  # A killed daemon leaves its pid file, and the number may be another's by now.
  rm -f "$ENGINE_PIDFILE" "$ENGINE_SOCKET" "$ENGINE_CONTAINERD"
  containerd=$(spawn "${enter[@]}" -- \
    containerd --config "$ENGINE_DIR/containerd.toml")
  printf '%s\n' "$containerd" >"$ENGINE_RUN/containerd.pid"
  daemon_wait "$containerd" test -S "$ENGINE_CONTAINERD"
  dockerd_start "$containerd"
}

# dockerd_start CONTAINERD-PID
dockerd_start() {
  local dockerd
  dockerd=$(spawn nsenter --mount="/proc/$1/ns/mnt" -- \
    dockerd --config-file "$ENGINE_DIR/daemon.json")
  daemon_wait "$dockerd" engine_healthy
}

# daemon_bounce kills dockerd alone and starts it again. Under live-restore the
# containers know nothing of it.
daemon_bounce() {
  local dockerd
  dockerd=$(<"$ENGINE_PIDFILE")
  kill -KILL "$dockerd"
  wait_gone "$dockerd" 20 || die 'dockerd does not end'
  rm -f "$ENGINE_PIDFILE" "$ENGINE_SOCKET"
  dockerd_start "$(<"$ENGINE_RUN/containerd.pid")"
}

# daemon_wait PID CHECK... waits up to 60 s for a daemon to be ready.
daemon_wait() {
  local pid=$1 deadline=$((SECONDS + 60))
  shift
  until "$@"; do
    if ! alive "$pid" || ((SECONDS >= deadline)); then
      tail -n 20 "$ENGINE_LOG" >&2
      die "the engine did not come up; its log is $ENGINE_LOG"
    fi
    sleep 0.1
  done
}

# daemon_stop ends the daemons in order, then whatever of them is left.
daemon_stop() {
  local pid file
  for file in "$ENGINE_PIDFILE" "$ENGINE_RUN/containerd.pid"; do
    [[ -r $file ]] || continue
    pid=$(<"$file")
    # Only a process in the engine's own group: the number may be another's by now.
    grep -qxF "$pid" "$(cgroup_main)/engine/cgroup.procs" 2>/dev/null || continue
    kill -TERM "$pid" 2>/dev/null || true
    wait_gone "$pid" 20 || true
  done
  processes_kill
}
