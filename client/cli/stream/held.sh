#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command of a job of `gpuctl run -i`: holds the job for the command that gpuctl starts beside rank 0, where it can read (joined.sh), and
# exits as that does. The pipe has no writer any more when that has ended, however it ended; and when nobody has come for a minute. What
# waits for the minute ends with the job.
[ "$GPUCTL_RANK" = 0 ] || exit 0
pipe=${TORCHELASTIC_ERROR_FILE%/*}/session
mkfifo "$pipe" || exit
(sleep 60 && [ -p "$pipe" ] && : >"$pipe") >/dev/null 2>&1 &
code=$(cat "$pipe")
rm -f "$pipe"
exit "${code:-129}"
