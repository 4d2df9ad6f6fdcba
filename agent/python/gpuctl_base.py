# SPDX-License-Identifier: Apache-2.0
"""Says what the base of environments has: the Python that runs this file, with its packages beyond the standard library.

Packages are found by the names of their metadata folders, which is much faster than reading them. gpuctl_environment.py, in the same
folder, makes environments that see the same packages.
"""

import os
import re
import site
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Tuple


class Base:
    """The Python that runs this file, and its packages beyond the standard library."""

    def __init__(self) -> None:
        self.folders = base_folders()
        self.pth = "".join(line + "\n" for line in self.folders + import_lines(self.folders))
        self.installed, self.metadata = installed_in(self.folders)

    def mtimes(self) -> "Dict[str, int]":
        """Return the modification time of each folder in ns: it changes when a distribution comes or goes."""
        return {folder: os.stat(folder).st_mtime_ns for folder in self.folders}

    def programs(self) -> "Dict[str, str]":
        """Return {name: module:function} of the console programs of the packages."""
        found: Dict[str, str] = {}
        for folder in self.metadata:
            try:
                with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as file:
                    _, _, rest = file.read().partition("[console_scripts]\n")
            except OSError:
                continue
            for name, target in re.findall(r"(?m)^([^=\n]+)=([^\[\n]+)", rest.partition("\n[")[0]):
                found.setdefault(name.strip(), target.strip())
        return found


def base_folders() -> "List[str]":
    """Return the entries of sys.path beyond the standard library, the user's entries first, in the order of ranks that use the base."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    standard |= {os.path.join(path, "lib-dynload") for path in standard}
    plain = list(sys.path)
    if sys.prefix == sys.base_prefix and os.path.isdir(site.getusersitepackages()):
        site.addsitedir(site.getusersitepackages())
    users = [path for path in sys.path if path not in plain]
    return [path for path in users + plain if path not in standard and os.path.isdir(path)]


def import_lines(folders: "List[str]") -> "List[str]":
    """Return the code lines of the base's .pth files: hooks of packages that are installed in editable mode.

    A line that asks for its own folder is left out, because here it would get another folder.
    """
    found = []
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".pth") and not name.startswith("."):
                with open(os.path.join(folder, name), encoding="utf-8", errors="ignore") as file:
                    found += [line.rstrip() for line in file if line.startswith(("import ", "import\t")) and "sitedir" not in line]
    return list(dict.fromkeys(found))


def installed_in(folders: "List[str]") -> "Tuple[Dict[str, str], List[str]]":
    """Return ({normalized name: version}, metadata folders); of two folders with one package the first counts, as it does for imports."""
    versions: Dict[str, str] = {}
    metadata = []
    for folder in folders:
        for entry in sorted(os.listdir(folder)):
            if entry.endswith((".dist-info", ".egg-info")):
                path = os.path.join(folder, entry)
                name, version = title_of(path)
                if name and name not in versions:
                    versions[name] = version
                    metadata.append(path)
    return versions, metadata


def title_of(path: str) -> "Tuple[str, str]":
    """Return (normalized name, version) of a metadata folder; usually the folder's own name contains both."""
    stem, kind = os.path.splitext(os.path.basename(path))
    name, _, version = stem.rpartition("-")
    if kind == ".dist-info" and name and re.match(r"\d", version):
        return normalize(name), version.replace("_", "-") if "+" not in version else version
    from importlib.metadata import PathDistribution
    from pathlib import Path

    found = PathDistribution(Path(path)).metadata
    return normalize(found["Name"] or ""), found["Version"] or ""


def normalize(name: str) -> str:
    """Return a distribution's name in its normal form, for comparisons."""
    return re.sub(r"[-_.]+", "-", name).lower()
