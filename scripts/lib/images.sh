# shellcheck shell=bash
# Image bases made from the distribution's packages, and the cache of built images.
# No registry is asked and the engine's namespace needs no way out: packages are
# fetched by the host's own package client.

SUITE=bookworm

# cache_dir prints the directory of the cache and makes it.
cache_dir() {
  local dir=${CAISSON_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/caisson}
  mkdir -p "$dir"
  printf '%s\n' "$dir"
}

# key_of FUNCTION... [-- FILE...] hashes what an image is made from: the shell
# functions that make it and the files that they read.
key_of() {
  local functions=()
  while (($#)) && [[ $1 != -- ]]; do
    functions+=("$1")
    shift
  done
  { uname -m && echo "$SUITE" && declare -f "${functions[@]}" && cat -- "${@:2}" </dev/null; } |
    sha256sum | cut -c1-16
}

# has_image TAG KEY says whether the engine's image of that name was made from KEY.
has_image() {
  [[ $(engine_docker image inspect --format '{{index .Config.Labels "caisson.image.key"}}' "$1" 2>/dev/null) == "$2" ]]
}

# cached TAG KEY BUILDER makes sure that the engine has the image: as it is, from
# the cache, or by calling BUILDER TAG KEY, whose result is then cached.
cached() {
  local tag=$1 key=$2 builder=$3 file stem start=$SECONDS how=built
  if has_image "$tag" "$key"; then return 0; fi
  need zstd:zstd
  stem=$(cache_dir)/${tag//[:\/]/-}
  file=$stem-$key.tar.zst
  if [[ -r $file ]] && zstd -dcq "$file" | engine_docker load -q >&2; then
    how=loaded
  else
    "$builder" "$tag" "$key"
    engine_docker save "$tag" | zstd -q -1 -T0 -f -o "$file.$$"
    find "$(cache_dir)" -maxdepth 1 -name "${stem##*/}-*.tar.zst" -delete
    mv "$file.$$" "$file"
  fi
  prune_replaced
  has_image "$tag" "$key" || die "$tag is not what was built"
  say "$tag $how in $((SECONDS - start)) s, $(image_mb "$tag") MB"
}

# prune_replaced removes earlier builds that no container uses.
prune_replaced() { engine_docker image prune -f --filter label=caisson.image.key >/dev/null; }

image_mb() { echo $(($(engine_docker image inspect --format '{{.Size}}' "$1") / 1000000)); }

# debian_rootfs FILE [PACKAGE...] writes a minimal Debian tree as a tar file.
debian_rootfs() {
  local file=$1 include options=() line
  shift
  include=$(IFS=, && printf '%s' "$*")
  need mmdebstrap:mmdebstrap
  # The host's package client may need a proxy, or a clock that is off forgiven.
  while read -r line; do
    options+=(--aptopt="$line")
  done < <(apt-config dump | grep -Ei '^Acquire::(Check-|Retries|ForceIPv|https?::(Proxy|Ca))' || true)
  mmdebstrap --quiet --variant=minbase --mode=root ${include:+--include="$include"} "${options[@]}" \
    --dpkgopt="$REPO/images/session/dpkg.cfg" \
    "$SUITE" "$file" ${CAISSON_DEBIAN_MIRROR:+"$CAISSON_DEBIAN_MIRROR"} >&2
}

# debian_package NAME prints the file of a package of the suite, fetched once.
debian_package() {
  local file options=() line dir
  file=$(cache_dir)/$1-$SUITE-$(dpkg --print-architecture).deb
  if [[ ! -r $file ]]; then
    need mmdebstrap:mmdebstrap
    while read -r line; do
      options+=(--aptopt="$line")
    done < <(apt-config dump | grep -Ei '^Acquire::(Check-|Retries|ForceIPv|https?::(Proxy|Ca))' || true)
    dir=$(mktemp -d)
    mmdebstrap --quiet --variant=extract --mode=root --include="$1" "${options[@]}" --skip=cleanup/apt \
      "$SUITE" "$dir/tree.tar" ${CAISSON_DEBIAN_MIRROR:+"$CAISSON_DEBIAN_MIRROR"} >&2
    tar -C "$dir" -xf "$dir/tree.tar" --wildcards "./var/cache/apt/archives/$1_*.deb" >&2
    cp "$dir"/var/cache/apt/archives/"$1"_*.deb "$file.$$"
    mv "$file.$$" "$file"
    rm -rf "$dir"
  fi
  printf '%s\n' "$file"
}

# worker_binary builds the worker for the tool image, static and the same each time.
worker_binary() (
  cd "$REPO" || exit
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o images/tools/bin/caisson-worker ./executor/worker/caisson-worker
)
