# SPDX-License-Identifier: Apache-2.0
# Certificates for egress-tls-servers.py, in $DIR: a root that egress trusts, and servers with it or not.

issue() { # NAME SUBJECT-ALT-NAME ISSUER DAYS
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$DIR/$1.key" -out "$DIR/$1.csr" 2>/dev/null
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\n' "$2" > "$DIR/$1.ext"
    openssl x509 -req -in "$DIR/$1.csr" -CA "$DIR/$3.crt" -CAkey "$DIR/$3.key" -CAcreateserial \
        -days "$4" -extfile "$DIR/$1.ext" -out "$DIR/$1.crt" 2>/dev/null
}

root() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -days 2 \
        -addext basicConstraints=critical,CA:TRUE -keyout "$DIR/$1.key" -out "$DIR/$1.crt" 2>/dev/null
}

tls_setup() {
    # They are in tools/packages: one that is missing is a fault, not a reason to leave this out.
    for tool in openssl nghttpd nghttp node curl jq; do
        command -v "$tool" >/dev/null || {
            echo "$tool is not installed" >&2
            return 1
        }
    done
    root root
    root unknown
    issue good DNS:api.test,DNS:www.test,DNS:second.test root 2
    issue expired DNS:api.test root -1
    issue stranger DNS:api.test unknown 2
    issue other DNS:elsewhere.test root 2
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=self" -days 2 \
        -addext subjectAltName=DNS:api.test -keyout "$DIR/self.key" -out "$DIR/self.crt" 2>/dev/null
}

# Like in_world, with servers that speak TLS; inside, $CA is what the sandbox trusts.
in_tls_world() {
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(-U -r)
    printf '%s' "$1" > "$DIR/rules"
    SERVERS="$BATS_TEST_DIRNAME/egress-tls-servers.py" EGRESS_BIN="$EGRESS_BIN" SCRIPT="$2" \
        SSL_CERT_FILE="$DIR/root.crt" CA="$DIR/state/egress/ca.pem" \
        PROXY=http://127.0.0.1:3128 no_proxy= NO_PROXY= \
        timeout -k 5 "${WORLD_SECONDS:-240}" unshare "${user[@]}" -m -n bash -c "$egress_world"
}
