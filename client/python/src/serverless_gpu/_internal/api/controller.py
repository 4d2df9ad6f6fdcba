# SPDX-License-Identifier: Apache-2.0
"""Requests to the controller: one session with keep-alive, errors as one clear line, and retries while the controller is away.

A request is repeated only where that is safe: a read, an upload named by its hash, or a POST with its own Idempotency-Key. The callers
interpret the replies.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from urllib.parse import quote

from serverless_gpu._internal.api import context as contexts
from serverless_gpu._internal.api import object_store
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import ControllerError, ControllerUnreachable, InvalidJob

if TYPE_CHECKING:
    import requests


CONNECT_S = 5.0
REPLY_S = 30.0
RETRY_S = 30.0  # a controller is usually back within seconds
STREAM_IDLE_S = 45.0  # three heartbeats of an event stream
SAID_BYTES = 8 * 1024 * 1024  # an upload before the job from this size on is announced, because a person waits for it
STORE_AWAY_S = 300.0  # a client that has no way to the object store waits for it once in this time
BACKOFF_S = 0.1
BACKOFF_MAX_S = 5.0
CHUNK_BYTES = 1024 * 1024


class Blob(Protocol):
    """Bytes to send, in pieces that can be iterated over repeatedly."""

    @property
    def sha256(self) -> str:
        """64 hex digits."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def __iter__(self) -> Iterator[bytes]: ...

    def __len__(self) -> int: ...


class _Shown:
    """The pieces of a blob, which show how many have been sent. They are sent again from the first when a request is repeated."""

    def __init__(self, blob: Blob, what: str, messages: Messages):
        self._blob = blob
        self._what = what
        self._messages = messages

    def __len__(self) -> int:
        return len(self._blob)

    def __iter__(self) -> Iterator[bytes]:
        sent = shown = 0
        for piece in self._blob:
            view = memoryview(piece)
            for start in range(0, len(view), CHUNK_BYTES):
                part = view[start : start + CHUNK_BYTES]
                yield part.tobytes()
                sent += len(part)
                if sent - shown >= self._blob.size / 100 or sent == self._blob.size:
                    shown = sent
                    share = f"{sent / 2**20:.0f} of {self._blob.size / 2**20:.0f} MiB"
                    self._messages.progress(f"sent {share} ({self._what})")


def next_pause(pause_s: float) -> float:
    """Return the pause after this one, in seconds."""
    return min(2 * pause_s, BACKOFF_MAX_S)


