# SPDX-License-Identifier: Apache-2.0
"""The user's own instance: a private controller and node on this machine, for users who name no controller.

Its state folder shows whether it runs, without starting a process. `gpuctl up` starts it, and leaves a running one alone. It ends by itself
after ten minutes without jobs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from serverless_gpu.errors import SettingsError

START_S = 90  # `gpuctl up` itself gives up after 30 s on each of its two steps

# From this package to the folder of gpuctl: in a checkout, in an unpacked tree of programs, and in an installed wheel.
PLACES = ("../../../../build/client/cli/gpuctl", "../../bin/gpuctl", "../../../../bin/gpuctl")


def _start_time(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot; None if there is none, or only a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if len(fields) > 19 and fields[0] not in (b"Z", b"X") else None


def running_url(state: Path) -> str | None:
    """Return the URL of the instance with this state folder; None if its controller does not run, even if old files remain."""
    try:
        endpoint = json.loads((state / "endpoint").read_bytes())
        pid, started = (int(word) for word in (state / "controller.pid").read_text().split())
        url = endpoint["url"]
        same = endpoint["pid"] == pid and _start_time(pid) == started
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if same and isinstance(url, str) else None


def token_file(state: Path) -> Path:
    """Return the file with the instance's token."""
    return state / "controller" / "admin.token"


def find_gpuctl() -> str:
    """Return the path of gpuctl: in $GPUCTL_LIBEXEC, beside this package's own tree, or on PATH. Raises SettingsError."""
    import shutil

    libexec = os.environ.get("GPUCTL_LIBEXEC")
    candidates = [Path(libexec) / "gpuctl"] if libexec else []
    candidates += [Path(__file__).resolve().parents[2] / place for place in PLACES]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate.resolve())
    found = shutil.which("gpuctl")
    if found is None:
        raise SettingsError(
            "no controller is configured, and gpuctl, which would start one here, is not found: set GPUCTL_URL and GPUCTL_TOKEN_FILE,"
            " or put gpuctl on PATH or its folder into GPUCTL_LIBEXEC"
        )
    return found


def start(state: Path) -> bool:
    """Start the instance, with this Python for its node, and wait until the node takes work. Return False if another process was faster.
    Raises SettingsError.
    """
    import subprocess

    program = find_gpuctl()
    try:
        ran = subprocess.run(
            [program, "up", "-o", "json", "--state", str(state), "--python", sys.executable],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=START_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingsError(f"`{program} up` could not start a controller here: {error}") from error
    if ran.returncode != 0:
        said = "; ".join(line.strip() for line in ran.stderr.splitlines() if line.strip()) or f"exit code {ran.returncode}"
        raise SettingsError(f"`{program} up` could not start a controller here: {said}")
    return bool(json.loads(ran.stdout)["started"])
