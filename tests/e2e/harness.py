# SPDX-License-Identifier: Apache-2.0
"""Real programs on loopback: a controller, any number of agents, and a plain HTTP client to speak to them.

Nothing here waits by sleeping for a fixed time: every wait polls for the thing waited for and fails after a deadline.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slowness import patient

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
GPUCTLD = Path(os.environ.get("GPUCTL_TEST_CONTROLLER", BUILD / "daemon" / "gpuctld"))
GPUAGENT = BUILD / "agent" / "gpuagent"
GPUCTL = BUILD / "client" / "cli" / "gpuctl"
PYTHON = os.environ.get("GPUCTL_TEST_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"}

#: Seconds that any single wait may take: sanitizer builds on a loaded machine are slow.
PATIENCE = patient(60.0)


def eventually(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Return the first true value of the condition; fail, naming what was waited for, after the deadline."""
    deadline = time.monotonic() + patience
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        pause.wait(0.02)


class Problem(Exception):
    """A reply with a status of 400 or more; body is the problem document."""

    def __init__(self, status: int, body: Any):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.code = body.get("code") if isinstance(body, dict) else None
        self.field = body.get("field") if isinstance(body, dict) else None


class Api:
    """The REST API as a person with a token and a plain HTTP library sees it."""

    def __init__(self, url: str, token: str | None, cacert: Path | None = None):
        parts = urllib.parse.urlsplit(url)
        self.address = parts.netloc
        self.token = token
        self.trust = ssl.create_default_context(cafile=cacert) if parts.scheme == "https" else None

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.trust is not None:
            return http.client.HTTPSConnection(self.address, timeout=timeout, context=self.trust)
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, timeout: float = PATIENCE
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on its own connection: (status, headers with lower-case names, body)."""
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent.update(headers or {})
        connection = self.connection(timeout)
        try:
            if connection.sock is None:  # else it was connected where this process is not
                connection.connect()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent: the reply says why
                connection.request(method, path, body=body, headers=sent)
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
        finally:
            connection.close()

    def blob(self, content: bytes) -> str:
        """Upload the bytes, and return their hash, by which jobs name them."""
        name = hashlib.sha256(content).hexdigest()
        status, _, reply = self.raw("PUT", f"/v1/blobs/{name}", content, {"Content-Type": "application/octet-stream"})
        assert status in (200, 201, 204), reply
        return name

    def call(self, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None) -> Any:
        """JSON in, JSON out; Problem for statuses of 400 and more."""
        sent = dict(headers or {})
        body = None
        if document is not None:
            body = json.dumps(document).encode()
            sent.setdefault("Content-Type", "application/json")
        status, _, reply = self.raw(method, path, body, sent)
        parsed = json.loads(reply) if reply else None
        if status >= 400:
            raise Problem(status, parsed)
        return parsed

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, document: Any = None, **headers: str) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", path, {} if document is None else document, sent)

    def submit(self, command: list[str], gpus: int = 1, **spec: Any) -> str:
        """Submit a command and return the job's id."""
        return self.post("/v1/jobs", {"command": command, "gpus": gpus, **spec}, Idempotency_Key=uuid.uuid4().hex)["id"]

    def job(self, job: str) -> Any:
        return self.get(f"/v1/jobs/{job}")

    def events(self, job: str) -> list[str]:
        return [event["kind"] for event in self.get(f"/v1/jobs/{job}/events")["events"]]

    def wait(self, job: str, patience: float = PATIENCE) -> Any:
        """The job once it is terminal."""
        deadline = time.monotonic() + patience
        while True:
            view = self.get(f"/v1/jobs/{job}?wait=5")
            if view["state"] in TERMINAL:
                return view
            assert time.monotonic() < deadline, f"job {job} is still {view['state']}: {view}"

    def log(self, job: str, rank: int = 0, stream: str = "stdout", **query: Any) -> str:
        extra = "".join(f"&{name}={value}" for name, value in query.items())
        status, _, body = self.raw("GET", f"/v1/jobs/{job}/logs?rank={rank}&stream={stream}{extra}")
        if status >= 400:
            raise Problem(status, json.loads(body))
        return body.decode()

    def stream(self, path: str, last_id: str | None = None) -> Iterator[dict[str, str]]:
        """The events of an event stream as dicts of their fields, until the server ends it."""
        connection = self.connection(PATIENCE)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        try:
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            fields: dict[str, str] = {}
            for line in reply:
                text = line.decode().rstrip("\r\n")
                if not text:
                    if fields:
                        yield fields
                    fields = {}
                elif not text.startswith(":"):
                    name, _, value = text.partition(":")
                    value = value.removeprefix(" ")
                    fields[name] = f"{fields[name]}\n{value}" if name in fields else value
        finally:
            connection.close()


