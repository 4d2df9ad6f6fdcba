# SPDX-License-Identifier: Apache-2.0
"""A node whose credential was stolen: it says what it likes, and nothing of another node changes.

Two nodes of paper have tokens of their own. A job of uma's is on `good`, one of eve's on `evil`, and evil is hers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually
from paper_node import PaperNode, registration

#: What moves by itself.
MOVING = {"beat_age_s"}


class Fight:
    """The two nodes, what is on them, and how all that is good's looks."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.uma, self.eve = cluster.user("uma"), cluster.user("eve")
        self.good, self.evil = (PaperNode(cluster, name, 2, [name] * 2, cluster.own_node_token(name)) for name in ("good", "evil"))
        self.secret = b"weights of uma" * 9000
        assert self.uma.raw("PUT", f"/v1/blobs/{self.sha()}", self.secret)[0] == 201
        self.theirs = self.uma.submit(["true"], gpu_type="good", files=[{"path": "w", "blob": self.sha()}])
        self.mine = self.eve.submit(["true"], gpu_type="evil")
        self.staged = self.stage(self.good)
        self.epoch, self.own = self.begun(self.good), self.begun(self.evil)
        for job in (self.theirs, self.mine):
            cluster.wait_state(job, "RUNNING")

    def sha(self) -> str:
        return hashlib.sha256(self.secret).hexdigest()

    def stage(self, node: PaperNode) -> str:
        """Files are fetched ahead."""
        reply = node.until(lambda reply: reply["stagings"] or reply["orders"], "to have something to do")
        for staging in reply["stagings"]:
            node.say(staging["key"], "ready")
        return str(reply["stagings"][0]["key"]) if reply["stagings"] else ""

    def begun(self, node: PaperNode) -> int:
        epoch = int(node.until(lambda reply: reply["orders"], "to be told to run")["orders"][0]["epoch"])
        node.api.post("/v1/agent/report", {**node.who(), "epoch": epoch, "kind": "running"})
        return epoch

    def close(self) -> None:
        for node in (self.good, self.evil):
            node.close()
            self.cluster.api.post(f"/v1/nodes/{node.name}/fence", {"assert_dead": True})

    def tell(self, route: str, message: Any, node: str = "evil") -> tuple[int, Any]:
        """What evil's credential says, as itself unless another name is given."""
        known = {"node": node, "boot_id": f"boot-of-{node}"} if route not in ("register", "token") else {}
        body = message if isinstance(message, bytes) else json.dumps({**known, **message}).encode()
        status, _, reply = self.evil.api.raw("POST", f"/v1/agent/{route}", body, {"Content-Type": "application/json"})
        return status, json.loads(reply)

    def log(self, epoch: int, **more: Any) -> tuple[int, Any]:
        query = {"node": "evil", "epoch": epoch, "rank": 0, "stream": "stdout", "offset": 0, **more}
        path = "/v1/agent/logs?" + "&".join(f"{name}={value}" for name, value in query.items())
        status, _, reply = self.evil.api.raw("POST", path, b"forged", {"Content-Type": "application/octet-stream"})
        return status, json.loads(reply)

    def of_good(self) -> dict[str, Any]:
        """All that others see of the node and its job."""
        api, job = self.cluster.api, f"/v1/jobs/{self.theirs}"
        node = {name: value for name, value in api.get("/v1/nodes/good").items() if name not in MOVING}
        parts = ("", "/events", "/attempts", "/results", "/metrics", "/timing")
        return {"node": node, "log": api.log(self.theirs), **{part: api.get(job + part) for part in parts}}

    def refusals(self) -> int:
        """Of evil, in the audit."""
        rows = self.cluster.api.get("/v1/audit?owner=evil&limit=200")["audit"]
        return len([row for row in rows if row["status"] == 403])

    def wait_refusals(self, number: int) -> None:
        eventually(lambda: self.refusals() >= number, f"{number} refusals in the audit")


@pytest.fixture
def fight(make_cluster: Callable[..., Cluster]) -> Iterator[Fight]:
    made = Fight(make_cluster())
    yield made
    made.close()


def rank(number: int) -> dict[str, Any]:
    return {"rank": number, "code": 0, "at_ms": 1}


def result(content: bytes, **more: Any) -> dict[str, Any]:
    return {"rank": 0, "kind": "value", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content), **more}


FORGED = base64.b64encode(b"forged").decode()
TAIL = {"rank": 0, "stream": "stdout", "offset": 0, "base64": FORGED}


