# SPDX-License-Identifier: Apache-2.0
"""Settings as gpuctl reads them: GPUCTL_<NAME> in the environment, then $XDG_CONFIG_HOME/gpuctl/config (or ~/.config), then
/etc/gpuctl/config.

Both files hold lines `name = value`, in a section [gpuctl] or in none; dashes and underscores are alike, as are capitals. A file is
understood whole or refused with its line. An empty value counts as none.
"""

from __future__ import annotations

import os
from pathlib import Path

from serverless_gpu.errors import SettingsError

SYSTEM_FILE = Path("/etc/gpuctl/config")


def xdg_folder(variable: str, fallback: str) -> Path:
    """$VARIABLE/gpuctl, else ~/FALLBACK/gpuctl; a relative value is ignored, as the XDG specification wants it."""
    base = os.environ.get(variable, "")
    return Path(base) / "gpuctl" if base.startswith("/") else Path(os.path.expanduser("~")) / fallback / "gpuctl"


def _spell(name: str) -> str:
    return name.replace("-", "_").lower()


def _split(line: str) -> tuple[str, str] | None:
    """Name and value of `name = value` or `name: value`; None when it is neither. A value ends at " ;"."""
    at = min((position for position in (line.find("="), line.find(":")) if position >= 0), default=-1)
    if at < 0:
        return None
    value = line[at + 1 :]
    for blank in (" ;", "\t;"):
        value = value.split(blank, 1)[0]
    return _spell(line[:at].strip()), value.strip()


def _read_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    found: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            if line.split("]", 1)[0] not in ("[", "[gpuctl"):
                raise SettingsError(f"{path}:{number}: unknown section {line}")
            continue
        pair = _split(line)
        if pair is None:
            raise SettingsError(f'{path}:{number}: expected "name = value"')
        if pair[0] in found:
            raise SettingsError(f"{path}:{number}: given twice: {pair[0]}")
        found[pair[0]] = pair[1]
    return found


class Settings:
    """The settings of this moment; changes of the environment show in the next one that is made."""

    def __init__(self) -> None:
        self._files = [_read_file(xdg_folder("XDG_CONFIG_HOME", ".config") / "config"), _read_file(SYSTEM_FILE)]

    def get(self, name: str) -> str | None:
        """The value of "url", "token_file", ... or None."""
        value = os.environ.get(f"GPUCTL_{name.upper()}")
        for file in self._files:
            value = value or file.get(name)
        return value or None

    def state_folder(self) -> Path:
        """Where the instance of one's own lives; absolute."""
        state = self.get("state")
        return Path(os.path.abspath(state)) if state else xdg_folder("XDG_STATE_HOME", ".local/state")