class Program:
    """A daemon of ours: started, watched, killed."""

    def __init__(self, arguments: list[str], log: Path, environment: dict[str, str] | None = None):
        self.arguments = arguments
        self.log = log
        self.environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment, start_new_session=True
            )

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self, how: int = signal.SIGKILL) -> int:
        """Send the signal, wait for the end, return the exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def said(self) -> str:
        return self.log.read_text(errors="replace")


def restart_within(agent: Program, *wrapper: str) -> None:
    """Start the agent again as a child of another program, which must exec it."""
    agent.kill()
    agent.log.write_text("")
    agent.arguments = [*wrapper, *agent.arguments]
    agent.start()
    eventually(lambda: "node registered" in agent.said(), "the node to be back")


def end_shims(folder: Path) -> None:
    """End the shims below a folder that wait for an agent which will not come back: they would hold their exit records for a day."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                mine = os.readlink(entry / "cwd").startswith(f"{folder}/")
                if mine and os.readlink(entry / "exe").removesuffix(" (deleted)").endswith("/gpushim"):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


def make_tls(folder: Path) -> list[str]:
    """Have gpuctld init make the authority of a cluster in this folder; the options for its controller."""
    options = ["--config", str(folder / "controller.conf")]
    made = [str(GPUCTLD), "init", "--state", str(folder / "controller"), *options, "--listen", "127.0.0.1:0"]
    subprocess.run(made, check=True, capture_output=True)
    return options