def test_what_a_node_says_of_an_attempt_of_another_node_is_refused(fight: Fight) -> None:
    before = fight.of_good()
    for kind in ("prepared", "declined", "running", "failed", "exited"):
        status, told = fight.tell("report", {"epoch": fight.epoch, "kind": kind, "cause": "RANK_FAILED", "ranks": [rank(0)]})
        assert (status, told["code"]) == (409, "fenced"), (kind, told)
    ended = {"epoch": fight.epoch, "kind": "exited", "ranks": [rank(0)]}
    status, told = fight.tell("report", {**ended, "results": [result(b"f", base64="Zg==")]})
    assert (status, told["code"]) == (409, "fenced")
    status, told = fight.tell("report", {**ended, "tails": [TAIL]})
    assert (status, told["code"]) == (403, "forbidden")
    for stream in ("stdout", "stderr", "metrics"):
        assert fight.log(fight.epoch, stream=stream)[0] == 403
    for use in ({}, {"gpus": [{"index": 0, "util": 99}]}):
        lives = {"attempts": [{"epoch": fight.epoch, "state": "RUNNING"}], "samples": [{"epoch": fight.epoch, **use}]}
        status, told = fight.tell("beat", {"seq": 9, **lives})
        assert status == 422 or told == {"fenced": [fight.epoch]}, told
    assert fight.tell("staging", {"key": fight.staged or "k" * 16, "state": "failed", "text": "forged"})[0] in (200, 404, 409, 422)
    assert fight.of_good() == before
    fight.wait_refusals(4)  # of each output


def test_a_node_speaks_under_no_name_but_its_own_and_that_is_audited(fight: Fight) -> None:
    before = fight.of_good()
    messages: list[tuple[str, dict[str, Any]]] = [
        ("register", registration("good", "boot-of-good", ["good"] * 2)),
        ("register", registration("good", "another-boot", [])),
        ("poll", {"version": 0}),
        ("beat", {"seq": 99, "attempts": []}),
        ("report", {"epoch": fight.epoch, "kind": "failed", "cause": "RANK_FAILED"}),
        ("report", {"epoch": fight.epoch, "kind": "exited", "ranks": [rank(0)], "flushed": True}),
        ("staging", {"key": "k", "state": "failed"}),
        ("token", {"node": "good", "secret_sha256": "0" * 64}),
        ("journal", {"entries": []}),
    ]  # fmt: skip
    for number, (route, message) in enumerate(messages, 1):
        status, told = fight.tell(route, message, node="good")
        assert (status, told["code"], told["field"]) == (403, "forbidden", "node"), (route, told)
        fight.wait_refusals(number)
    assert fight.log(fight.epoch, node="good")[0] == 403
    status, _, reply = fight.evil.api.raw("POST", f"/v1/agent/logs?epoch={fight.epoch}&rank=0&stream=stdout&offset=0", b"forged")
    assert status == 403, reply
    assert fight.of_good() == before


def test_a_node_has_the_bytes_of_its_own_orders_and_can_hand_on_no_others(fight: Fight) -> None:
    """It named an upload of another as the result of a job of eve's, who then read it: results are their job's owner's."""
    for method in ("GET", "HEAD"):
        assert fight.evil.api.raw(method, f"/v1/blobs/{fight.sha()}")[0] == 404
    assert fight.good.api.raw("GET", f"/v1/blobs/{fight.sha()}")[2] == fight.secret
    told = [fight.tell("report", {"epoch": fight.own, "kind": "exited", "ranks": [rank(0)], "results": [each]})
            for each in (result(fight.secret), {**result(fight.secret), "sha256": "0" * 64})]  # fmt: skip
    assert told[0] == told[1], "whether somebody has these bytes is told"
    assert (told[0][0], told[0][1]["field"]) == (422, "results[0].sha256")
    assert fight.eve.raw("GET", f"/v1/blobs/{fight.sha()}")[0] == 404
    assert fight.eve.get(f"/v1/jobs/{fight.mine}/results")["results"] == []
    sent = b"a result of its own" * 9000
    assert fight.evil.api.raw("PUT", f"/v1/blobs/{hashlib.sha256(sent).hexdigest()}", sent)[0] == 201
    fight.cluster.controller.kill()  # what it has sent is remembered
    fight.cluster.start_controller()
    for one in (fight.evil.api, fight.eve):
        one.address = fight.cluster.api.address
    eventually(lambda: fight.tell("poll", {"version": 0})[0] == 200, "evil to be known again")
    ended = {"epoch": fight.own, "kind": "exited", "ranks": [rank(0)], "flushed": True}
    status, said = fight.tell("report", {**ended, "results": [result(sent)]})
    assert status == 200, said
    assert fight.eve.raw("GET", f"/v1/blobs/{hashlib.sha256(sent).hexdigest()}")[2] == sent


