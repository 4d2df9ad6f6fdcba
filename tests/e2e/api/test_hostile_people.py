# SPDX-License-Identifier: Apache-2.0
"""People who want what is another's: they guess ids, repeat what they have seen of others, and go on with what they may no longer do.

What test_authorization.py asks of each route, these ask of its words: the answer about a thing of another is, byte for byte,
that about a thing that is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import contract as contracts
from contract import Contract, Operation
from harness import PATIENCE, Api, Cluster, eventually

CONTRACT = Contract(contracts.load())
OF_JOBS = [operation for operation in CONTRACT.operations if operation.path.startswith("/v1/jobs/{id}")]
#: Nobody's.
NONE = "a" * 16
#: What every answer has of its own.
PASSING = {"date", "gpuctl-request-id", "x-request-id"}


class Scene:
    """uma and vera are members of vision, eve is not; uma has a job of each kind there. Their names are found in no other text."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        self.admin = cluster.api
        self.gate = folder / "gate"
        self.mark = uuid.uuid4().hex[:8]
        self.owner, self.project = f"uma-{self.mark}", f"vision-{self.mark}"
        self.members = {self.owner: "user", f"vera-{self.mark}": "viewer"}
        cluster.open_project("public")
        self.let_in(self.members)
        self.uma, self.vera, self.eve = cluster.user(self.owner), cluster.user(f"vera-{self.mark}"), cluster.user("eve")
        self.job = self.submit("job", ["true"], hold=True)
        self.array = self.submit("array", ["sleep", "1000"], array={"tasks": 2, "parallel": 1})
        eventually(lambda: self.admin.job(f"{self.array}.0")["state"] == "RUNNING", "a task to run")

    def let_in(self, members: dict[str, str]) -> None:
        self.admin.call("PUT", f"/v1/accounts/projects/{self.project}", {"members": members})

    def submit(self, name: str, command: list[str], **spec: Any) -> str:
        return self.uma.submit(command, name=f"{name}-{self.mark}", project=self.project, **spec)

    def talker(self) -> str:
        """A job of uma's that says `first`, and `second` when the gate is open."""
        self.gate.unlink(missing_ok=True)
        script = f"echo first; while [ ! -e {self.gate} ]; do sleep 0.02; done; echo second; exec sleep 1000"
        job = self.submit("talker", ["sh", "-c", script])
        eventually(lambda: "first" in self.admin.log(job), "the job to say something")
        return job

    def talk(self, job: str) -> None:
        """It says the second word, and ends."""
        self.gate.touch()
        eventually(lambda: "second" in self.admin.log(job), "the job to say more")
        self.admin.post(f"/v1/jobs/{job}/cancel")
        self.admin.wait(job)

    def revoke(self, api: Api) -> None:
        assert api.token is not None
        self.admin.post(f"/v1/tokens/{api.token.split('_')[1]}/revoke")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("people")
    cluster = Cluster(folder, [3]).start()
    yield Scene(cluster, folder)
    cluster.stop()


def answer(api: Api, method: str, path: str, document: Any = None, hidden: str = NONE, **headers: str) -> tuple[int, dict[str, str], str]:
    """All of an answer, but for what every answer has of its own and the name that was asked for."""
    body = None if document is None else json.dumps(document).encode()
    sent = headers if document is None else {"Content-Type": "application/json", **headers}
    status, got, reply = api.raw(method, path, body, sent)
    kept = {name: value for name, value in got.items() if name not in PASSING and name != "content-length"}
    return status, kept, reply.decode(errors="replace").replace(hidden, NONE)


# --- guesses ----------------------------------------------------------------------------------------------------


def least(operation: Operation) -> tuple[str, Any]:
    """Its query and its body, as plain as they may be."""
    wanted = [f"{p['name']}={CONTRACT.example(p['schema'])}" for p in operation.parameters if p["in"] == "query" and p.get("required")]
    body = CONTRACT.follow(operation.document.get("requestBody"))
    document = ({"priority": 0} if operation.method == "patch" else {}) if body else None
    return ("?" + "&".join(wanted) if wanted else ""), document


