# shellcheck shell=bash
# Small image trees from the distribution's static busybox.

# skeleton DIR makes an empty root with what every image here has.
skeleton() {
  mkdir -p "$1"/{bin,etc,root,tmp,usr,var,dev,proc,sys}
  chmod 1777 "$1/tmp"
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$1/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
}

# static_busybox FILE copies the static build, without replacing a dynamic one that
# the host has (a plain Debian does).
static_busybox() {
  local unpacked
  need busybox:busybox-static
  if ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
    cp "$(command -v busybox)" "$1"
    return
  fi
  unpacked=$(mktemp -d)
  (cd "$unpacked" && apt_quiet download busybox-static >&2 && dpkg-deb -x ./*.deb .)
  cp "$unpacked/bin/busybox" "$1"
  rm -rf "$unpacked"
}

# busybox_tree DIR has every applet.
busybox_tree() {
  local applet
  skeleton "$1"
  static_busybox "$1/bin/busybox"
  "$1/bin/busybox" --list | while read -r applet; do
    [[ $applet == busybox ]] || ln -s busybox "$1/bin/$applet"
  done
}

# contract_tree DIR COMMAND... has just these commands. The shell is dash: busybox's
# own would run applets that have no file.
contract_tree() {
  local dir=$1 command library
  shift
  need dash:dash
  skeleton "$dir"
  for command in "$@"; do
    case $command in
    sh) cp "$(readlink -f "$(command -v dash)")" "$dir/bin/sh" ;;
    *)
      # Hard links: a symbolic one would need a name for the whole busybox.
      if [[ -e $dir/bin/.first ]]; then
        ln "$dir/bin/.first" "$dir/bin/$command"
      else
        static_busybox "$dir/bin/$command"
        ln "$dir/bin/$command" "$dir/bin/.first"
      fi
      ;;
    esac
  done
  rm -f "$dir/bin/.first"
  while read -r library; do
    mkdir -p "$dir${library%/*}"
    cp -L "$library" "$dir$library"
  done < <(ldd "$dir/bin/sh" | grep -o '/[^ ]*')
}

# import_tree DIR TAG [CHANGE...] makes an image of a tree, everything owned by root.
import_tree() {
  local dir=$1 tag=$2
  shift 2
  tar -C "$dir" --owner=0 --group=0 --numeric-owner -c . | engine_docker import "$@" - "$tag" >/dev/null
}
