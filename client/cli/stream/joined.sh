#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the command of `gpuctl run -i`, and tells the job's own process (held.sh) its exit code. Ctrl-C is for the command.
trap : INT QUIT
pipe=${TORCHELASTIC_ERROR_FILE%/*}/session
until [ -p "$pipe" ]; do
    sleep 0.01 # the job has just begun
done
exec 3>"$pipe"
"$@" 3>&-
code=$?
echo "$code" >&3
exit "$code"
