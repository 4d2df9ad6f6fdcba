#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is a job of `gpuctl notebook`: JupyterLab on a port of its own choice, which ends after so many seconds without use. gpuctl finds port and
# token in the folder of the runtime files.
set -u
umask 077
[ "$GPUCTL_RANK" = 0 ] || exit 0 # their GPUs are for what rank 0 starts
if ! command -v jupyter-lab >/dev/null; then
    printf 'gpuctl: there is no JupyterLab for this job on node %s\n  remedy: %s\n' "$GPUCTL_NODE" \
        "pip install jupyterlab there, or name an environment with it by --requirements FILE" >&2
    exit 1
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])') || exit 1
JUPYTER_TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(24))') || exit 1 # one that it makes itself it would print, for all who see the output
export JUPYTER_TOKEN
[ "$(id -u)" != 0 ] || set -- "$@" --allow-root
idle=$1
shift
export JUPYTER_RUNTIME_DIR=${TORCHELASTIC_ERROR_FILE%/*}/notebook # the part of the attempt's folder that is the user's in any case
mkdir -p "$JUPYTER_RUNTIME_DIR"
exec jupyter-lab --no-browser --ServerApp.ip=127.0.0.1 --ServerApp.port="$port" --ServerApp.shutdown_no_activity_timeout="$idle" \
    --MappingKernelManager.cull_idle_timeout="$idle" --TerminalManager.cull_inactive_timeout="$idle" "$@"
