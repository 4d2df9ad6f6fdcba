# SPDX-License-Identifier: Apache-2.0
"""The token in a file, and its renewal where `gpuctl login` got it at an identity provider.

gpuctl keeps the login in login.json beside the token. This package and gpuctl renew it in its
last 15 minutes. One of them renews at a time, under the lock on login.lock, because providers give each refresh token out once. A failure
is told only when the old token has ended: until then that token serves.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from serverless_gpu.errors import SettingsError

TOKEN_BYTES = 4096
ANSWER_BYTES = 256 * 1024  # of an identity provider, and of login.json
RENEW_MS = 15 * 60 * 1000  # a call that begins now mostly ends before
ANSWER_S = 30.0


class Login(NamedTuple):
    """What login.json holds."""

    url: str  # of the controller
    issuer: str
    client_id: str
    scopes: str
    expires_ms: int  # of the token, since 1970
    refresh_token: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether the token ends soon, or has ended."""
        return time.time() * 1000 >= self.expires_ms - RENEW_MS

    @property
    def is_over(self) -> bool:
        """Whether the token has ended."""
        return time.time() * 1000 >= self.expires_ms


class _NoRenewal(Exception):
    """Why a login could not be renewed."""


def read_token(path: str) -> str:
    """Return the token in a file."""
    remedy = "name the file that holds your token with GPUCTL_TOKEN_FILE"
    try:
        with open(path, "rb") as file:
            content = file.read(TOKEN_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"cannot read the token in {path} ({error.strerror}): {remedy}") from error
    words = content.split(None, 1)
    token = words[0] if words else b""
    if not token or len(content) > TOKEN_BYTES or any(not 0x21 <= byte <= 0x7E for byte in token):
        raise SettingsError(f"{path} does not hold a token: {remedy}")
    return token.decode("ascii")


# --- files ---


