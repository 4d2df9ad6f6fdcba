#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command of a job of `gpuctl run -i`: holds the job for the command that gpuctl starts beside rank 0, where it can read (joined.sh), and
# exits as that does. The pipe has no writer any more when that has ended, however it ended; and when nobody has come for a minute.
[ "$GPUCTL_RANK" = 0 ] || exit 0
pipe=${TORCHELASTIC_ERROR_FILE%/*}/session
mkfifo "$pipe" || exit
(
    trap 'kill $!; exit' TERM
    sleep 60 &
    wait $!
    : >"$pipe"
    sleep 2147483647 & # until the end: its number is to be nobody else's by then
    wait $!
) &
code=$(cat "$pipe")
kill $!
rm -f "$pipe"
exit "${code:-129}"
