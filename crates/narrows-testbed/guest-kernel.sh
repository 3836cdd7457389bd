#!/bin/sh
# Fetches the newest kernel for virtual machines that begins with VERSION and unpacks it below FOLDER: `guest-kernel.sh 6.1 FOLDER`.
# It is Debian's cloud kernel, of this machine's package sources, or else of Debian's stable or unstable.
set -eu
version=$1
folder=$2
for there in "$folder/$version".*; do
    # Also without a network; `rm` it for a newer one.
    if [ -e "$there/lib/modules/${there##*/}/modules.dep" ]; then
        echo "$there is there"
        exit
    fi
done
mkdir -p "$folder"
partial=$(mktemp -d "$folder/.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
# Whoever fetches for apt may not write into our folder otherwise.
chmod 755 "$partial"
sources=

# The package of the newest kernel that the sources have.
search() {
    # shellcheck disable=SC2086  # options are words
    apt-cache $sources search --names-only "^linux-image-$version\..*-cloud-amd64\$" | cut -d' ' -f1 | sort -V | tail -1
}
# Lists of another of Debian's suites, which this machine's packages know nothing of.
elsewhere() {
    lists=$partial/apt-$1
    mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" > "$lists/sources.list"
    sources="-o Dir::Etc::SourceList=$lists/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$lists/lists
        -o Dir::Cache=$lists/cache -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086
    "$(dirname "$0")/apt.sh" $sources update
}
fetch() {
    # shellcheck disable=SC2086
    (cd "$partial" && apt-get $sources -o APT::Sandbox::User=root download "$@" >/dev/null)
}

package=$(search)
if [ -z "$package" ]; then
    "$(dirname "$0")/apt.sh" update
    package=$(search)
fi
for suite in stable unstable; do
    [ -z "$package" ] || break
    elsewhere $suite
    package=$(search)
done
[ -n "$package" ] || { echo "error: Debian has no kernel linux-image-$version…-cloud-amd64" >&2; exit 3; }

release=${package#linux-image-}
# Newer ones are in several packages.
# shellcheck disable=SC2086
also=$(apt-cache $sources depends "$package" | sed -n "s/^ *Depends: \(linux-[a-z]*-$release\)\$/\1/p")
# shellcheck disable=SC2086  # a word for each
fetch "$package" $also
mkdir "$partial/kernel"
for file in "$partial"/*.deb; do dpkg-deb --extract "$file" "$partial/kernel"; done
# From 6.12 on modules are compressed, and guests take them as they are.
find "$partial/kernel" -name '*.ko.xz' -exec xz --decompress {} +
[ -d "$partial/kernel/lib/modules" ] || { mkdir -p "$partial/kernel/lib"; mv "$partial/kernel/usr/lib/modules" "$partial/kernel/lib/"; }
# The newest have the kernel beside its modules.
[ -e "$partial/kernel/boot/vmlinuz-$release" ] || {
    mkdir -p "$partial/kernel/boot"
    mv "$partial/kernel/lib/modules/$release/vmlinuz" "$partial/kernel/boot/vmlinuz-$release"
}
/sbin/depmod --basedir "$partial/kernel" "$release"
rm -rf "${folder:?}/$release"
mv "$partial/kernel" "$folder/$release"
echo "$folder/$release: $(du -sh "$folder/$release" | cut -f1)"
