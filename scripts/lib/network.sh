# shellcheck shell=bash disable=SC2153
# The engine's network namespace: another host, reached over one veth pair. It has
# no default route and nothing translates its addresses, so that a packet it means
# to send elsewhere ends there.

# in_engine_net runs a command inside the namespace.
in_engine_net() { nsenter --net="$ENGINE_NETNS_PATH" -- "$@"; }

# subnet_free says whether no route of the host and no other engine uses NET.0/24.
subnet_free() {
  local taken
  taken=$(ip -4 route show table all root "$1.0/24")
  [[ -z $taken ]] || return 1
  # A larger network that the host is directly joined to would be shadowed.
  taken=$(ip -4 route show table main match "$1.0/24" | grep -v '^default' || true)
  [[ -z $taken ]] && ! grep -qF "nameserver $1." /etc/resolv.conf 2>/dev/null
}

# choose_subnet sets ENGINE_NET to three bytes of a free /24 below 10.64.0.0/10,
# starting from the engine's hash.
choose_subnet() {
  local start=$((16#${ENGINE_HASH:0:4})) i n
  for ((i = 0; i < 256; i++)); do
    n=$(((start + i * 97) % 16384))
    ENGINE_NET=10.$((64 + n / 256)).$((n % 256))
    if subnet_free "$ENGINE_NET"; then return 0; fi
  done
  die 'no free subnet below 10.64.0.0/10'
}

network_up() {
  choose_subnet
  ip netns add "$ENGINE_NETNS"
  ip link add "$ENGINE_LINK" type veth peer name eth0 netns "$ENGINE_NETNS"
  ip addr add "$ENGINE_NET.1/24" dev "$ENGINE_LINK"
  ip link set "$ENGINE_LINK" up
  # With the link gone a client's packets would follow the host's default route
  # and leave the machine; this route ends them here.
  ip route add unreachable "$ENGINE_NET.0/24" metric 4096
  in_engine_net ip link set lo up
  in_engine_net ip addr add "$ENGINE_NET.2/24" dev eth0
  in_engine_net ip link set eth0 up
  printf '%s\n' "$ENGINE_NET" >"$ENGINE_DIR/subnet"
}

network_down() {
  ip link del "$ENGINE_LINK" 2>/dev/null || true
  if [[ -n $ENGINE_NET ]]; then
    ip route del unreachable "$ENGINE_NET.0/24" metric 4096 2>/dev/null || true
  fi
  if [[ -e $ENGINE_NETNS_PATH ]]; then ip netns del "$ENGINE_NETNS"; fi
}

# The engine's end is the one that goes down: the host's end keeps its route.
network_cut() { in_engine_net ip link set eth0 down; }
network_heal() { in_engine_net ip link set eth0 up; }
