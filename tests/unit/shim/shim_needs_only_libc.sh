#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpushim outlives upgrades of everything around it: it may need libc and the loader, or nothing. The argument is the program.
set -eu

dynamic=$(LC_ALL=C readelf --dynamic --wide "$1")
extra=$(printf '%s\n' "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | grep -Ev '^(libc\.|ld-|ld\.)' || true)
if [ -n "$extra" ]; then
    echo "gpushim needs more than libc: $extra"
    exit 1
fi