class Cluster:
    """A controller and agents with CPU slots, each agent under its own name."""

    def __init__(
        self, folder: Path, slots: list[int], controller: list[str] | None = None, agent: list[str] | None = None,
        agent_environment: dict[str, str] | None = None, programs: Path | None = None,
    ):  # fmt: skip
        self.folder = folder
        self.gpuctld = programs / "gpuctld" if programs else GPUCTLD
        self.gpuagent = programs / "gpuagent" if programs else GPUAGENT
        self.endpoint = folder / "endpoint"
        self.port = 0
        self.controller_arguments = controller or []
        own = ["--run-as", "agent", "--warm-memory", "0"]  # test_run_as_owner.py and test_warm.py have the others
        self.agent_arguments = [*([] if programs else own), *(agent or [])]
        self.agent_environment = {**(agent_environment or {}), "GPUCTL_RUN_AS": "agent"} if programs else agent_environment
        self.controller = Program([], folder / "gpuctld.log")
        self.agents: list[Program] = []
        self.slots = slots

    def start(self) -> Cluster:
        self.start_controller()
        self.api.post("/v1/tokens", {"role": "node", "owner": "nodes"})
        secret = self.api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"]
        token = self.folder / "node.token"
        token.touch(0o600)
        token.write_text(secret + "\n")
        for number, slots in enumerate(self.slots):
            self.add_agent(f"node{number}", slots)
        self.wait_ready()
        return self

    @property
    def cacert(self) -> Path | None:
        """The authority of a controller that was set up by gpuctld init; None: it has none."""
        authority = self.folder / "controller" / "tls" / "ca.pem"
        return authority if authority.exists() else None

    def controller_command(self) -> list[str]:
        """The controller with its arguments, on the port that it had before."""
        return [
            str(self.gpuctld), "--state", str(self.folder / "controller"), "--listen", f"127.0.0.1:{self.port}",
            "--endpoint-file", str(self.endpoint), "--beat", "500ms", "--lease-min", "1s", *self.controller_arguments,
        ]  # fmt: skip

    def start_controller(self) -> None:
        """Start it, and wait until it serves."""
        self.endpoint.unlink(missing_ok=True)
        self.controller.arguments = self.controller_command()
        self.controller.start()
        eventually(lambda: self.endpoint.exists() or not self.controller.alive(), "the controller's endpoint file")
        assert self.controller.alive(), self.controller.said()
        self.url = json.loads(self.endpoint.read_text())["url"]
        self.port = urllib.parse.urlsplit(self.url).port or 0
        self.admin_token = (self.folder / "controller" / "admin.token").read_text().strip()
        self.api = Api(self.url, self.admin_token, self.cacert)

    def add_agent(self, name: str, slots: int, *arguments: str) -> Program:
        agent = Program(
            [
                str(self.gpuagent), "--controller", self.url, "--token-file", str(self.folder / "node.token"), "--name", name,
                "--state", str(self.folder / name), "--run", str(self.folder / f"{name}.run"), "--devices", "none",
                "--cpu-slots", str(slots), "--python", PYTHON, *(["--cacert", str(self.cacert)] if self.cacert else []),
                *self.agent_arguments, *arguments,
            ],
            self.folder / f"{name}.log",
            self.agent_environment,
        )  # fmt: skip
        agent.start()
        self.agents.append(agent)
        return agent

    def nodes(self) -> dict[str, Any]:
        return {node["name"]: node for node in self.api.get("/v1/nodes")["nodes"]}

    def wait_ready(self) -> None:
        def ready() -> bool:
            assert all(agent.alive() for agent in self.agents), "\n".join(agent.said() for agent in self.agents)
            nodes = self.nodes()
            return len(nodes) == len(self.agents) and all(node["state"] == "READY" for node in nodes.values())

        eventually(ready, "all nodes to be READY")

    def user(self, owner: str, role: str = "user") -> Api:
        """A client with a new token of that role."""
        return Api(self.url, self.api.post("/v1/tokens", {"role": role, "owner": owner})["secret"], self.cacert)

    def own_node_token(self, name: str) -> str:
        """A token of this node's own, as gpuagent join gets it."""
        secret = (name + "A" * 43)[:43]
        order = {"token": self.api.post("/v1/nodes/join-tokens", {})["token"], "name": name}
        order["secret_sha256"] = hashlib.sha256(secret.encode()).hexdigest()
        return f"gct_{Api(self.url, None, self.cacert).post('/v1/agent/join', order)['token_id']}_{secret}"

    def open_project(self, *names: str) -> None:
        """Set projects up that everybody may submit to."""
        for name in names:
            self.api.call("PUT", f"/v1/accounts/projects/{name}", {})

    def wait_state(self, job: str, *states: str) -> Any:
        def there() -> Any:
            view = self.api.job(job)
            assert view["state"] in states or view["state"] not in TERMINAL, view
            return view if view["state"] in states else None

        return eventually(there, f"job {job} to be {' or '.join(states)}")

    def cancel_all(self) -> None:
        """End what lives, and wait for it."""
        for state in ("QUEUED", "STAGING", "PLACED", "RUNNING"):
            for job in self.api.get(f"/v1/jobs?state={state}&limit=200")["jobs"]:
                try:
                    self.api.post(f"/v1/jobs/{job['id']}/cancel")
                    self.api.wait(job["id"])
                except Problem as problem:
                    assert problem.status == 409, problem

    def stop(self) -> None:
        """Cancel what lives, end the daemons in order, and check that each ended well."""
        try:
            if self.controller.alive() and all(agent.alive() for agent in self.agents):
                self.cancel_all()
        finally:
            codes = {}
            for agent in self.agents:
                if agent.alive():
                    codes[agent.log.name] = agent.kill(signal.SIGTERM)
            if self.controller.alive():
                codes["gpuctld.log"] = self.controller.kill(signal.SIGTERM)
            end_shims(self.folder)
            for name, code in codes.items():
                assert code == 0, f"{name}: exit {code}\n{(self.folder / name).read_text(errors='replace')[-4000:]}"


def run_gpuctl(
    *arguments: str, env: dict[str, str] | None = None, timeout: float = PATIENCE, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """gpuctl as a whole process; output as text, and what is given as its input."""
    environment = {**os.environ, **(env or {})}
    with tempfile.TemporaryFile("w+") as stdin:
        stdin.write(given)
        stdin.seek(0)
        return subprocess.run([str(GPUCTL), *arguments], env=environment, capture_output=True, text=True, timeout=timeout, stdin=stdin)
