# SPDX-License-Identifier: Apache-2.0
# Makes images out of what is there: busybox, tar, gzip, sha256sum, jq.
#
#     layer_tar FOLDER TAR            a layer from a folder
#     layout_new LAYOUT               an empty OCI layout
#     layout_add LAYOUT TAR [gzip|zstd|none]
#     layout_finish LAYOUT [NAME]     configuration, manifest, index; prints the manifest's digest.
#                                     USER is $IMAGE_USER, 1000 unless that is set
#     push LAYOUT HOST:PORT NAME TAG  to a registry, with curl
#     busybox_layout LAYOUT [NAME]    all of it, with two layers

blob_in() { # LAYOUT FILE: keeps it by its digest and prints that
    local hex
    hex=$(sha256sum <"$2" | cut -d' ' -f1)
    mkdir -p "$1/blobs/sha256"
    cp "$2" "$1/blobs/sha256/$hex"
    printf 'sha256:%s\n' "$hex"
}

layer_tar() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@1700000000 -C "$1" -cf "$2" .
}

layout_new() {
    mkdir -p "$1/blobs/sha256"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$1/oci-layout"
    echo '[]' >"$1.layers"
    echo '[]' >"$1.ids"
}

layout_add() {
    local how=${3:-gzip} type=application/vnd.oci.image.layer.v1.tar digest id
    id=sha256:$(sha256sum <"$2" | cut -d' ' -f1)
    case $how in
    gzip) gzip -n -c "$2" >"$1.blob" && type=$type+gzip ;;
    zstd) zstd -q -c "$2" >"$1.blob" && type=$type+zstd ;;
    none) cp "$2" "$1.blob" ;;
    esac
    digest=$(blob_in "$1" "$1.blob")
    jq -c --arg d "$digest" --argjson s "$(stat -c %s "$1.blob")" --arg t "$type" \
        '. + [{mediaType: $t, digest: $d, size: $s}]' "$1.layers" >"$1.new" && mv "$1.new" "$1.layers"
    jq -c --arg i "$id" '. + [$i]' "$1.ids" >"$1.new" && mv "$1.new" "$1.ids"
    rm -f "$1.blob"
}

host_architecture() {
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
    esac
}

layout_finish() {
    local config manifest size
    jq -nc --slurpfile ids "$1.ids" --arg arch "$(host_architecture)" --arg user "${IMAGE_USER-1000}" '{
        architecture: $arch, os: "linux",
        config: {Env: ["PATH=/bin", "GREETING=hello"], WorkingDir: "/srv", User: $user, Cmd: ["/bin/sh"]},
        rootfs: {type: "layers", diff_ids: $ids[0]}}' >"$1.json"
    config=$(blob_in "$1" "$1.json")
    size=$(stat -c %s "$1.json")
    jq -nc --slurpfile layers "$1.layers" --arg d "$config" --argjson s "$size" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $d, size: $s},
        layers: $layers[0]}' >"$1.json"
    manifest=$(blob_in "$1" "$1.json")
    size=$(stat -c %s "$1.json")
    jq -nc --arg d "$manifest" --argjson s "$size" --arg n "${2-}" '{
        schemaVersion: 2, manifests: [{
            mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $s}
            + if $n == "" then {} else {annotations: {"org.opencontainers.image.ref.name": $n}} end]}' \
        >"$1/index.json"
    rm -f "$1.json" "$1.layers" "$1.ids"
    printf '%s\n' "$manifest"
}

busybox_layout() {
    local work
    work=$(mktemp -d)
    mkdir -p "$work/one/bin" "$work/one/etc/old" "$work/one/tmp" "$work/two/etc/old" "$work/two/srv"
    cp "$(command -v busybox)" "$work/one/bin/busybox"
    for name in sh ls cat echo true; do ln -s busybox "$work/one/bin/$name"; done
    echo below >"$work/one/etc/gone"
    echo below >"$work/one/etc/old/hidden"
    echo one >"$work/one/etc/kept"
    chmod 1777 "$work/one/tmp"
    : >"$work/two/etc/.wh.gone"
    : >"$work/two/etc/old/.wh..wh..opq"
    echo above >"$work/two/etc/old/new"
    echo two >"$work/two/srv/two"
    layer_tar "$work/one" "$work/one.tar"
    layer_tar "$work/two" "$work/two.tar"
    layout_new "$1"
    layout_add "$1" "$work/one.tar" gzip
    layout_add "$1" "$work/two.tar" "${3:-gzip}"
    layout_finish "$1" "${2-}"
    rm -rf "$work"
}

push() {
    local layout=$1 base=http://$2/v2/$3 file digest location manifest
    shift 2
    manifest=$(jq -r '.manifests[0].digest' "$layout/index.json")
    for file in "$layout"/blobs/sha256/*; do
        digest=sha256:${file##*/}
        [ "$digest" != "$manifest" ] || continue
        location=$(curl -sS -f "${CURL_AUTH[@]}" -X POST -D - -o /dev/null "$base/blobs/uploads/" |
            tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
        case $location in *\?*) location="$location&digest=$digest" ;; *) location="$location?digest=$digest" ;; esac
        curl -sS -f "${CURL_AUTH[@]}" -X PUT -H 'Content-Type: application/octet-stream' \
            --data-binary "@$file" "$location" || return
    done
    curl -sS -f "${CURL_AUTH[@]}" -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' \
        --data-binary "@$layout/blobs/sha256/${manifest#sha256:}" "$base/manifests/$2"
}
