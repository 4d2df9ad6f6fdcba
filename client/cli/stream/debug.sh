#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs beside a rank, as its user, for `gpuctl debug`: prints where each thread of the rank's processes is. py-spy knows the lines of a Python
# program, gdb the functions of every other; without them the kernel says what a thread waits for.
unset LD_LIBRARY_PATH LD_PRELOAD # of the job's programs, not of the node's

echo "=== rank $GPUCTL_RANK on node $GPUCTL_NODE"

# Whether that is a process of the rank's, and none of this program's own.
of_rank() {
    grep -qzx "GPUCTL_RANK=$GPUCTL_RANK" "/proc/$1/environ" 2>/dev/null || return 1
    # behind the name, which may hold anything: state, parent, group, session
    set -- $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)
    [ -n "$4" ] && [ "$4" != $$ ]
}

# Prints the lines of a tool's answer that match. A tool that is refused, hangs or fails says so in one line, and the next one follows.
try() {
    lines=$1
    shift
    if said=$(timeout -k 2 30 "$@" 2>&1 </dev/null) && printf '%s\n' "$said" | grep -E "$lines"; then
        return 0
    fi
    echo "  ${1##*/} failed: $(printf '%s\n' "$said" | tail -n 1)"
    return 1
}

python_stacks() {
    set -- "$1" "$(tr '\0' '\n' <"/proc/$1/cmdline" | head -n 1)"
    spy=${2%/*}/py-spy # beside a Python of an environment of its own
    [ "$spy" != "$2/py-spy" ] && [ -x "$spy" ] || spy=$(command -v py-spy)
    if [ -z "$spy" ]; then
        echo "  no py-spy: with the package py-spy in the job's environment this names the lines of the program"
        return 1
    fi
    try . "$spy" dump --pid "$1"
}

gdb_stacks() {
    command -v gdb >/dev/null && try '^(#|Thread)' gdb -nx -batch -p "$1" -ex 'thread apply all backtrace 64'
}

kernel_stacks() {
    for task in "/proc/$1/task/"*; do
        state=$(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null) || continue
        echo "  thread ${task##*/} ($(cat "$task/comm" 2>/dev/null)): $state, in $(cat "$task/wchan" 2>/dev/null)"
        sed 's/^/    /' "$task/stack" 2>/dev/null # for root alone
    done
}

found=
for environ in $(grep -lzx "GPUCTL_JOB_ID=$GPUCTL_JOB_ID" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    of_rank "$pid" || continue
    found=1
    echo
    echo "--- process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-200)"
    case $(readlink "/proc/$pid/exe") in
    */python*) python_stacks "$pid" || gdb_stacks "$pid" || kernel_stacks "$pid" ;;
    *) gdb_stacks "$pid" || kernel_stacks "$pid" ;;
    esac
done
[ -n "$found" ] || echo "no process of the rank can be read"