@pytest.mark.parametrize("operation", OF_JOBS, ids=str)
def test_a_job_of_another_is_answered_like_one_that_is_not_there(scene: Scene, operation: Operation) -> None:
    query, document = least(operation)
    for which in (scene.job, scene.array):
        for dot in ("", ".0", ".1", ".7"):
            path = operation.path + query
            asked = [answer(scene.eve, operation.method.upper(), path.replace("{id}", id + dot), document, which) for id in (which, NONE)]
            assert asked[0] == asked[1], f"{which}{dot}"
            assert asked[0][0] == 404, asked[0]
    for accept in ("text/event-stream", "application/json"):
        path = operation.path.replace("{id}", scene.job) + query
        if operation.method == "get":
            assert answer(scene.eve, "GET", path, None, scene.job, Accept=accept)[0] == 404


ODD = [
    "..", "%2e%2e", "JOB%00", "JOB%2f", "JOB%2f..", "%00JOB", "JOB%0a", "JOB.", "JOB.-1", "JOB.0.0", "JOB.00000000000000000001",
    "JOB.99999999999999999999", "jOb", "JOB%20", "%20JOB", "JOB;a=b", "JOB,JOB", "JOB%ff", "JOB" + "a" * 5000, "*", "%25", "JOB%",
    "JOB/../JOB", "./JOB", "//JOB",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_no_way_to_write_an_id_leads_to_a_job_of_another(scene: Scene, odd: str) -> None:
    for suffix in ("", "/logs", "/events", "/results"):
        status, _, reply = scene.eve.raw("GET", f"/v1/jobs/{odd.replace('JOB', scene.job).replace('jOb', scene.job.upper())}{suffix}")
        assert 400 <= status < 500, reply
        assert scene.mark.encode() not in reply, reply


#: What a proxy or a framework might believe: the method, the path, and who asks.
OVERRIDES = [
    {"X-HTTP-Method-Override": "DELETE"}, {"X-HTTP-Method": "DELETE"}, {"X-Method-Override": "DELETE"}, {"X-Original-URL": "/v1/tokens"},
    {"X-Rewrite-URL": "/v1/tokens"}, {"X-Forwarded-User": "admin"}, {"X-Remote-User": "admin"}, {"Remote-User": "admin"},
    {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}, {"X-User": "admin"},
    {"Gpuctl-Owner": "admin"},
]  # fmt: skip


@pytest.mark.parametrize("headers", OVERRIDES, ids=lambda headers: next(iter(headers)))
def test_no_other_header_says_what_is_asked_and_who_asks(scene: Scene, headers: dict[str, str]) -> None:
    assert answer(scene.eve, "GET", f"/v1/jobs/{scene.job}", None, scene.job, **headers) == answer(scene.eve, "GET", f"/v1/jobs/{NONE}")
    mine = scene.eve.submit(["true"], hold=True)
    assert answer(scene.eve, "GET", f"/v1/jobs/{mine}", **headers) == answer(scene.eve, "GET", f"/v1/jobs/{mine}")
    assert answer(scene.eve, "GET", "/v1/tokens", **headers)[0] == 403
    assert Api(scene.cluster.url, None).raw("GET", "/v1/jobs", None, headers)[0] == 401
    assert scene.eve.raw("POST", f"/v1/jobs/{mine}/cancel?_method=GET", b"", headers)[0] == 422  # nor does the query
    assert scene.eve.job(mine)["state"] == "HELD"
    scene.eve.post(f"/v1/jobs/{mine}/cancel")


def test_runs_models_and_uploads_of_another_are_answered_like_those_that_are_not_there(scene: Scene) -> None:
    base, sent = "/api/2.0/mlflow", b"weights of uma" * 9000
    experiment = scene.uma.post(f"{base}/experiments/create", {"name": f"e-{scene.mark}"})["experiment_id"]
    run = scene.uma.post(f"{base}/runs/create", {"experiment_id": experiment})["run"]["info"]["run_id"]
    scene.uma.post(f"{base}/runs/log-metric", {"run_id": run, "key": f"m-{scene.mark}", "value": 1, "timestamp": 1, "step": 0})
    scene.uma.post(f"{base}/registered-models/create", {"name": f"r-{scene.mark}"})
    sha = hashlib.sha256(sent).hexdigest()
    assert scene.uma.raw("PUT", f"/v1/blobs/{sha}", sent)[0] == 201
    none_run, none_experiment, none_model = "f" * 32, "9" * len(experiment), f"q-{scene.mark}"
    cases: list[tuple[str, str, Any, str, str]] = [
        ("GET", f"{base}/runs/get?run_id=ID", None, run, none_run),
        ("POST", f"{base}/runs/log-metric", {"run_id": "ID", "key": "x", "value": 1, "timestamp": 1}, run, none_run),
        ("POST", f"{base}/runs/delete", {"run_id": "ID"}, run, none_run),
        ("POST", f"{base}/runs/update", {"run_id": "ID", "status": "KILLED"}, run, none_run),
        ("POST", f"{base}/runs/set-tag", {"run_id": "ID", "key": "x", "value": "y"}, run, none_run),
        ("GET", f"{base}/metrics/get-history?run_id=ID&metric_key=m-{scene.mark}", None, run, none_run),
        ("GET", f"{base}/artifacts/list?run_id=ID", None, run, none_run),
        ("GET", f"{base}/experiments/get?experiment_id=ID", None, experiment, none_experiment),
        ("GET", f"{base}/experiments/get-by-name?experiment_name=ID", None, f"e-{scene.mark}", f"x-{scene.mark}"),
        ("POST", f"{base}/experiments/delete", {"experiment_id": "ID"}, experiment, none_experiment),
        ("POST", f"{base}/runs/create", {"experiment_id": "ID"}, experiment, none_experiment),
        ("POST", f"{base}/runs/search", {"experiment_ids": ["ID"]}, experiment, none_experiment),
        ("GET", f"{base}/registered-models/get?name=ID", None, f"r-{scene.mark}", none_model),
        ("DELETE", f"{base}/registered-models/delete", {"name": "ID"}, f"r-{scene.mark}", none_model),
        ("POST", f"{base}/model-versions/create", {"name": "ID", "source": "x"}, f"r-{scene.mark}", none_model),
        ("GET", "/v1/blobs/ID", None, sha, "0" * 64),
        ("HEAD", "/v1/blobs/ID", None, sha, "0" * 64),
    ]  # fmt: skip
    for method, path, document, theirs, nobodys in cases:
        asked = []
        for id in (theirs, nobodys):
            filled = None if document is None else json.loads(json.dumps(document).replace("ID", id))
            asked.append(answer(scene.eve, method, path.replace("=ID", f"={id}").replace("/ID", f"/{id}"), filled, id))
        assert asked[0] == asked[1], f"{method} {path}"
    told = [
        answer(scene.eve, "POST", "/v1/jobs", {"command": ["true"], "gpus": 1, "files": [{"path": "x", "blob": blob}]})
        for blob in (sha, "0" * 64)
    ]
    assert told[0] == told[1] and told[0][0] == 422
    assert scene.uma.get(f"{base}/runs/get?run_id={run}")["run"]["info"]["lifecycle_stage"] == "active"


# --- what is seen of others ---------------------------------------------------------------------------------------


LOOKS = [
    "/v1/jobs", "/v1/jobs?name=NAME", "/v1/jobs?project=PROJECT", "/v1/jobs?owner=OWNER", "/v1/jobs?node=node0",
    "/v1/jobs?id_prefix=PREFIX", "/v1/jobs?limit=1&cursor=CURSOR", "/v1/jobs?array=ARRAY", "/v1/queue", "/v1/queue?project=PROJECT",
    "/v1/queue?owner=OWNER", "/v1/overview", "/v1/gpus", "/v1/gpus?owner=OWNER", "/v1/nodes", "/v1/nodes/node0", "/v1/nodes/node0/samples",
    "/v1/usage?by=owner", "/v1/usage?by=project", "/v1/usage?project=PROJECT", "/v1/usage?owner=OWNER", "/v1/accounts",
    "/v1/accounts/projects/PROJECT", "/v1/accounts/users/OWNER", "/v1/pools", "/v1/webhooks", "/v1/secrets", "/v1/secrets?project=PROJECT",
    "/metrics",
]  # fmt: skip


def test_no_list_and_no_filter_tells_of_a_job_of_another(scene: Scene) -> None:
    scene.uma.call("PUT", f"/v1/secrets/S_{scene.mark.upper()}", {"value": "x", "project": scene.project})
    page = scene.uma.get("/v1/jobs?limit=1")
    told = {
        "NAME": f"job-{scene.mark}", "PROJECT": scene.project, "OWNER": scene.owner, "PREFIX": scene.job[:6], "CURSOR": page["next"],
        "ARRAY": scene.array,
    }  # fmt: skip
    leaks = []
    for look in LOOKS:
        path = look
        for word, value in told.items():
            path = path.replace(f"={word}", f"={value}").replace(f"/{word}", f"/{value}")
        status, _, reply = scene.eve.raw("GET", path)
        assert status < 500, reply
        text = reply.decode().lower()
        for value in told.values():  # what was asked for may be repeated by a refusal
            text = text.replace(value.lower(), "") if status >= 400 else text
        if any(word.lower() in text for word in (scene.mark, scene.job, scene.array)):
            leaks.append(f"{look}: {status} {reply[:600]!r}")
    assert not leaks, "\n".join(leaks)


def test_filters_that_fit_a_job_of_another_are_answered_like_those_that_fit_none(scene: Scene) -> None:
    for theirs, nobodys in (
        (f"name=job-{scene.mark}", "name=nobody"),
        (f"project={scene.project}", "project=nobody"),
        (f"owner={scene.owner}", "owner=nobody"),
        (f"id_prefix={scene.job[:8]}", "id_prefix=aaaaaaaa"),
        (f"name=job-{scene.mark}&limit=1&state=HELD", "name=nobody&limit=1&state=HELD"),
    ):
        asked = [scene.eve.get(f"/v1/jobs?{query}") for query in (theirs, nobodys)]
        assert asked[0] == asked[1] == {"jobs": [], "next": None}, theirs


def test_a_cursor_of_another_leads_to_ones_own_jobs_alone(scene: Scene) -> None:
    mine = {scene.eve.submit(["true"], hold=True, name="mine") for _ in range(2)}
    cursor = scene.admin.get("/v1/jobs?limit=1")["next"]
    seen = {job["owner"] for job in scene.eve.get(f"/v1/jobs?cursor={cursor}")["jobs"]}
    assert seen == {"eve"}
    for job in mine:
        scene.eve.post(f"/v1/jobs/{job}/cancel")


def test_an_idempotency_key_of_another_gives_nothing_of_its_answer(scene: Scene) -> None:
    key, document = uuid.uuid4().hex, {"command": ["true"], "gpus": 1, "hold": True, "project": "public"}
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    replies = [api.raw("POST", "/v1/jobs", json.dumps(document).encode(), headers) for api in (scene.uma, scene.uma, scene.eve, scene.eve)]
    ids = [json.loads(reply)["id"] for _, _, reply in replies]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert ["idempotency-replayed" in got for _, got, _ in replies] == [False, True, False, True]
    for api, id in ((scene.uma, ids[0]), (scene.eve, ids[2])):
        api.post(f"/v1/jobs/{id}/cancel")


# --- rights that end ------------------------------------------------------------------------------------------------


STREAMS = ["/v1/jobs/JOB/logs", "/v1/jobs/JOB/events", "/v1/jobs/JOB/metrics", "/v1/events"]


class Open:
    """A reply that has begun; what comes of it later is read by a thread."""

    def __init__(self, api: Api, path: str):
        self.link = api.connection(PATIENCE)
        headers = {"Authorization": f"Bearer {api.token}", "Accept": "text/event-stream"}
        self.link.request("GET", path, headers=headers)
        self.reply = self.link.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.got = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        with contextlib.suppress(http.client.HTTPException):  # this end was closed
            while piece := self.reply.read1():
                self.got += piece

    def close(self) -> None:
        assert self.link.sock is not None
        self.link.sock.shutdown(socket.SHUT_RDWR)

    def until_it_ends(self) -> bytes:
        self.reader.join(PATIENCE)
        assert not self.reader.is_alive(), f"the stream goes on: {self.got!r}"
        self.link.close()
        return self.got


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_ends_with_its_token_before_anything_more_is_sent(scene: Scene, path: str) -> None:
    """What came within 15 s of the revocation was still sent."""
    other, job = scene.cluster.user(scene.owner), scene.talker()
    stream, whole = Open(other, path.replace("JOB", job)), Open(scene.uma, path.replace("JOB", job))
    scene.revoke(other)
    before = len(stream.got)
    scene.talk(job)
    late = stream.until_it_ends()[before:]
    assert b"second" not in late and b"CANCELED" not in late and b"end" not in late, late
    if path != "/v1/events":
        assert b"event: end" in whole.until_it_ends()  # the job had more to tell
    else:
        eventually(lambda: job.encode() in whole.got, "the events of the job")
        whole.close()


@pytest.mark.parametrize("path", STREAMS[:3])
def test_a_stream_of_a_job_ends_when_its_reader_is_taken_out_of_the_project(scene: Scene, path: str) -> None:
    """It went on until the job ended."""
    job = scene.talker()
    stream = Open(scene.vera, path.replace("JOB", job))
    try:
        scene.let_in({scene.owner: "user"})
        before = len(stream.got)
        scene.talk(job)
        late = stream.until_it_ends()[before:]
        assert b"second" not in late and b"CANCELED" not in late and b"end" not in late, late
    finally:
        scene.let_in(scene.members)


def waiting(api: Api, path: str) -> tuple[threading.Thread, list[int]]:
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(api.raw("GET", path)[0]))
    thread.start()
    return thread, statuses


