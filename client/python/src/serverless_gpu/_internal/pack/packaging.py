# SPDX-License-Identifier: Apache-2.0
"""Collects everything of this machine that is sent with a job: the environment of its Python, the working folder, variables. On this
machine itself only explicitly requested parts are sent, because the ranks see all of it. environment.py, requirements.py, bundle.py and
snapshot.py make the parts; nothing is sent here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from serverless_gpu._internal.pack import bundle, environment, folder, packages, requirements, snapshot
from serverless_gpu._internal.pack.payload import Payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from serverless_gpu._internal.api.context import Context
    from serverless_gpu._internal.api.controller import Blob
    from serverless_gpu._internal.messages import Messages
    from serverless_gpu._internal.pack.bundle import Bundle
    from serverless_gpu._internal.pack.folder import Entry
    from serverless_gpu.launcher import Options

NAMED = 3  # of left out items, in one line

_said: set[str] = set()


def _say_once(messages: Messages, text: str) -> None:
    """Print a line once per process."""
    if text not in _said and not messages.quiet:
        _said.add(text)
        messages.say(text)


def _some(items: list[str]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return f"{', '.join(items[:NAMED])}{more}"


# --- the folder ---


def _folder(options: Options, messages: Messages) -> str | None:
    """Return the folder to send, or None."""
    wanted = options.working_dir
    if wanted is None or wanted is False or (wanted is True and not options.remote and options.image is None):
        return None
    if wanted is not True:
        return os.path.expanduser(wanted)
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # the folder was deleted meanwhile
        return None
    if here in ("/", os.path.realpath(os.path.expanduser("~"))):
        remedy = "working_dir=PATH sends a folder, and working_dir=False says that none is wanted"
        _say_once(messages, f"the working folder {here} does not travel, because it is no project's; {remedy}")
        return None
    return here


def _bundle(root: str | None, extra: list[Entry], messages: Messages) -> Bundle | None:
    if root is None and not extra:
        return None
    found = bundle.of(root, extra)
    if found.listing.missed:
        _say_once(messages, f"left out of {found.root}: {_some(found.listing.missed)}")
    return found if found.listing.entries else None


# --- the environment ---


def _packages(root: str | None, own_host: bool, messages: Messages) -> tuple[list[Entry], list[str]]:
    """Return the entries of local packages to send besides the folder, and folders for the path of the job's Python."""
    found = environment.lock()
    inner = folder.listing(Path(os.path.realpath(root))).folders() if root is not None and found.local else set()
    files: list[Entry] = []
    paths: list[str] = []
    for local in found.local:
        roots = environment.is_read_from(local, Path(os.path.realpath(root)), inner) if root is not None else None
        if roots is not None or own_host:  # it lies in the folder, or the node has it already
            paths += roots or []
            continue
        own = packages.entries(local)
        room = folder.LIMIT_BYTES - sum(entry.size for entry in files)
        if own and sum(entry.size for entry in own) <= room and len(files) + len(own) <= folder.LIMIT_FILES:
            files += own
            continue
        why = f"has more than {folder.LIMIT_BYTES >> 20} MiB or {folder.LIMIT_FILES} files" if own else "has no files that could travel"
        remedy = "install it from an index or a git repository, or choose a working_dir that holds its source"
        _say_once(messages, f"the package {local.name}, which was installed from {local.place}, {why}: {remedy}")
    return packages.with_folders(files), [*paths, *([packages.FOLDER] if files else [])]


def _locked(own_host: bool, messages: Messages) -> str:
    """Return the lock of this Python."""
    found = environment.lock()
    for package in found.unlabelled if not own_host else ():
        remedy = "name it and its index in requirements=, such as --extra-index-url URL"
        _say_once(
            messages, f"no index is known for {package}: nodes get the version without the label behind the +. To get this one, {remedy}"
        )
    return found.text


def _wants_lock(options: Options) -> bool:
    return options.requirements is True and bool(options.remote) and options.image is None


def _requirements(options: Options, own_host: bool, messages: Messages) -> str:
    """Return the requirements file of the job, "" for none."""
    wanted = options.requirements
    if _wants_lock(options):
        return _locked(own_host, messages)
    if wanted is None or isinstance(wanted, bool):
        return ""
    return requirements.text_of(wanted if isinstance(wanted, (str, os.PathLike)) else list(wanted))


def path_within(uploads: Mapping[str, Blob], file: Path) -> str | None:
    """Return the path of a file in the folder that is sent; None if it is not sent."""
    bundled = uploads.get("bundle.blob")
    if not isinstance(bundled, bundle.Bundle):
        return None
    path = os.path.relpath(os.path.realpath(file), bundled.root)
    return path if any(entry.path == path for entry in bundled.listing.entries) else None


def _secret_variables(secrets: list[str]) -> list[str]:
    """Return the variables that these set, of NAME[=VARIABLE][:file]."""
    found = []
    for secret in secrets:
        named, as_file, _ = secret.partition(":file")
        name, _, variable = named.partition("=")
        found.append(variable or (f"{name}_FILE" if as_file else name))
    return found


# --- all of it ---


def pack(job: dict[str, Any], options: Options, context: Context, messages: Messages) -> dict[str, Blob]:
    """Add everything that is sent with a job to it; return the blobs that it then names, by field.

    Raises ValueError, of which RequirementsError is a kind, for requirements and folders that cannot be sent.
    """
    blobs: dict[str, Blob] = {}
    root = _folder(options, messages)
    extra, paths = _packages(root, context.embedded, messages) if _wants_lock(options) else ([], [])
    bundled = _bundle(root, extra, messages)
    text = _requirements(options, context.embedded, messages)
    if text:
        blobs["environment.blob"] = locked = Payload([text.encode()])
        job["environment"] = {"blob": locked.sha256, "python": "{}.{}".format(*sys.version_info[:2])}
    if bundled is not None:
        blobs["bundle.blob"] = bundled
        inner = dict.fromkeys(path for path in [*bundled.python_path(), *paths] if path != ".")
        job["bundle"] = {"blob": bundled.sha256, **({"python_path": list(inner)} if inner else {})}
        job.pop("workdir", None)
    if options.inherit_env:
        settled = {**options.env, **dict.fromkeys(_secret_variables(options.secrets))}
        taken, missed = snapshot.take(settled, context.url, here=not options.remote and options.image is None)
        if missed:
            _say_once(messages, f"environment variables that do not travel: {_some(missed)}; env= gives others, and None says not to")
        if taken:
            job["env"] = {**taken, **job.get("env", {})}
    return blobs