OWN = [
    ({"ranks": [rank(1)]}, "ranks"),
    ({"ranks": [rank(0), rank(4095)]}, "ranks"),
    ({"ranks": [{**rank(0), "rank": -1}]}, "ranks[0].rank"),
    ({"ranks": [{**rank(0), "code": 256}]}, "ranks[0].code"),
    ({"ranks": [{**rank(0), "at_ms": -1}]}, "ranks[0].at_ms"),
    ({"ranks": [{**rank(0), "out_bytes": 2**63}]}, None),
    ({"ranks": [rank(0)] * 5000}, "ranks"),
    ({"ranks": {"0": rank(0)}}, "ranks"),
    ({"results": [result(b"forged", base64=FORGED, rank=0) | {"size": 7}]}, "results[0].base64"),
    ({"results": [result(b"other", base64=FORGED)]}, "results[0].base64"),
    ({"results": [result(b"forged", base64="%%%%")]}, "results[0].base64"),
    ({"results": [result(b"forged", base64=FORGED, json="{" * 200)]}, "results[0].json"),
    ({"tails": [{**TAIL, "rank": 1}]}, "rank"),
    ({"tails": [{**TAIL, "base64": "%"}]}, "tails"),
    ({"tails": [{**TAIL, "offset": -1}]}, "tails[0].offset"),
    ({"tails": [{**TAIL, "stream": "results"}]}, "tails[0].stream"),
    ({"cause": "BORED"}, "cause"),
    ({"kind": "improved"}, "kind"),
    ({"epoch": 0}, "epoch"),
    ({"epoch": -1}, "epoch"),
    ({"epoch": 1.5}, "epoch"),
    ({"epoch": "1"}, "epoch"),
    ({"boot_id": "another"}, "node"),
]  # fmt: skip


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fight]:
    """Shared by tests that change nothing."""
    cluster = Cluster(tmp_path_factory.mktemp("agents"), []).start()
    made = Fight(cluster)
    yield made
    made.close()
    cluster.stop()


@pytest.mark.parametrize(("change", "field"), OWN, ids=lambda value: json.dumps(value)[:40])
def test_nonsense_of_a_node_about_its_own_attempt_is_refused_by_its_field(own: Fight, change: dict[str, Any], field: str | None) -> None:
    before = own.cluster.api.job(own.mine)
    status, told = own.tell("report", {"epoch": own.own, "kind": "exited", "ranks": [rank(0)], "flushed": True, **change})
    assert status in (400, 404, 422), told
    assert told.get("field") == field, told
    assert own.cluster.api.job(own.mine) == before
    assert own.eve.get(f"/v1/jobs/{own.mine}/results")["results"] == []


def absurd(**change: Any) -> dict[str, Any]:
    return {**registration("evil", "boot-of-evil", ["evil"] * 2), **change}


def device(**change: Any) -> list[dict[str, Any]]:
    return [{**registration("evil", "b", ["evil"])["devices"][0], **change}]


REGISTRATIONS = [
    absurd(millicpus=-1), absurd(millicpus=2**62), absurd(memory_bytes=-1), absurd(memory_bytes=2**62), absurd(devices=device(index=-1)),
    absurd(devices=device(index=2**31)), absurd(devices=device(memory_bytes=-5)), absurd(devices=device() * 2),
    absurd(devices=device() * 5000), absurd(devices=device(type="")), absurd(devices=device(type="a\nb")),
    absurd(devices=device(type="x" * 5000)), absurd(devices=device(group=2**40)), absurd(devices=device(uuid=7)), absurd(devices="many"),
    absurd(name="../good"), absurd(name=""), absurd(name="x" * 5000), absurd(boot_id=""), absurd(boot_id="x" * 5000),
    absurd(address="a b\r\nHost: c"), absurd(pool="a/b"), absurd(labels={"a": "x" * 5000}),
    absurd(labels={str(i): "b" for i in range(5000)}), absurd(expires_at_ms=-1), absurd(expires_at_ms=2**62), absurd(protocol=0),
    absurd(isolation="total"), absurd(attempts=[{"epoch": -1, "state": "RUNNING"}]), absurd(attempts=[{"epoch": 1, "state": "HAPPY"}]),
    absurd(attempts=[{"epoch": 1, "state": "RUNNING"}] * 5000), absurd(unavailable=[{"index": -1, "reason": "x"}]),
]  # fmt: skip