@pytest.mark.parametrize("end", ["token", "member"])
def test_a_question_that_waits_is_not_answered_to_who_may_no_longer_ask(scene: Scene, end: str) -> None:
    other, job = scene.cluster.user(f"vera-{scene.mark}"), scene.talker()
    thread, statuses = waiting(other, f"/v1/jobs/{job}?wait=60")
    eventually(lambda: parked(scene.admin) > 1, "the question to wait, and the poll of the node")
    try:
        if end == "token":
            scene.revoke(other)
        else:
            scene.let_in({scene.owner: "user"})
        scene.talk(job)
        thread.join(PATIENCE)
        assert statuses == [401 if end == "token" else 404]
    finally:
        scene.let_in(scene.members)


def parked(api: Api) -> int:
    """The requests whose answers wait for something."""
    text = api.raw("GET", "/metrics")[2].decode()
    return int(next(line.split()[-1] for line in text.splitlines() if line.startswith("gpuctl_http_requests_parked ")))


def halves(api: Api, path: str, document: Any) -> Callable[[], int]:
    """Sends the head of a request and half of its body; the rest when it is called, which returns the status."""
    body = json.dumps(document).encode()
    link = http.client.HTTPConnection(api.address, timeout=PATIENCE)
    link.putrequest("POST", path)
    link.putheader("Authorization", f"Bearer {api.token}")
    link.putheader("Content-Type", "application/json")
    link.putheader("Content-Length", str(len(body)))
    link.putheader("Expect", "100-continue")  # whose answer says that the head was judged
    link.endheaders()
    assert link.sock is not None
    continued = link.sock.recv(100)
    assert continued.startswith(b"HTTP/1.1 100 "), continued
    link.sock.sendall(body[:5])

    def rest() -> int:
        assert link.sock is not None
        link.sock.sendall(body[5:])
        status = int(link.sock.recv(100).split()[1])
        link.close()
        return status

    return rest


