# shellcheck shell=bash
# The engine's own certificate authority. Its key stays in ca/, so that a test can
# issue the certificates that its own case needs.

new_key_args=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)

# issue DIR CN EXTENSION... makes DIR/cert.pem and DIR/key.pem, signed by the CA.
issue() {
  local dir=$1 cn=$2 ext=() e
  shift 2
  for e in "$@"; do ext+=(-addext "$e"); done
  mkdir -p "$dir"
  openssl req -new -batch "${new_key_args[@]}" -subj "/CN=$cn" "${ext[@]}" \
    -keyout "$dir/key.pem" -out "$dir/request.pem" 2>/dev/null
  openssl x509 -req -in "$dir/request.pem" -CA "$ENGINE_DIR/ca/ca.pem" \
    -CAkey "$ENGINE_DIR/ca/ca-key.pem" -CAcreateserial -days 365 -sha256 \
    -copy_extensions copy -out "$dir/cert.pem" 2>/dev/null
  rm "$dir/request.pem"
  cp "$ENGINE_DIR/ca/ca.pem" "$dir/ca.pem"
  chmod 600 "$dir/key.pem"
}

certificates_make() {
  mkdir -p "$ENGINE_DIR/ca"
  openssl req -x509 -batch "${new_key_args[@]}" -subj "/CN=$ENGINE_ID" -days 365 -sha256 \
    -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$ENGINE_DIR/ca/ca-key.pem" -out "$ENGINE_DIR/ca/ca.pem" 2>/dev/null
  chmod 600 "$ENGINE_DIR/ca/ca-key.pem"
  issue "$ENGINE_DIR/server" "$ENGINE_NET.2" \
    "subjectAltName=IP:$ENGINE_NET.2" extendedKeyUsage=serverAuth
  issue "$ENGINE_CLIENT" caisson extendedKeyUsage=clientAuth
}
