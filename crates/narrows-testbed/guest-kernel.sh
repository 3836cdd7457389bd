#!/bin/sh
# Fetches the newest of Debian's cloud kernels that begin with VERSION and unpacks it below FOLDER: `guest-kernel.sh 6.1 FOLDER`.
set -eu
version=$1
folder=$2
search() {
    apt-cache search --names-only "^linux-image-$version\..*-cloud-amd64\$" | cut -d' ' -f1 | sort -V | tail -1
}
for there in "$folder/$version".*; do
    # Also without a network; `rm` it for a newer one.
    if [ -e "$there/lib/modules/${there##*/}/modules.dep" ]; then
        echo "$there is there"
        exit
    fi
done
package=$(search)
if [ -z "$package" ]; then
    "$(dirname "$0")/apt.sh" update
    package=$(search)
fi
[ -n "$package" ] || { echo "error: this machine's package sources have no linux-image-$version…-cloud-amd64" >&2; exit 3; }
release=${package#linux-image-}
mkdir -p "$folder"
partial=$(mktemp -d "$folder/.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
# Whoever fetches for apt may not write into our folder otherwise.
chmod 755 "$partial"
(cd "$partial" && apt-get -o APT::Sandbox::User=root download "$package" >/dev/null)
mkdir "$partial/kernel"
dpkg-deb --extract "$partial"/*.deb "$partial/kernel"
# From 6.12 on modules are compressed, and guests take them as they are.
find "$partial/kernel" -name '*.ko.xz' -exec xz --decompress {} +
[ -d "$partial/kernel/lib" ] || { mkdir "$partial/kernel/lib"; mv "$partial/kernel/usr/lib/modules" "$partial/kernel/lib/"; }
/sbin/depmod --basedir "$partial/kernel" "$release"
rm -rf "${folder:?}/$release"
mv "$partial/kernel" "$folder/$release"
echo "$folder/$release: $(du -sh "$folder/$release" | cut -f1)"
