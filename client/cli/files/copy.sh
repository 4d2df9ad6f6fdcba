#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The other side of `gpuctl cp`, beside a rank: `in TARGET NAME` takes a file or folder NAME from tar on stdin to TARGET, as cp -r does;
# `out PATH` gives one to tar on stdout. A file that is there is replaced as a whole.
fail() {
    echo "$*" >&2
    exit 1
}

command -v tar >/dev/null || fail "there is no tar beside the rank"
path=$2
case $path in -*) path=./$path ;; esac
case $1 in
in)
    name=$3
    if [ -d "$path/$name" ]; then
        exec tar -x -o -C "$path" -f -
    fi
    [ ! -d "$path" ] || path=${path%/}/$name
    folder=$(dirname -- "$path")
    mkdir -p -- "$folder" && part=$(mktemp -d "$folder/.gpuctl-XXXXXX") || exit
    trap 'rm -rf "$part"' EXIT
    trap 'exit 1' HUP INT TERM
    tar -x -o -C "$part" -f - && mv -f -- "$part/$name" "$path"
    ;;
out)
    [ ! -d "$path" ] || path=$(cd -- "$path" && pwd) || exit
    [ -e "$path" ] || fail "there is no $path beside the rank"
    [ "$path" != / ] || fail "the whole file system is more than can be copied"
    tar -c -C "$(dirname -- "$path")" -f - -- "$(basename -- "$path")"
    code=$?
    # GNU tar: a file has grown meanwhile, and is there as it was.
    [ $code -ne 1 ] || ! tar --version 2>/dev/null | grep -q GNU || exit 0
    exit $code
    ;;
esac
