# shellcheck shell=bash disable=SC2034
# Names, addresses and paths of one engine. Two clones of the repository, or two
# engines of one clone, never share any: all are derived from the clone's path and
# the engine's name.

# say writes progress to stderr, so that stdout stays usable for `eval "$(engine env)"`.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# engine_names NAME sets every ENGINE_* variable; it starts and writes nothing.
engine_names() {
  ENGINE_NAME=$1
  [[ $ENGINE_NAME =~ ^[a-z0-9][a-z0-9-]{0,15}$ ]] ||
    die "engine name must be 1 to 16 of a-z, 0-9 and '-': $ENGINE_NAME"
  ENGINE_HASH=$(printf '%s\n%s' "$REPO" "$ENGINE_NAME" | sha256sum | cut -c1-8)
  ENGINE_ID=caisson-$ENGINE_NAME-$ENGINE_HASH
  ENGINE_DIR=$REPO/.engine/$ENGINE_NAME
  ENGINE_RUN=/run/$ENGINE_ID # short: a unix socket's path has 108 bytes at most
  ENGINE_SOCKET=$ENGINE_RUN/docker.sock
  ENGINE_CONTAINERD=$ENGINE_RUN/containerd.sock
  ENGINE_PIDFILE=$ENGINE_RUN/dockerd.pid
  ENGINE_NETNS=$ENGINE_ID
  ENGINE_NETNS_PATH=/run/netns/$ENGINE_NETNS
  ENGINE_LINK=cs$ENGINE_HASH # a link's name has 15 bytes at most
  ENGINE_CLIENT=$ENGINE_DIR/client
  ENGINE_LOG=$ENGINE_DIR/dockerd.log
  ENGINE_HOST='' # its address where it is not an engine of this clone
  ENGINE_NET=''
  if [[ -r $ENGINE_DIR/subnet ]]; then
    ENGINE_NET=$(<"$ENGINE_DIR/subnet")
  fi
}

# engine_env prints the shell exports by which others find a running engine.
engine_env() {
  local pair
  for pair in \
    "SANDBOX_DOCKER_HOST=tcp://$ENGINE_NET.2:2376" \
    "SANDBOX_DOCKER_TLS_CERT_PATH=$ENGINE_CLIENT/cert.pem" \
    "SANDBOX_DOCKER_TLS_KEY_PATH=$ENGINE_CLIENT/key.pem" \
    "SANDBOX_DOCKER_TLS_CA_PATH=$ENGINE_CLIENT/ca.pem" \
    "CAISSON_ENGINE_NAME=$ENGINE_NAME" \
    "CAISSON_ENGINE_SOCKET=$ENGINE_SOCKET" \
    "CAISSON_ENGINE_NETNS=$ENGINE_NETNS_PATH" \
    "CAISSON_ENGINE_PIDFILE=$ENGINE_PIDFILE" \
    "CAISSON_ENGINE_DIR=$ENGINE_DIR"; do
    printf "export %s='%s'\n" "${pair%%=*}" "${pair#*=}"
  done
}

# engine_select NAME|FILE chooses an engine of this clone by its name, or any other
# by the file of exports that points at it, and fails where it does not answer.
engine_select() {
  local found
  if [[ $1 == */* ]]; then
    [[ -r $1 ]] || die "no such file: $1"
    # In a shell of its own: the file may export anything.
    # shellcheck source=/dev/null
    mapfile -t found < <(source "$1" && printf '%s\n' "$SANDBOX_DOCKER_HOST" "${SANDBOX_DOCKER_TLS_CERT_PATH%/*}")
    ENGINE_NAME=$1 ENGINE_HOST=${found[0]} ENGINE_CLIENT=${found[1]}
  else
    engine_names "$1"
  fi
  engine_answers || die "engine '$1' does not answer; scripts/engine up starts one"
}

# engine_docker runs the docker client against the engine's mTLS address.
engine_docker() {
  DOCKER_HOST=${ENGINE_HOST:-tcp://$ENGINE_NET.2:2376} DOCKER_TLS_VERIFY=1 \
    DOCKER_CERT_PATH=$ENGINE_CLIENT docker "$@"
}

# engine_answers says whether the engine answers at its mTLS address within 5 s.
engine_answers() {
  DOCKER_HOST=${ENGINE_HOST:-tcp://$ENGINE_NET.2:2376} DOCKER_TLS_VERIFY=1 \
    DOCKER_CERT_PATH=$ENGINE_CLIENT timeout 5 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# engine_healthy says whether this clone's engine is up and answers.
engine_healthy() {
  [[ -n $ENGINE_NET && -r $ENGINE_DIR/env && -e $ENGINE_NETNS_PATH ]] && engine_answers
}
