# SPDX-License-Identifier: Apache-2.0
"""Downloads from the object store, to which the controller redirects for large blobs. They carry no token. The caller checks the hash of
what has come, and asks the controller when the store cannot be used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import BinaryIO
from urllib.parse import urlsplit

from serverless_gpu._internal.api.tokens import is_loopback

CONNECT_S = 5.0
SILENT_S = 20.0
CHUNK_BYTES = 1024 * 1024


def copy(pieces: Iterable[bytes], file: BinaryIO) -> str:
    """Write the pieces to the file and return their SHA-256 in hex."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        file.write(piece)
    return digest.hexdigest()


def may_go(url: str, controller_url: str) -> bool:
    """Whether the client goes there: by https, or by http to its own host if the controller is there, too."""
    parts, controller = urlsplit(url), urlsplit(controller_url)
    beside = is_loopback(parts.hostname or "") and is_loopback(controller.hostname or "")
    return parts.scheme == "https" or (parts.scheme == "http" and beside)


def fetch(url: str, file: BinaryIO) -> str:
    """Write the object of a presigned URL to the file and return the SHA-256 of its bytes; "" if they have not come."""
    import requests

    with requests.Session() as session:
        session.trust_env = False  # no credentials of a .netrc
        session.headers["Accept-Encoding"] = "identity"
        session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
        if url.startswith("https:"):
            session.proxies.update(requests.utils.get_environ_proxies(url))
        try:
            with session.get(url, timeout=(CONNECT_S, SILENT_S), stream=True, allow_redirects=False) as response:
                return copy(response.iter_content(CHUNK_BYTES), file) if response.status_code == 200 else ""
        except (requests.RequestException, OSError):
            return ""