@pytest.mark.parametrize(("end", "status"), [("nothing", 201), ("token", 401), ("role", 403), ("member", 403)])
def test_a_request_that_was_begun_in_time_is_judged_by_what_holds_when_it_is_whole(scene: Scene, end: str, status: int) -> None:
    """The token was looked at before the body, which its sender may send as slowly as the controller's patience allows."""
    api = scene.cluster.user(scene.owner)
    rest = halves(api, "/v1/jobs", {"command": ["true"], "gpus": 1, "hold": True, "project": scene.project, "name": "late"})
    try:
        if end == "token":
            scene.revoke(api)
        elif end != "nothing":
            scene.let_in({f"vera-{scene.mark}": "viewer"} | ({scene.owner: "viewer"} if end == "role" else {}))
        assert rest() == status
    finally:
        scene.let_in(scene.members)
    left = scene.admin.get("/v1/jobs?name=late&state=HELD")["jobs"]
    assert len(left) == (1 if end == "nothing" else 0)
    for job in left:
        scene.admin.post(f"/v1/jobs/{job['id']}/cancel")


def test_nothing_is_taken_from_a_token_after_the_answer_that_revokes_it(scene: Scene) -> None:
    """Eight connections submit as fast as they can while it is revoked."""
    api, revoked, late = scene.cluster.user("bert"), threading.Event(), []

    def submits() -> None:
        link = api.connection(PATIENCE)
        body = json.dumps({"command": ["true"], "gpus": 1, "hold": True, "name": "race"})
        headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
        while True:
            after = revoked.is_set()
            link.request("POST", "/v1/jobs", body, headers)
            reply = link.getresponse()
            reply.read()
            if after and reply.status != 401:
                late.append(reply.status)
            if after or reply.status == 401:
                break
        link.close()

    threads = [threading.Thread(target=submits) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(scene.admin.get("/v1/jobs?name=race&limit=10")["jobs"]) == 10, "submissions")
    scene.revoke(api)
    revoked.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert late == []
    while jobs := scene.admin.get("/v1/jobs?name=race&state=HELD&limit=200")["jobs"]:
        for job in jobs:
            scene.admin.post(f"/v1/jobs/{job['id']}/cancel")