def _why(error: BaseException) -> str:
    """Return the reason behind an exception of requests, in few words."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        at = waiting.pop(0)
        if isinstance(at, BaseException) and at not in seen:
            seen.append(at)
            waiting += [at.__cause__, at.__context__, getattr(at, "reason", None), *at.args]
    for at in seen:
        if isinstance(at, OSError) and at.strerror:
            return at.strerror[:1].lower() + at.strerror[1:]
    names = {type(at).__name__ for at in seen}
    return "no answer in time" if any("Timeout" in name for name in names) else "the connection was closed"


def _one_line(*parts: str | None) -> str:
    return " ".join("; ".join(part for part in parts if part).split())


class Controller:
    """A controller, for use by one thread."""

    def __init__(self, context: contexts.Context, messages: Messages):
        self.context = context
        self.messages = messages
        self._session: requests.Session | None = None
        self._lost = False
        self._warned_of_end = False
        self._store_away_until = 0.0  # time.monotonic()

    # --- the connection ---

    @property
    def session(self) -> requests.Session:
        """The session. Proxies apply to https only, and the only credential ever sent is the token."""
        if self._session is None:
            import requests

            session = requests.Session()
            session.trust_env = False
            session.headers["User-Agent"] = "serverless_gpu"
            session.headers["Accept-Encoding"] = "identity"
            session.verify = self.context.cacert or os.environ.get("REQUESTS_CA_BUNDLE") or True
            if self.context.url.startswith("https:"):
                session.proxies.update(requests.utils.get_environ_proxies(self.context.url))
            self._session = session
        return self._session

    def _send_once(self, method: str, path: str, **options: Any) -> requests.Response:
        import requests

        headers = {"Authorization": f"Bearer {self.context.token}", **options.pop("headers", {})}
        url = self.context.url
        try:
            return self._warned(self.session.request(method, url + path, headers=headers, allow_redirects=False, **options))
        except requests.exceptions.SSLError as error:
            if "certificate" not in str(error).lower():
                raise self.unreachable(_why(error)) from error
            remedy = "pin it with `gpuctl login`, or name the certificate that signs it with GPUCTL_CACERT"
            message = f"the controller at {url} cannot be trusted ({_why(error)}): {remedy}"
            raise ControllerError(message) from error
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidHeader) as error:
            raise ControllerError(f"the controller at {url} cannot be asked: {error}") from error
        except (requests.RequestException, OSError) as error:
            raise self.unreachable(_why(error)) from error

    def _warned(self, response: requests.Response) -> requests.Response:
        """Say, once, that the token ends within a week."""
        ends = response.headers.get("Gpuctl-Token-Expires")
        if ends and not self._warned_of_end:
            self._warned_of_end = True
            self.messages.say(f"your token ends at {ends}: ask an administrator for a new one (gpuctl token create --owner YOU)")
        return response

    def unreachable(self, why: str) -> ControllerUnreachable:
        """Return the error for a controller that cannot be reached."""
        remedy = "start it with `gpuctl up`" if self.context.embedded else "is gpuctld running there? GPUCTL_URL names another"
        return ControllerUnreachable(f"the controller at {self.context.url} cannot be reached ({why})", hint=remedy)

    def lost(self, error: ControllerError) -> None:
        """Say once that the controller does not answer, and look for a new address of the user's own instance."""
        if not self._lost:
            self._lost = True
            self.messages.say(f"{error}; trying again")
        self.context = self.context.refreshed()

    def found(self) -> None:
        """Say that it answers again, if it was away."""
        if self._lost:
            self._lost = False
            self.messages.say(f"the controller at {self.context.url} answers again")

    # --- errors ---

    def _problem(self, response: requests.Response) -> ControllerError:
        """Return the error for a reply with status 400 or more."""
        try:
            document = response.json()
        except ValueError:
            document = None
        problem: dict[str, Any] = document if isinstance(document, dict) else {}
        status, code = response.status_code, str(problem.get("code") or "")
        field, hint = problem.get("field"), problem.get("hint")
        detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        if status == 401:
            text = _one_line(f"the controller at {self.context.url} refuses the token in {self.context.token_file}: {detail}")
            text += "; log in again with `gpuctl login`, or name the file that holds your token with GPUCTL_TOKEN_FILE"
        elif status == 403:
            text = _one_line(f"the token in {self.context.token_file} does not allow this: {detail}", hint)
        elif problem:
            text = _one_line(detail if not field or field in detail else f"{field}: {detail}", hint)
        else:
            text = f"what answers at {self.context.url} is no controller of gpuctl: {detail}; is GPUCTL_URL right?"
        retryable = problem.get("retryable") is True or status in (429, 502, 503, 504)
        about_job = response.request.method == "POST" and str(response.request.url).endswith("/v1/jobs") and status in (413, 422)
        kind = ControllerUnreachable if retryable else InvalidJob if about_job else ControllerError
        again = response.headers.get("Retry-After", "") if status == 429 else ""
        again_s = min(int(again), RETRY_S) if again.isdecimal() else 0
        return kind(text, detail=detail, status=status, code=code, field=field, hint=hint, again_s=again_s)

    def _checked(self, response: requests.Response) -> requests.Response:
        if response.status_code < 300:
            return response
        try:
            raise self._problem(response)
        finally:
            response.close()

    # --- requests ---

    def request(
        self, method: str, path: str, *, patience_s: float = RETRY_S, reply_s: float = REPLY_S, **options: Any
    ) -> requests.Response:
        """Send the request and return the reply, trying again for patience_s seconds while the controller is away or overloaded.

        A body must be bytes or an object that can be iterated over repeatedly. Raises ControllerError.
        """
        deadline = time.monotonic() + patience_s
        pause = 0.0  # a kept connection may just have been closed: the first retry is silent and immediate
        while True:
            try:
                response = self._checked(self._send_once(method, path, timeout=(CONNECT_S, reply_s), **options))
                self.found()
                return response
            except ControllerUnreachable as error:
                if pause > 0:
                    self.lost(error)
                wait = max(pause, error.again_s)
                if time.monotonic() + wait > deadline:
                    raise error.with_hint() from error.__cause__
            time.sleep(wait)
            pause = next_pause(pause) or BACKOFF_S

    def get(self, path: str, **options: Any) -> Any:
        """Return the JSON document at the path."""
        return self._document(self.request("GET", path, **options))

    def post(self, path: str, document: Any, key: str, headers: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Post a JSON document under its Idempotency-Key and return the JSON document of the reply."""
        return self._document(self.request("POST", path, json=document, headers={**(headers or {}), "Idempotency-Key": key}, **options))

    def patch(self, path: str, document: Any, key: str, if_seq: int | None = None) -> Any:
        """Like `post`, with PATCH; `if_seq`: only if the object still has this seq."""
        match = {} if if_seq is None else {"If-Match": f'"{if_seq}"'}
        return self._document(self.request("PATCH", path, json=document, headers={"Idempotency-Key": key, **match}))

    def pages(self, path: str, name: str, cursor: str) -> Iterator[Any]:
        """Yield the items of a list over all its pages; `next` of each page becomes the parameter `cursor` of the next request."""
        joint = "&" if "?" in path else "?"
        position = ""
        while True:
            page = self.get(path + position)
            yield from page[name]
            if page.get("next") is None:
                return
            position = f"{joint}{cursor}={quote(str(page['next']), safe='')}"

    def _document(self, response: requests.Response) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise ControllerError(f"what answers at {self.context.url} is no controller of gpuctl; is GPUCTL_URL right?") from error

    # --- streams and blobs ---

    @contextlib.contextmanager
    def stream(self, path: str, headers: dict[str, str]) -> Iterator[Iterator[bytes]]:
        """Yield the body of a reply in pieces as they arrive. There is no retry: raises ControllerUnreachable, also in the middle of the
        body.
        """
        response = self._checked(self._send_once("GET", path, timeout=(CONNECT_S, STREAM_IDLE_S), headers=headers, stream=True))
        ended = False
        try:
            yield self._pieces(response)
            ended = True
        finally:
            if not ended:  # a connection with an unread rest cannot be reused
                response.close()

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        import requests

        size = None if getattr(response.raw, "chunked", False) else CHUNK_BYTES
        try:
            yield from response.iter_content(chunk_size=size)
        except (requests.RequestException, OSError) as error:
            raise self.unreachable(_why(error)) from error

    def _link(self, path: str) -> str:
        """Return the URL in the object store to which the controller redirects for a blob; "" if it has the blob itself."""
        response = self._send_once("HEAD", f"{path}?redirect=1", timeout=(CONNECT_S, REPLY_S))
        return response.headers.get("Location", "") if response.status_code == 307 else ""

    def fetch_blob(self, sha256: str, file: BinaryIO) -> str:
        """Write a blob to an empty file and return the SHA-256 of what has come.

        The bytes come from the object store if the controller redirects there, else from the controller. A store that
        has failed is left alone for a while.
        """
        path = f"/v1/blobs/{sha256}"
        link = "" if time.monotonic() < self._store_away_until else self._link(path)
        if link and object_store.may_go(link, self.context.url):
            if object_store.fetch(link, file) == sha256:
                return sha256
            self._store_away_until = time.monotonic() + STORE_AWAY_S
            file.seek(0)
            file.truncate()
        with self.stream(path, {}) as pieces:
            return object_store.copy(pieces, file)

    def put_blob(self, payload: Blob, what: str) -> None:
        """Store the bytes under their hash, unless they are there. `what` describes them to a person who waits for a large upload."""
        path = f"/v1/blobs/{payload.sha256}"
        try:
            self.request("HEAD", path)
        except ControllerUnreachable:
            raise
        except ControllerError as error:
            if error.status != 404:
                raise
            if payload.size >= SAID_BYTES:
                self.messages.say(f"sending {payload.size / 2**20:.0f} MiB ({what})")
            headers = {"Content-Type": "application/octet-stream"}
            data = _Shown(payload, what, self.messages) if payload.size >= SAID_BYTES else payload
            try:
                self.request("PUT", path, data=data, headers=headers, reply_s=max(REPLY_S, payload.size / 1e6))
            finally:
                self.messages.finish_progress()


# --- one controller a thread, kept for its connection ---

_kept = threading.local()


def of_thread(context: contexts.Context, messages: Messages) -> Controller:
    """Return the controller with the connection of this thread's last call."""
    kept: Controller | None = getattr(_kept, "controller", None)
    if kept is None or kept.context != context or _kept.pid != os.getpid():
        kept = _kept.controller = Controller(context, messages)
        _kept.pid = os.getpid()
    kept.messages = messages
    kept._lost = False
    return kept


def connect(messages: Messages) -> Controller:
    """Return the controller of the current settings."""
    return of_thread(contexts.load(messages), messages)
