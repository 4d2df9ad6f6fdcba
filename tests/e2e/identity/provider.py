# SPDX-License-Identifier: Apache-2.0
"""A real identity provider (provider.mjs), and a person with a browser in front of it."""

from __future__ import annotations

import html.parser
import json
import shutil
import urllib.parse
from pathlib import Path
from typing import Any

import requests

from harness import PATIENCE, Program, eventually

HERE = Path(__file__).resolve().parent
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Provider:
    """An identity provider on loopback. `people` are claims by subject."""

    def __init__(self, folder: Path, device_s: int = 600):
        self.folder = folder
        self.settings = folder / "provider.json"
        self.people_file = folder / "people.json"
        self.device_s = device_s
        self.port = 0
        self.issuer = ""
        self.program: Program | None = None
        self.people({})

    def people(self, people: dict[str, dict[str, Any]]) -> None:
        """From now on these are the people."""
        part = self.people_file.with_suffix(".part")
        part.write_text(json.dumps(people))
        part.rename(self.people_file)

    def start(self) -> Provider:
        """Start it, with keys of its own, where it was before."""
        node = shutil.which("node")
        assert node and (HERE / "node_modules" / "oidc-provider").exists(), "deploy/dependencies --tests gets the packages"
        settings = {"port": self.port, "people": str(self.people_file), "device_s": self.device_s}
        self.settings.write_text(json.dumps(settings))
        log = self.folder / "provider.log"
        log.unlink(missing_ok=True)
        program = self.program = Program([node, str(HERE / "provider.mjs"), str(self.settings)], log)
        program.start()
        found = eventually(lambda: [line for line in program.said().splitlines() if line.startswith("http")], "the identity provider")
        self.issuer = found[0]
        self.port = urllib.parse.urlsplit(self.issuer).port or 0
        return self

    def stop(self) -> None:
        if self.program is not None and self.program.alive():
            self.program.kill()

    # --- what a program does ---

    def begin(self, client: str = "gpuctl", scope: str = "openid profile email groups") -> dict[str, Any]:
        reply = requests.post(f"{self.issuer}/device/auth", data={"client_id": client, "scope": scope}, timeout=PATIENCE)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def id_token(self, subject: str, client: str = "gpuctl") -> str:
        """Of a person who has said yes."""
        device = self.begin(client)
        Person(subject).agree(device["verification_uri_complete"])
        form = {"grant_type": GRANT, "device_code": device["device_code"], "client_id": client}
        reply = requests.post(f"{self.issuer}/token", data=form, timeout=PATIENCE)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["id_token"])


class Form(html.parser.HTMLParser):
    """The first form of a page: where it goes, and its fields."""

    def __init__(self, page: str):
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "form" and not self.action:
            self.action = found["action"]
        elif tag == "input" and "name" in found:
            self.fields[found["name"]] = found.get("value", "")


class Person:
    """Somebody with a browser."""

    def __init__(self, subject: str):
        self.subject = subject
        self.browser = requests.Session()
        self.browser.trust_env = False

    def send(self, reply: requests.Response, **more: str) -> requests.Response:
        """Send the form of a page, with these fields besides."""
        form = Form(reply.text)
        assert form.action, reply.text
        fields = {name: value for name, value in form.fields.items() if name not in more} | more
        return self.browser.post(urllib.parse.urljoin(reply.url, form.action), data=fields, timeout=PATIENCE)

    def confirm(self, address: str) -> requests.Response:
        """Open the address, whose page asks whether the code is right."""
        return self.send(self.browser.get(address, timeout=PATIENCE))

    def agree(self, address: str) -> None:
        page = self.send(self.confirm(address), confirm="yes")
        page = self.send(page, login=self.subject, password="any")
        while "Sign-in Success" not in page.text:
            page = self.send(page)

    def refuse(self, address: str) -> None:
        self.send(self.confirm(address), abort="yes")
