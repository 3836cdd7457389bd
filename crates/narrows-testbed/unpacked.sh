#!/bin/sh
# Fetches Debian packages of this machine's sources and unpacks them below FOLDER: `unpacked.sh FOLDER PACKAGE…`. They are not
# installed: no service is started or enabled, and no user is made.
set -eu
folder=$1
shift
mkdir -p "$folder"
partial=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$partial"' EXIT
chmod 755 "$partial"
fetch() {
    (cd "$partial" && apt-get -o APT::Sandbox::User=root download "$@" >/dev/null)
}
fetch "$@" || { "$(dirname "$0")/apt.sh" update && fetch "$@"; }
mkdir "$partial/all"
for file in "$partial"/*.deb; do dpkg-deb --extract "$file" "$partial/all"; done
# Whole or not at all.
rm -rf "$folder"
mv "$partial/all" "$folder"
echo "$folder: $*"
