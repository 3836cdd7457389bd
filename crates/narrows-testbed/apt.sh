#!/bin/sh
# Runs apt-get, and waits for another that is at work: `apt.sh update`, `apt.sh install --yes PACKAGE …`.
# Lists have a lock for which apt-get itself does not wait.
set -eu
while :; do
    if said=$(LC_ALL=C apt-get -o DPkg::Lock::Timeout=-1 "$@" 2>&1 </dev/null); then
        exit 0
    fi
    case $said in
        *'Could not get lock'* | *'Unable to lock'*)
            [ -n "${told:-}" ] || echo 'another apt is at work: this one waits' >&2
            told=yes
            sleep 2
            ;;
        *)
            echo "$said" >&2
            exit 1
            ;;
    esac
done
