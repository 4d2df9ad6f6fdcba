# SPDX-License-Identifier: Apache-2.0
"""What of this machine goes with a job to other ones: the environment of its Python, the working folder, variables. On this machine
nothing does unless it is asked for by name, because the ranks see it all. What each of them is, is environment.py's, requirements.py's,
bundle.py's and snapshot.py's; nothing is sent here.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from serverless_gpu import bundle, environment, requirements, snapshot
from serverless_gpu.payload import Blob, Payload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from serverless_gpu.bundle import Bundle
    from serverless_gpu.context import Context
    from serverless_gpu.launcher import Options
    from serverless_gpu.notes import Notes

NAMED = 3  # of what is left out, in one line

_said: set[str] = set()


def _say_once(notes: Notes, text: str) -> None:
    """A line that is true for all calls of this process."""
    if text not in _said and not notes.quiet:
        _said.add(text)
        notes.say(text)


def _some(items: list[str]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return f"{', '.join(items[:NAMED])}{more}"


# --- the folder ---


def _folder(options: Options, notes: Notes) -> str | None:
    """The folder that travels, if any."""
    wanted = options.working_dir
    if wanted is None or wanted is False or (wanted is True and not options.remote):
        return None
    if wanted is not True:
        return os.path.expanduser(wanted)
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # it was deleted under us
        return None
    if here in ("/", os.path.realpath(os.path.expanduser("~"))):
        remedy = "working_dir=PATH sends a folder, and working_dir=False says that none is wanted"
        _say_once(notes, f"the working folder {here} does not travel, because it is no project's; {remedy}")
        return None
    return here


def _bundle(options: Options, notes: Notes) -> Bundle | None:
    path = _folder(options, notes)
    if path is None:
        return None
    found = bundle.of(path)
    if found.listing.missed:
        _say_once(notes, f"left out of {found.root}: {_some(found.listing.missed)}")
    return found if found.listing.entries else None


# --- the environment ---


def _locked(bundled: Bundle | None, own_host: bool, notes: Notes) -> tuple[str, list[str]]:
    """The lock of this Python, and the folders of the bundle that hold packages which are not in it."""
    found = environment.lock()
    inner = bundled.listing.folders() if bundled is not None else set()
    paths: list[str] = []
    for local in found.local:
        roots = environment.is_read_from(local, bundled.root, inner) if bundled is not None else None
        paths += roots or []
        if roots is None and not own_host:
            remedy = "install it from an index or a git repository, or choose a working_dir that holds its source"
            _say_once(notes, f"the package {local.name} was installed from {local.place}, where no node can fetch it: {remedy}")
    for package in found.unlabelled if not own_host else ():
        remedy = "name it and its index in requirements=, such as --extra-index-url URL"
        _say_once(
            notes, f"no index is known for {package}: nodes get the version without the label behind the +. To get this one, {remedy}"
        )
    return found.text, paths


def _requirements(options: Options, bundled: Bundle | None, own_host: bool, notes: Notes) -> tuple[str, list[str]]:
    """The requirements file of the job, "" for none, and folders for the path of its Python."""
    wanted = options.requirements
    if wanted is None or wanted is False or (wanted is True and not options.remote):
        return "", []
    if wanted is True:
        return _locked(bundled, own_host, notes)
    return requirements.text_of(wanted if isinstance(wanted, (str, os.PathLike)) else list(wanted)), []


def path_within(luggage: Mapping[str, Blob], file: Path) -> str | None:
    """Where a file lies in the folder that travels, from there; None where it does not travel."""
    bundled = luggage.get("bundle.blob")
    if not isinstance(bundled, bundle.Bundle):
        return None
    path = os.path.relpath(os.path.realpath(file), bundled.root)
    return path if any(entry.path == path for entry in bundled.listing.entries) else None


# --- all of it ---


def pack(job: dict[str, Any], options: Options, context: Context, notes: Notes) -> dict[str, Blob]:
    """Complete a job by what goes with it; the blobs that it names then, by their fields.

    Raises ValueError, which RequirementsError is, for requirements and folders that cannot travel.
    """
    blobs: dict[str, Blob] = {}
    bundled = _bundle(options, notes)
    text, paths = _requirements(options, bundled, context.embedded, notes)
    if text:
        blobs["environment.blob"] = locked = Payload([text.encode()])
        job["environment"] = {"blob": locked.sha256, "python": "{}.{}".format(*sys.version_info[:2])}
    if bundled is not None:
        blobs["bundle.blob"] = bundled
        inner = dict.fromkeys(path for path in [*bundled.python_path(), *paths] if path != ".")
        job["bundle"] = {"blob": bundled.sha256, **({"python_path": list(inner)} if inner else {})}
        job.pop("workdir", None)
    if options.inherit_env:
        taken, missed = snapshot.take(options.env, context.url, here=not options.remote)
        if missed:
            _say_once(notes, f"environment variables that do not travel: {_some(missed)}; env= gives others, and None says not to")
        if taken:
            job["env"] = {**taken, **job.get("env", {})}
    return blobs
