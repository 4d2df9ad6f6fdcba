# SPDX-License-Identifier: Apache-2.0
"""Settings as gpuctl reads them: GPUCTL_<NAME> in the environment, then $XDG_CONFIG_HOME/gpuctl/config (or ~/.config), then
/etc/gpuctl/config. docs/reference/configuration.md lists them.

Both files hold lines `name = value`, in a section [gpuctl] or in none; dashes and underscores are equivalent, as are upper and lower case.
A file is accepted as a whole, or refused with the line that is wrong. An empty value counts as none.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from serverless_gpu.errors import SettingsError

SYSTEM_FILE = Path("/etc/gpuctl/config")
NAMES = ("url", "token_file", "cacert", "state", "insecure_plain_http")
OLDER_NAMES = {"ca_file": "cacert"}


def xdg_folder(variable: str, fallback: str) -> Path:
    """Return $VARIABLE/gpuctl, else ~/FALLBACK/gpuctl; a relative value is ignored, as the XDG specification requires."""
    base = os.environ.get(variable, "")
    return Path(base) / "gpuctl" if base.startswith("/") else Path(os.path.expanduser("~")) / fallback / "gpuctl"


def _spell(name: str) -> str:
    spelt = name.replace("-", "_").lower()
    return OLDER_NAMES.get(spelt, spelt)


def _shown(name: str) -> str:
    return name.replace("_", "-")


def _refuse_unknown(name: str, where: str) -> None:
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        meant = f"; did you mean {_shown(near[0])}?" if near else ""
        raise SettingsError(f"{where}: unknown setting {_shown(name)}{meant}")


def _split(line: str) -> tuple[str, str] | None:
    """Return name and value of `name = value` or `name: value`; None if the line is neither. A value ends at " ;"."""
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
            raise SettingsError(f"{path}:{number}: given twice: {_shown(pair[0])}")
        _refuse_unknown(pair[0], f"{path}:{number}")
        found[pair[0]] = pair[1]
    return found


class Settings:
    """The settings at the time of construction; later changes of the files do not show."""

    def __init__(self) -> None:
        self._files = [_read_file(xdg_folder("XDG_CONFIG_HOME", ".config") / "config"), _read_file(SYSTEM_FILE)]

    def get(self, name: str) -> str | None:
        """Return the value of "url", "token_file", ... or None."""
        value = os.environ.get(f"GPUCTL_{name.upper()}")
        for older, newer in OLDER_NAMES.items():
            if newer == name:
                value = value or os.environ.get(f"GPUCTL_{older.upper()}")
        for file in self._files:
            value = value or file.get(name)
        return value or None

    def is_on(self, name: str) -> bool:
        """Return whether a setting is true, yes, on or 1."""
        return (self.get(name) or "").lower() in ("true", "yes", "on", "1")

    def state_folder(self) -> Path:
        """Return the folder of the user's own instance, an absolute path."""
        state = self.get("state")
        return Path(os.path.abspath(state)) if state else xdg_folder("XDG_STATE_HOME", ".local/state")
