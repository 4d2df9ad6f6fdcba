# SPDX-License-Identifier: Apache-2.0
"""Webhooks: who is told of what, signed, again until it arrives, and nobody's private addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from receiver import Receiver, signature

FAST = ["--webhook-networks", "127.0.0.0/8", "--webhook-pause", "10ms", "--public-url", "https://gpu.example.com"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that may tell receivers on the loopback, and tries again soon."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), [4], controller=FAST).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def hook(api: Api, url: str, **more: Any) -> Any:
    return api.post("/v1/webhooks", {"url": url, **more})


def deliveries(api: Api, webhook: str, query: str = "") -> list[Any]:
    found: list[Any] = api.get(f"/v1/webhooks/{webhook}/deliveries{query}")["deliveries"]
    return found


def refusal(call: Callable[[], Any]) -> Problem:
    with pytest.raises(Problem) as caught:
        call()
    return caught.value


def test_an_end_is_told_once_and_signed(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = hook(ann, receiver.url)
    told.open_project("vision")
    job = ann.submit(["sh", "-c", "exit 7"], name="train", project="vision")
    eventually(lambda: receiver.got, "the delivery")
    headers, body = receiver.got[0]
    assert headers["webhook-signature"] == signature(made["secret"], headers["webhook-id"], headers["webhook-timestamp"], body)
    assert headers["content-type"] == "application/json"
    (document,) = receiver.documents()
    assert document["id"] == headers["webhook-id"]
    (event,) = [event for event in ann.get(f"/v1/jobs/{job}/events")["events"] if event["kind"] == "failed"]
    assert document["event"] == event
    shown = document["job"]
    assert (shown["id"], shown["name"], shown["owner"], shown["project"]) == (job, "train", "ann", "vision")
    assert (shown["state"], shown["exit_code"], shown["failed_rank"]) == ("FAILED", 7, 0)
    assert shown["url"] == f"https://gpu.example.com/#/jobs/{job}"
    eventually(lambda: deliveries(ann, made["id"], "?state=DELIVERED"), "the outcome")
    (delivery,) = deliveries(ann, made["id"])
    assert (delivery["job_id"], delivery["event"], delivery["status"], delivery["tries"]) == (job, "failed", 204, 1)
    shown = ann.get(f"/v1/webhooks/{made['id']}")
    assert (shown["last_delivery"], shown["failures"]) == (delivery, 0) and ann.get("/v1/webhooks")["webhooks"] == [shown]
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_each_is_told_of_what_it_wants_alone(told: Cluster) -> None:
    ann, bob = told.user("ann"), told.user("bob")
    told.open_project("vision")
    receivers = {name: Receiver() for name in ("own", "project", "all", "bobs", "tasks")}
    try:
        hooks = [
            (ann, hook(ann, receivers["own"].url, events=["running", "succeeded"])),
            (ann, hook(ann, receivers["project"].url, project="vision")),
            (told.api, hook(told.api, receivers["all"].url, scope="all")),
            (bob, hook(bob, receivers["bobs"].url)),
            (ann, hook(ann, receivers["tasks"].url, tasks=True)),
        ]
        plain = ann.submit(["true"])
        vision = ann.submit(["true"], project="vision")
        array = ann.submit(["true"], array={"tasks": 2})
        for job in (plain, vision, array):
            assert told.api.wait(job)["state"] == "SUCCEEDED"
        eventually(lambda: not told.api.get("/v1/webhooks?limit=1") or all(
            not deliveries(api, made["id"], "?state=PENDING") for api, made in hooks), "all deliveries")  # fmt: skip
        assert receivers["own"].kinds(plain) == ["running", "succeeded"]
        assert receivers["own"].kinds(array) == ["succeeded"] or "running" in receivers["own"].kinds(array)
        assert {d["event"]["job_id"] for d in receivers["project"].documents()} == {vision}
        assert sorted(d["event"]["job_id"] for d in receivers["all"].documents()) == sorted([plain, vision, array])
        assert receivers["bobs"].got == []
        assert len(receivers["tasks"].got) == 5
        for api, made in hooks:
            api.call("DELETE", f"/v1/webhooks/{made['id']}")
    finally:
        for receiver in receivers.values():
            receiver.close()


def test_a_failed_try_is_repeated_with_the_same_id_and_events_of_a_job_stay_in_order(told: Cluster) -> None:
    ann = told.user("ann")
    statuses = iter([500, 302, 503])
    receiver = Receiver(lambda document: next(statuses, 200))
    made = hook(ann, receiver.url, events=["submitted", "placed", "running", "succeeded"])
    job = ann.submit(["true"])
    eventually(lambda: len(deliveries(ann, made["id"], "?state=DELIVERED")) == 4, "the deliveries")
    assert receiver.kinds(job) == ["submitted"] * 4 + ["placed", "running", "succeeded"]
    assert len({headers["webhook-id"] for headers, _ in receiver.got[:4]}) == 1
    assert ann.get(f"/v1/webhooks/{made['id']}")["failing_since"] is None
    receiver.close()
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_a_receiver_that_is_gone_disables_the_webhook_and_it_can_be_enabled_and_replayed(told: Cluster) -> None:
    ann = told.user("ann")
    receiver = Receiver(lambda document: 410)
    made = hook(ann, receiver.url)
    path = f"/v1/webhooks/{made['id']}"
    job = ann.submit(["true"])
    eventually(lambda: not ann.get(path)["enabled"], "the end of the webhook")
    assert "410" in ann.get(path)["reason"]
    ann.wait(ann.submit(["true"]))
    (delivery,) = deliveries(ann, made["id"])
    assert (delivery["state"], delivery["status"]) == ("FAILED", 410)
    assert refusal(lambda: ann.post(f"{path}/replay", {})).status == 409
    assert refusal(lambda: ann.post(f"{path}/test")).status == 409
    receiver.answer = lambda document: 200
    assert ann.call("PATCH", path, {"enabled": True})["reason"] is None
    assert ann.post(f"{path}/replay", {}) == {"replayed": 1, "more": False}
    eventually(lambda: deliveries(ann, made["id"], "?state=DELIVERED"), "the replayed delivery")
    assert receiver.kinds(job) == ["succeeded"] * 2
    assert ann.post(f"{path}/replay", {"deliveries": [delivery["id"]]})["replayed"] == 1
    eventually(lambda: len(receiver.got) == 3, "the delivery that was named")
    receiver.close()
    ann.call("DELETE", path)


def test_deliveries_are_given_up_after_their_tries_and_a_long_silence_disables(told: Cluster) -> None:
    ann = told.user("ann")
    receiver = Receiver()
    receiver.close()  # nobody answers
    made = hook(ann, receiver.url)
    ann.submit(["true"])
    eventually(lambda: (deliveries(ann, made["id"])[0:] or [{"tries": 0}])[0]["tries"] >= 3, "some tries")
    (delivery,) = deliveries(ann, made["id"])
    assert (delivery["state"], delivery["status"]) == ("PENDING", None)
    assert "connect" in delivery["error"].lower()
    assert ann.get(f"/v1/webhooks/{made['id']}")["failing_since"] is not None
    assert ann.call("PATCH", f"/v1/webhooks/{made['id']}", {"enabled": False})["enabled"] is False
    (delivery,) = deliveries(ann, made["id"])
    assert (delivery["state"], delivery["error"]) == ("FAILED", "given up: the webhook was disabled")
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_failures_in_a_row_are_counted_until_a_delivery_arrives(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    receiver.answer = lambda document: 503
    made = hook(ann, receiver.url)
    path = f"/v1/webhooks/{made['id']}"
    assert ann.get(path)["last_delivery"] is None and ann.get(path)["failures"] == 0
    for count in range(1, 4):
        delivery = ann.post(f"{path}/test")["delivery"]
        eventually(lambda count=count: ann.get(path)["failures"] == count, f"{count} failures")
        last = ann.get(path)["last_delivery"]
        assert (last["id"], last["state"], last["status"]) == (delivery, "PENDING", 503)
    receiver.answer = lambda document: 200
    eventually(lambda: ann.get(path)["failures"] == 0, "the deliveries to arrive")
    eventually(lambda: ann.get(path)["last_delivery"]["state"] == "DELIVERED", "the newest one")
    ann.call("DELETE", path)


def test_a_receiver_that_does_not_answer_is_tried_again(told: Cluster) -> None:
    ann = told.user("ann")
    go = threading.Event()
    slow = Receiver(lambda document: 200 if len(slow.got) > 1 else 200 * (go.wait(60) or 1))
    made = hook(ann, slow.url)
    ann.post(f"/v1/webhooks/{made['id']}/test")
    (delivery,) = eventually(lambda: deliveries(ann, made["id"], "?state=DELIVERED"), "the second try")
    assert (delivery["tries"], delivery["status"]) == (2, 200)
    go.set()
    slow.close()
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_the_delivery_of_a_job_that_was_removed_is_given_up(told: Cluster) -> None:
    ann = told.user("ann")
    receiver = Receiver(lambda document: 500)
    made = hook(ann, receiver.url)
    job = ann.submit(["true"])
    eventually(lambda: receiver.got, "a try")
    ann.call("DELETE", f"/v1/jobs/{job}")
    (delivery,) = eventually(lambda: deliveries(ann, made["id"], "?state=FAILED"), "the end of the delivery")
    assert (delivery["job_id"], delivery["error"]) == (None, "given up: the job was removed")
    assert ann.get(f"/v1/webhooks/{made['id']}")["enabled"]
    receiver.close()
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_a_test_is_sent_at_once(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = hook(ann, receiver.url, name="slack")
    delivery = ann.post(f"/v1/webhooks/{made['id']}/test")["delivery"]
    eventually(lambda: receiver.got, "the test")
    (document,) = receiver.documents()
    assert (document["id"], document["event"]["kind"], document["job"]) == (f"msg_{delivery}", "test", None)
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_a_slow_receiver_holds_up_nobody_else(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    go = threading.Event()
    slow = Receiver(lambda document: 200 if go.wait(60) else 500)
    hooks = [hook(ann, slow.url), hook(ann, receiver.url)]
    jobs = [ann.submit(["true"]) for _ in range(3)]
    eventually(lambda: len(receiver.got) == 3, "the deliveries of the other")
    assert len(slow.got) == 1  # one at a time
    go.set()
    eventually(lambda: len(slow.got) == 3, "the deliveries of the slow one")
    assert sorted(d["event"]["job_id"] for d in slow.documents()) == sorted(jobs)
    slow.close()
    for made in hooks:
        ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_a_job_may_name_who_is_told_of_it(told: Cluster, receiver: Receiver) -> None:
    ann, bob = told.user("ann"), told.user("bob")
    made = hook(ann, receiver.url, name="chat", scope="named", tasks=True)
    ann.wait(ann.submit(["true"]))
    jobs = [ann.submit(["true"], notify=["chat"]), ann.submit(["true"], notify=[made["id"]])]
    array = ann.submit(["true"], notify=["chat"], array={"tasks": 2})
    ann.wait(array)
    eventually(lambda: len(receiver.got) == 5, "the deliveries")
    assert {*jobs, array} < {d["event"]["job_id"] for d in receiver.documents()}
    for api, notify in (
        (bob, ["chat"]),
        (bob, [made["id"]]),
        (ann, ["other"]),
        (ann, "chat"),
        (ann, [1]),
        (ann, ["a b"]),
        (ann, ["chat"] * 9),
    ):
        problem = refusal(lambda api=api, notify=notify: api.submit(["true"], notify=notify))
        assert (problem.status, problem.body["field"]) == (422, "notify")
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_a_held_job_names_its_webhook_also_after_a_restart(make_cluster: Callable[..., Cluster], receiver: Receiver) -> None:
    cluster = make_cluster(1, controller=FAST)
    hook(cluster.api, receiver.url, name="chat", scope="named")
    job = cluster.api.submit(["true"], notify=["chat"], hold=True)
    cluster.controller.kill()
    cluster.start_controller()
    cluster.api.post(f"/v1/jobs/{job}/release")
    eventually(lambda: receiver.kinds(job), "the delivery")
    assert receiver.kinds(job) == ["succeeded"]


def test_gpuctl_makes_shows_changes_and_removes_webhooks(told: Cluster, receiver: Receiver) -> None:
    settings = {"GPUCTL_URL": told.url, "GPUCTL_TOKEN_FILE": str(told.folder / "controller" / "admin.token")}

    def gpuctl(*arguments: str, code: int = 0) -> str:
        done = run_gpuctl(*arguments, env=settings)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    assert gpuctl("webhooks", "create", receiver.url, "--name", "chat", "--events", "failed,succeeded", "--of", "named").startswith(
        "whsec_"
    )
    assert gpuctl("webhooks", "list").splitlines()[1].split()[1:6] == ["chat", "ok", "named", "-", "failed"]
    job = gpuctl("submit", "--notify", "chat", "--", "true").strip()
    eventually(lambda: receiver.kinds(job), "the delivery")
    gpuctl("webhooks", "test", "chat")
    eventually(lambda: len(receiver.got) == 2, "the test")
    eventually(lambda: "PENDING" not in gpuctl("webhooks", "deliveries", "chat"), "the outcomes")
    assert [line.split()[-4:] for line in gpuctl("webhooks", "deliveries", "chat", "--state", "DELIVERED").splitlines()[1:]] == [
        ["test", "DELIVERED", "1", "204"],
        ["succeeded", "DELIVERED", "1", "204"],
    ]
    (first, _) = gpuctl("webhooks", "deliveries", "chat", "--quiet").splitlines()
    gpuctl("webhooks", "replay", "chat", first)
    eventually(lambda: len(receiver.got) == 3, "the replay")
    assert "disabled" in gpuctl("webhooks", "update", "chat", "--disable")
    assert "ok" in gpuctl("webhooks", "update", "chat", "--enable", "--tasks")
    assert receiver.url in gpuctl("webhooks", "show", "chat")
    gpuctl("webhooks", "remove", "chat")
    assert "no webhook" in gpuctl("webhooks", "show", "chat", code=3)
    assert "url" in gpuctl("webhooks", "create", "ftp://x", code=2).lower()


def test_webhooks_of_others_do_not_exist(told: Cluster, receiver: Receiver) -> None:
    ann, bob = told.user("ann"), told.user("bob")
    made = hook(ann, receiver.url, name="mine")
    path = f"/v1/webhooks/{made['id']}"
    ann.post(f"{path}/test")
    eventually(lambda: deliveries(ann, made["id"], "?state=DELIVERED"), "the test")
    (delivery,) = deliveries(ann, made["id"])
    theirs = hook(bob, receiver.url)
    for call in (
        lambda: bob.get(path),
        lambda: bob.call("PATCH", path, {"enabled": False}),
        lambda: bob.call("DELETE", path),
        lambda: bob.post(f"{path}/test"),
        lambda: bob.get(f"{path}/deliveries"),
        lambda: bob.post(f"{path}/replay", {}),
        lambda: bob.post(f"/v1/webhooks/{theirs['id']}/replay", {"deliveries": [delivery["id"]]}),
    ):
        assert refusal(call).status == 404
    assert [row["id"] for row in bob.get("/v1/webhooks")["webhooks"]] == [theirs["id"]]
    everything = {row["id"] for row in told.api.get("/v1/webhooks")["webhooks"]}
    assert {made["id"], theirs["id"]} <= everything
    assert "secret" not in ann.get(path)
    assert refusal(lambda: hook(ann, receiver.url, name="mine")).status == 409
    assert refusal(lambda: hook(bob, receiver.url, scope="all")).status == 403
    for api, row in ((ann, made), (bob, theirs)):
        api.call("DELETE", f"/v1/webhooks/{row['id']}")


def test_bad_webhooks_are_refused_by_field(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    for document, field in (
        ({}, "url"),
        ({"url": 3}, "url"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "no url"}, "url"),
        ({"url": "https://example.com/" + "x" * 3000}, "url"),
        ({"url": "http://10.0.0.1/"}, "url"),
        ({"url": "http://[::1]/"}, "url"),
        ({"url": "http://[::ffff:169.254.169.254]/latest"}, "url"),
        ({"url": receiver.url, "scope": "some"}, "scope"),
        ({"url": receiver.url, "events": []}, "events"),
        ({"url": receiver.url, "events": ["ended"]}, "events"),
        ({"url": receiver.url, "name": "a b"}, "name"),
        ({"url": receiver.url, "project": "/"}, "project"),
        ({"url": receiver.url, "tasks": 1}, "tasks"),
    ):
        problem = refusal(lambda document=document: ann.post("/v1/webhooks", document))
        assert problem.status in (400, 422), document
        assert problem.body["field"] == field, (document, problem.body)
    for _ in range(20):
        hook(ann, receiver.url)
    assert refusal(lambda: hook(ann, receiver.url)).status == 409
    for row in ann.get("/v1/webhooks")["webhooks"]:
        ann.call("DELETE", f"/v1/webhooks/{row['id']}")


def test_credentials_of_a_url_are_not_shown(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = hook(ann, receiver.url.replace("//", "//me:hush@"))
    assert made["url"] == receiver.url.replace("//", "//***@")
    ann.post(f"/v1/webhooks/{made['id']}/test")
    eventually(lambda: receiver.got, "the test")
    assert receiver.got[0][0]["authorization"].startswith("Basic ")
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")


def test_private_addresses_are_refused_also_behind_a_name(make_cluster: Callable[..., Cluster], receiver: Receiver) -> None:
    cluster = make_cluster(1, controller=["--webhook-pause", "10ms"])
    assert refusal(lambda: hook(cluster.api, receiver.url)).status in (400, 422)
    made = hook(cluster.api, receiver.url.replace("127.0.0.1", "localhost"))
    cluster.api.post(f"/v1/webhooks/{made['id']}/test")
    eventually(lambda: deliveries(cluster.api, made["id"])[0]["tries"] > 0, "a try")
    assert "private" in deliveries(cluster.api, made["id"])[0]["error"]
    assert receiver.got == []


def test_metrics_count_what_became_of_tries(told: Cluster, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = hook(ann, receiver.url)

    def count(name: str) -> float:
        _, _, body = told.api.raw("GET", "/metrics")
        return next(float(line.split()[-1]) for line in body.decode().splitlines() if line.startswith(name))

    before = count('gpuctl_webhook_tries_total{outcome="delivered"}')
    ann.post(f"/v1/webhooks/{made['id']}/test")
    eventually(lambda: count('gpuctl_webhook_tries_total{outcome="delivered"}') == before + 1, "the count")
    eventually(lambda: count("gpuctl_webhook_deliveries_pending") == 0, "the outcome to be stored")
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")
