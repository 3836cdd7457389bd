#!/bin/sh
# Runs apt-get, and waits for another that is at work, ten minutes at most: `apt.sh update`, `apt.sh install --yes PACKAGE …`.
# Lists have a lock for which apt-get itself does not wait.
set -eu
tries=300
while :; do
    if said=$(LC_ALL=C apt-get -o DPkg::Lock::Timeout=0 "$@" 2>&1 </dev/null); then
        exit 0
    fi
    case $said in
        *'Permission denied'* | *'are you root'* | *'Read-only file system'*) ;;
        *'E: Could not get lock '*)
            tries=$((tries - 1))
            if [ "$tries" -gt 0 ]; then
                [ -n "${told:-}" ] || echo 'another apt is at work: this one waits' >&2
                told=yes
                sleep 2
                continue
            fi
            ;;
    esac
    echo "$said" >&2
    exit 1
done