def _read(folder: Path) -> Login | None:
    try:
        with open(folder / "login.json", "rb") as file:
            kept = json.loads(file.read(ANSWER_BYTES))
        url, issuer, client, scopes = (kept[name] for name in ("url", "issuer", "client_id", "scopes"))
        refresh = kept.get("refresh_token")
        if not all(isinstance(text, str) for text in (url, issuer, client, scopes)) or not isinstance(refresh, (str, type(None))):
            return None
        return Login(url, issuer, client, scopes, int(kept.get("expires_ms", 0)), refresh)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _replace(path: Path, text: str) -> None:
    """Leave either the old or the new content, whatever happens."""
    file, temporary = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # readable by its user alone
    try:
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def _write(folder: Path, login: Login) -> None:
    members = login._asdict()
    if login.refresh_token is None:
        del members["refresh_token"]
    _replace(folder / "login.json", json.dumps(members, separators=(",", ":")))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other program of this user renews. Raises OSError where there can be no lock."""
    import fcntl

    file = os.open(folder / "login.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# --- requests ---


def is_loopback(host: str) -> bool:
    """Whether the host is this one."""
    return host in ("localhost", "::1") or (host.startswith("127.") and all(character in "0123456789." for character in host))


def _is_safe(url: object) -> bool:
    """Whether what is sent there is read by nobody on the way."""
    if not isinstance(url, str) or any(character in url for character in " \t\r\n\\@?#"):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _ask(url: str, verify: str | bool, **options: Any) -> tuple[int, dict[str, Any]]:
    """Return the status and the object that is answered."""
    import requests

    with requests.Session() as session:
        session.trust_env = False
        session.verify = verify
        session.headers["Accept"] = "application/json"
        session.headers["User-Agent"] = "serverless_gpu"
        if url.startswith("https:"):
            session.proxies.update(requests.utils.get_environ_proxies(url))
        method = "POST" if options else "GET"
        try:
            with session.request(method, url, timeout=ANSWER_S, allow_redirects=False, stream=True, **options) as reply:
                body = b""
                for piece in reply.iter_content(16384):
                    body += piece
                    if len(body) > ANSWER_BYTES:
                        raise _NoRenewal(f"{url} answers with more than {ANSWER_BYTES} bytes")
                answer = json.loads(body)
        except (requests.RequestException, OSError) as error:
            raise _NoRenewal(f"{url} does not answer") from error
        except ValueError as error:
            raise _NoRenewal(f"{url} answers with HTTP status {reply.status_code} and no JSON") from error
    if not isinstance(answer, dict):
        raise _NoRenewal(f"{url} answers with no JSON object")
    return reply.status_code, answer


def _token_endpoint(issuer: str) -> str:
    """Return where the issuer renews logins, by its own description."""
    status, told = _ask(f"{issuer[:-1] if issuer.endswith('/') else issuer}/.well-known/openid-configuration", _bundle())
    if status != 200 or told.get("issuer") != issuer:
        raise _NoRenewal(f"what answers at {issuer} is not that issuer")
    if not _is_safe(told.get("token_endpoint")):
        raise _NoRenewal(f"the token_endpoint of {issuer} is no https URL")
    return str(told["token_endpoint"])


def _bundle() -> str | bool:
    return os.environ.get("REQUESTS_CA_BUNDLE") or True


def _refresh(login: Login) -> tuple[str, str]:
    """Return an ID token, and the refresh token for the next time."""
    if not _is_safe(login.issuer):
        raise _NoRenewal(f"{login.issuer} is no https URL")
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
    status, answer = _ask(_token_endpoint(login.issuer), _bundle(), data=form)
    if status != 200:
        why = ": ".join(str(answer[name])[:200] for name in ("error", "error_description") if name in answer)
        raise _NoRenewal(f"the identity provider refuses to renew the login: {why or 'it does not say why'}")
    identity, refresh = answer.get("id_token"), answer.get("refresh_token")
    if not isinstance(identity, str):
        raise _NoRenewal("the identity provider gave no ID token")
    return identity, refresh if isinstance(refresh, str) else str(login.refresh_token)


def _trade(login: Login, identity: str, cacert: str | None) -> tuple[str, int]:
    """Return the token that the controller gives for an ID token, and its end in ms since 1970."""
    status, answer = _ask(f"{login.url}/v1/login", cacert or _bundle(), json={"id_token": identity})
    if status >= 300:
        raise _NoRenewal(str(answer.get("detail") or answer.get("title") or f"HTTP status {status}"))
    try:
        ends = datetime.datetime.fromisoformat(str(answer["expires_at"]).replace("Z", "+00:00"))
        token = answer["secret"]
    except (KeyError, ValueError) as error:
        raise _NoRenewal("the controller gave no token") from error
    if not isinstance(token, str) or not token:
        raise _NoRenewal("the controller gave no token")
    return token, int(ends.timestamp() * 1000)


# --- renewal ---


def _renew(folder: Path, login: Login, cacert: str | None) -> None:
    """With the lock. The provider may take the old refresh token no more: the new one is kept before anything else can fail."""
    if login.refresh_token is None:
        ended = datetime.datetime.fromtimestamp(login.expires_ms / 1000, datetime.timezone.utc)
        raise _NoRenewal(f"the login at {login.url} has ended at {ended:%Y-%m-%dT%H:%M:%SZ}")
    identity, refresh = _refresh(login)
    login = login._replace(refresh_token=refresh)
    _write(folder, login)
    token, expires_ms = _trade(login, identity, cacert)
    _replace(folder / "token", f"{token}\n")
    _write(folder, login._replace(expires_ms=expires_ms))


def _is_its_token(folder: Path, login: Login, url: str, token: str) -> bool:
    try:
        return login.url == url and read_token(str(folder / "token")) == token
    except SettingsError:
        return False


def renewed(url: str, token: str, folder: Path, cacert: str | None) -> str:
    """Return the token of that folder for the controller: another one where it is of a login that ends soon. Raises SettingsError where the
    login has ended, and the person has to log in again.
    """
    login = _read(folder)
    if login is None or not login.is_due or not _is_its_token(folder, login, url, token):
        return token
    if login.refresh_token is None and not login.is_over:
        return token
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(folder))
        except OSError:
            return token
        login = _read(folder)  # another program may have renewed it
        if login is None:
            return token
        try:
            if login.is_due:
                _renew(folder, login, cacert)
        except (_NoRenewal, OSError) as error:
            if login.is_over:
                raise SettingsError(f"{error}: log in again with `gpuctl login {login.url}`") from error
            return token
        return read_token(str(folder / "token"))