@pytest.mark.parametrize("message", REGISTRATIONS, ids=range(len(REGISTRATIONS)))
def test_a_node_of_absurd_size_or_name_is_not_registered(own: Fight, message: dict[str, Any]) -> None:
    def looks() -> dict[str, Any]:
        nodes = own.cluster.api.get("/v1/nodes")["nodes"]
        return {node["name"]: {name: value for name, value in node.items() if name not in MOVING} for node in nodes}

    before = looks()
    status, told = own.tell("register", message)
    assert status in (403, 413, 422) and told.get("field"), told
    assert looks() == before


BODIES = [
    (b"{" + b" " * (4 << 20) + b"}", {413}),
    (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, {400}),
    (b"[" * 5_000, {400}),
    (b'{"node":"evil","node":"good","boot_id":"boot-of-evil","version":0}', {400}),
    (b'{"node":"evil","boot_id":"boot-of-evil","version":NaN}', {400}),
    (b'{"node":"evil","boot_id":"boot-of-evil","version":1e999}', {400}),
    (b'{"node":"evil","boot_id":"boot-of-evil","version":99999999999999999999}', {400}),
    (b'{"node":"evil\\u0000good","boot_id":"b","version":0}', {400, 403}),
    (b'{"node":"evil","boot_id":"boot-of-evil","version":0} {}', {400}),
    (b"\xff\xfe{}", {400}),
    (b"", {400, 411, 422}),
]  # fmt: skip


@pytest.mark.parametrize("route", ["register", "beat", "poll", "report", "staging", "journal"])
def test_a_message_that_is_too_large_too_deep_or_no_json_is_refused(own: Fight, route: str) -> None:
    for body, statuses in BODIES:
        status, told = own.tell(route, body)
        assert status in statuses, (body[:60], told)
    assert own.cluster.controller.alive()


def test_old_messages_change_nothing_when_they_come_again(fight: Fight) -> None:
    running = {"epoch": fight.own, "kind": "running"}
    exited = {"epoch": fight.own, "kind": "exited", "ranks": [rank(0)], "flushed": True}
    assert fight.tell("report", exited)[0] == 200
    ended = fight.cluster.api.job(fight.mine)
    assert ended["state"] == "SUCCEEDED"
    before = fight.of_good()
    worse = {**exited, "ranks": [{**rank(0), "code": 1}], "results": [result(b"forged", base64=FORGED)], "tails": [TAIL]}
    failed = {"epoch": fight.own, "kind": "failed", "cause": "RANK_FAILED"}
    for message in (running, exited, {**exited, "cause": "RANK_FAILED"}, worse, failed):
        assert fight.tell("report", message)[0] in (200, 409)
        assert fight.cluster.api.job(fight.mine) == ended
    assert fight.eve.get(f"/v1/jobs/{fight.mine}/results")["results"] == []
    fight.tell("beat", {"seq": 0, "attempts": [{"epoch": fight.own, "state": "RUNNING"}]})
    assert fight.cluster.api.job(fight.mine) == ended and fight.of_good() == before


def test_a_poll_that_waits_gets_no_orders_when_its_token_is_revoked(fight: Fight) -> None:
    """It was answered with the next orders, and the secrets in them."""
    evil, answers = fight.evil, []
    version = evil.poll()["version"]
    assert evil.api.token is not None

    def polls() -> None:
        try:
            answers.append((200, evil.poll_after(version)))
        except Problem as problem:
            answers.append((problem.status, problem.body))

    waits = threading.Thread(target=polls)
    waits.start()
    eventually(lambda: "gpuctl_http_requests_parked 1" in fight.cluster.api.raw("GET", "/metrics")[2].decode(), "the poll to wait")
    evil.over.set()
    fight.cluster.api.post(f"/v1/tokens/{evil.api.token.split('_')[1]}/revoke")
    value = uuid.uuid4().hex
    fight.eve.call("PUT", "/v1/secrets/KEY", {"value": value})
    fight.eve.submit(["true"], gpu_type="evil", secrets=["KEY"])
    waits.join(60)
    assert [status for status, _ in answers] == [401] and value not in json.dumps(answers), answers
    assert Api(fight.cluster.url, evil.api.token).raw("POST", "/v1/agent/poll", b"{}")[0] == 401
