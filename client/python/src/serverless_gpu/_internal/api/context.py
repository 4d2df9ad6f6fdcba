# SPDX-License-Identifier: Apache-2.0
"""The controller to use, and the token for it: the one that the settings name, else the user's own instance, which is started if it does
not run.

A token never goes unencrypted to another host unless the setting `insecure_plain_http` allows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from serverless_gpu._internal.api import embedded
from serverless_gpu._internal.api.settings import Settings
from serverless_gpu._internal.api.tokens import is_loopback, read_token, renewed
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import SettingsError


class Context(NamedTuple):
    """A controller and the access to it."""

    url: str  # scheme, host and port; no slash at the end
    token: str
    token_file: str
    cacert: str | None  # None: the certificates that Python trusts
    state: Path
    embedded: bool  # the user's own instance on this host

    def refreshed(self) -> Context:
        """Return the context with the present address of the user's own instance; unchanged if it does not run, and for any other
        controller.
        """
        url = embedded.running_url(self.state) if self.embedded else None
        return self if url is None else self._replace(url=url, token=read_token(self.token_file))

    def revived(self) -> Context:
        """Return the refreshed context; start the user's own instance first if it has ended."""
        if self.embedded and embedded.running_url(self.state) is None:
            embedded.start(self.state)
        return self.refreshed()


def _check_url(url: str, plain_allowed: bool) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or any(character in url for character in "@?#"):
        raise SettingsError(f'"{url}" is not the URL of a controller: write GPUCTL_URL like https://gpu.example.org:7070')
    if parts.scheme == "http" and not plain_allowed and not is_loopback(host):
        raise SettingsError(
            f"{url} would carry the token unencrypted to another host: use https, or allow it with GPUCTL_INSECURE_PLAIN_HTTP=true"
        )
    return url.rstrip("/")


def _load_named(url: str, settings: Settings) -> Context:
    checked = _check_url(url, settings.is_on("insecure_plain_http"))
    token_file = settings.get("token_file")
    if token_file is None:
        raise SettingsError(f"there is no token for {checked}: name the file that holds yours with GPUCTL_TOKEN_FILE")
    cacert = settings.get("cacert")
    token = renewed(checked, read_token(token_file), Path(token_file).parent, cacert)
    return Context(checked, token, token_file, cacert, settings.state_folder(), embedded=False)


def _load_own(settings: Settings, messages: Messages) -> Context:
    state = settings.state_folder()
    url = embedded.running_url(state)
    if url is None:
        if embedded.start(state):
            messages.say(f"started a controller and a node of your own in {state}; they end after ten minutes without jobs")
        url = embedded.running_url(state)
    if url is None:
        raise SettingsError(f"the controller of your own in {state} ended as soon as it had started: see {state / 'controller.log'}")
    token_file = str(embedded.token_file(state))
    return Context(url, read_token(token_file), token_file, None, state, embedded=True)


def load(messages: Messages) -> Context:
    """Return the controller of the current settings."""
    settings = Settings()
    url = settings.get("url")
    return _load_named(url, settings) if url is not None else _load_own(settings, messages)
