# SPDX-License-Identifier: Apache-2.0
"""The relays of deploy/examples, as a person starts them: they forward what gpuctl signed, once, and nothing else."""

from __future__ import annotations

import email
import http.client
import json
import os
import re
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import ROOT, Cluster, eventually
from receiver import Receiver

EXAMPLES = ROOT / "deploy" / "examples"
Relay = Callable[..., int]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    controller = ["--webhook-networks", "127.0.0.0/8", "--webhook-pause", "10ms"]
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), [1], controller=controller).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """Start a relay whose secret is written later, as it hears on a port before the webhook is there; returns its port."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, secret: str, **settings: str) -> int:
        (tmp_path / "secret").write_text(secret + "\n")
        environment = {**os.environ, "SECRET_FILE": str(tmp_path / "secret"), "LISTEN": "127.0.0.1:0", **settings}
        log = (tmp_path / "relay.log").open("w")
        process = subprocess.Popen([sys.executable, str(EXAMPLES / program)], env=environment, stdout=log, stderr=log, text=True)
        started.append(process)
        said = eventually(lambda: re.search(r"hearing on 127.0.0.1:(\d+)", (tmp_path / "relay.log").read_text()), "the relay")
        return int(said[1])

    yield start
    for process in started:
        process.kill()
        process.wait()


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as one message needs."""

    def handle(self) -> None:
        self.wfile.write(b"220 test\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (text := self.rfile.readline()) != b".\r\n":
                    lines.append(text)
                self.server.got.append(email.message_from_bytes(b"".join(lines)))  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if line.upper().startswith(b"QUIT") else b"250 ok\r\n")


def made(cluster: Cluster) -> Any:
    """A webhook whose URL is known later."""
    return cluster.api.post("/v1/webhooks", {"url": "http://127.0.0.1:9/", "events": ["failed"]})


def test_the_relay_of_slack_forwards_what_is_signed_once(told: Cluster, relay: Relay) -> None:
    slack = Receiver()
    hook = made(told)
    port = relay("slack_relay.py", hook["secret"], SLACK_URL=slack.url)
    told.api.call("PATCH", f"/v1/webhooks/{hook['id']}", {"url": f"http://127.0.0.1:{port}/"})
    job = told.api.submit(["sh", "-c", "exit 3"], name="train")
    eventually(lambda: slack.got, "the message")
    assert slack.documents()[0]["text"].startswith("train of admin: failed - ")
    path = f"/v1/webhooks/{hook['id']}"
    (delivery,) = eventually(lambda: told.api.get(f"{path}/deliveries?state=DELIVERED")["deliveries"], "the outcome")
    assert delivery["job_id"] == job
    told.api.post(f"{path}/replay", {"deliveries": [delivery["id"]]})
    told.api.post(f"{path}/test")
    eventually(lambda: len(slack.got) == 2, "the test")
    assert slack.documents()[1]["text"] == "gpuctl: a test"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(
        "POST", "/", json.dumps({"job": None, "event": {}}), {"webhook-id": "x", "webhook-timestamp": "1", "webhook-signature": "v1,x"}
    )
    assert connection.getresponse().status == 401
    assert len(slack.got) == 2
    slack.close()
    told.api.call("DELETE", path)


def test_what_slack_does_not_take_is_sent_again(told: Cluster, relay: Relay) -> None:
    statuses = iter([500, 500])
    slack = Receiver(lambda document: next(statuses, 200))
    hook = made(told)
    port = relay("slack_relay.py", hook["secret"], SLACK_URL=slack.url)
    told.api.call("PATCH", f"/v1/webhooks/{hook['id']}", {"url": f"http://127.0.0.1:{port}/"})
    told.api.post(f"/v1/webhooks/{hook['id']}/test")
    eventually(lambda: len(slack.got) == 3, "the third message")
    slack.close()
    told.api.call("DELETE", f"/v1/webhooks/{hook['id']}")


def test_the_relay_of_mail_writes_to_the_owner(told: Cluster, relay: Relay) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail) as server:
        server.got = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        hook = made(told)
        port = relay(
            "email_relay.py",
            hook["secret"],
            SMTP=f"127.0.0.1:{server.server_address[1]}",
            MAIL_FROM="gpuctl@example.com",
            MAIL_DOMAIN="example.com",
        )
        told.api.call("PATCH", f"/v1/webhooks/{hook['id']}", {"url": f"http://127.0.0.1:{port}/"})
        told.api.submit(["sh", "-c", "exit 3"], name="train")
        (message,) = eventually(lambda: server.got, "the mail")  # type: ignore[attr-defined]
        assert (message["To"], message["Subject"]) == ("admin@example.com", "train of admin: failed")
        told.api.call("DELETE", f"/v1/webhooks/{hook['id']}")
        server.shutdown()
