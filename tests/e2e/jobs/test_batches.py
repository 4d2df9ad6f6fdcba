# SPDX-License-Identifier: Apache-2.0
"""Many jobs in one request: each spec has its answer, all of them are on disk together, and a repetition makes no second job."""

from __future__ import annotations

import concurrent.futures
import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, Api, Cluster, run_gpuctl

PATH = "/v1/jobs:batch"
TRUE: dict[str, Any] = {"command": ["true"], "gpus": 1}
HELD = {**TRUE, "hold": True}
MIXED: list[Any] = [
    {**HELD, "name": "first"},
    {**TRUE, "gpus": -1},
    {**TRUE, "comand": ["x"]},
    [],
    {**HELD, "name": "second"},
    {**TRUE, "gpus": 1000},
]
OUTCOMES = [
    (201, None, None),
    (422, "invalid_field", "gpus"),
    (422, "unknown_field", "comand"),
    (400, "malformed_request", None),
    (201, None, None),
    (422, "not_enough_gpus", "gpus"),
]
FORMS = {"application/json": lambda specs: json.dumps(specs), "application/x-ndjson": lambda specs: "\n".join(map(json.dumps, specs))}


def send(api: Api, body: str | bytes, kind: str = "application/json", key: str | None = None) -> tuple[int, dict[str, str], Any]:
    headers = {"Content-Type": kind} | ({"Idempotency-Key": key} if key else {})
    status, replied, answer = api.raw("POST", PATH, body.encode() if isinstance(body, str) else body, headers)
    return status, replied, json.loads(answer)


def batch(api: Api, specs: list[Any], key: str | None = None) -> list[Any]:
    status, _, answer = send(api, json.dumps(specs), key=key)
    assert status == 200, answer
    assert len(answer["jobs"]) == len(specs)
    parts: list[Any] = answer["jobs"]
    return parts


def outcome(part: Any) -> tuple[int, str | None, str | None]:
    assert ("job" in part) != ("error" in part)
    error = part.get("error", {})
    if error:
        assert error["detail"] and error["status"] == part["status"]
    return part["status"], error.get("code"), error.get("field")


def names(api: Api) -> list[str]:
    """Of all jobs."""
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = api.get(f"/v1/jobs?limit=200{cursor and '&cursor=' + cursor}")
        found += [job["name"] for job in page["jobs"]]
        cursor = page["next"]
    return found


@pytest.mark.parametrize("kind", FORMS)
def test_each_spec_has_its_answer_in_order_and_a_bad_one_stops_none(cluster: Cluster, kind: str) -> None:
    status, _, answer = send(cluster.api, FORMS[kind](MIXED), kind)
    assert status == 200
    assert [outcome(part) for part in answer["jobs"]] == OUTCOMES
    for part, spec in zip(answer["jobs"], MIXED, strict=True):
        if part["status"] == 201:
            job = cluster.api.job(part["job"]["id"])
            assert (job["name"], job["state"], job["spec"]) == (spec["name"], part["job"]["state"], spec)


def test_lines_that_are_no_json_are_refused_alone(cluster: Cluster) -> None:
    line = json.dumps(HELD)
    body = f'\n{line}\r\n{{"gpus": 1,\n\n  \n{line}}}\n{{"command": ["\\u0000"]}}\n{line}'
    status, _, answer = send(cluster.api, body, "application/x-ndjson")
    assert status == 200
    assert [part["status"] for part in answer["jobs"]] == [201, 400, 400, 400, 201]
    status, _, answer = send(cluster.api, f'[{line}, {{"command": nonsense}}, "}}", {line}]')
    assert [part["status"] for part in answer["jobs"]] == [201, 400, 400, 201]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("", "application/json", 400),
        ("", "application/x-ndjson", 400),
        ("\n \n", "application/x-ndjson", 400),
        ("[]", "application/json", 400),
        (json.dumps(HELD), "application/json", 400),
        (f"[{json.dumps(HELD)}", "application/json", 400),
        (f"[{json.dumps(HELD)}]]", "application/json", 400),
        (f"[{json.dumps(HELD)} {json.dumps(HELD)}]", "application/json", 200),  # one spec, which is none
        (f"[{json.dumps(HELD)}] x", "application/json", 400),
        (f'[{json.dumps(HELD)}, "]', "application/json", 400),
        (json.dumps([HELD] * 1001), "application/json", 413),
        (json.dumps([{**HELD, "name": "x" * 4000}] * 1050), "application/json", 413),
        (json.dumps([HELD]), "text/plain", 415),
    ],
)
def test_a_batch_that_is_none_makes_no_job(cluster: Cluster, body: str, kind: str, status: int) -> None:
    before = len(names(cluster.api))
    got, _, answer = send(cluster.api, body, kind)
    assert got == status, answer
    assert answer.get("detail") or [part["status"] for part in answer["jobs"]] == [400]
    assert len(names(cluster.api)) == before


def test_the_largest_batch_is_taken(cluster: Cluster) -> None:
    parts = batch(cluster.api, [{**HELD, "name": f"largest-{i}", "env": {"X": "x" * 3900}} for i in range(1000)])
    assert {part["status"] for part in parts} == {201}
    assert len({part["job"]["id"] for part in parts}) == 1000
    for part in parts:
        cluster.api.post(f"/v1/jobs/{part['job']['id']}/cancel")


def test_nobody_submits_without_a_token(cluster: Cluster) -> None:
    for token in (None, "wrong"):
        status, _, answer = send(Api(cluster.url, token), json.dumps([HELD] * 100))
        assert (status, answer["code"]) == (401, "unauthenticated")


def test_jobs_are_their_senders_and_within_its_limits(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/tiny", {"max_gpus": {"*": 1}})
    anna, bert = cluster.user("anna"), cluster.user("bert")
    parts = batch(anna, [{**HELD, "project": "tiny"}, {**HELD, "gpus": 2, "project": "tiny"}, {**HELD, "gpus": 2}])
    assert [outcome(part) for part in parts] == [(201, None, None), (422, "over_limit", "gpus"), (201, None, None)]
    assert anna.job(parts[0]["job"]["id"])["owner"] == "anna"
    assert bert.raw("GET", f"/v1/jobs/{parts[0]['job']['id']}")[0] == 404
    after = [{**TRUE, "after": [{"job": parts[0]["job"]["id"], "when": "afterok"}]}]
    assert batch(anna, after)[0]["job"]["state"] == "BLOCKED"
    assert outcome(batch(bert, after)[0])[:2] == (422, "invalid_field")


def test_jobs_of_a_batch_run(cluster: Cluster) -> None:
    parts = batch(cluster.api, [{"command": ["sh", "-c", f"exit {code}"], "gpus": 1} for code in range(5)])
    assert [cluster.api.wait(part["job"]["id"])["exit_code"] for part in parts] == [0, 1, 2, 3, 4]


def test_a_key_makes_each_job_once_and_answers_as_before(cluster: Cluster) -> None:
    key = uuid.uuid4().hex
    specs = [{**HELD, "name": f"once-{key[:8]}-{i}"} for i in range(3)] + [{**TRUE, "gpus": -1}]
    first = send(cluster.api, json.dumps(specs), key=key)
    again = send(cluster.api, json.dumps(specs), key=key)
    assert (first[0], again[0], again[2]) == (200, 200, first[2])
    assert "idempotency-replayed" not in first[1] and again[1]["idempotency-replayed"] == "true"
    other = send(cluster.api, json.dumps(specs[:1]), key=key)
    assert (other[0], other[2]["code"]) == (409, "idempotency_mismatch")
    assert cluster.api.post("/v1/jobs", HELD, Idempotency_Key=key)["id"]  # a key belongs to its path
    refused = send(cluster.api, json.dumps(specs), key="x" * 129)
    assert (refused[0], refused[2]["field"]) == (422, "Idempotency-Key")
    assert sorted(name for name in names(cluster.api) if name and name.startswith(f"once-{key[:8]}")) == [
        spec["name"] for spec in specs[:3]
    ]


def test_a_batch_is_there_as_a_whole_or_not_at_all_when_the_controller_is_killed(cluster: Cluster) -> None:
    """Killed again and again while batches are under way, at a moment that depends on how many are answered already."""
    size = 200
    for answered in (0, 1, 3):
        keys = [uuid.uuid4().hex for _ in range(8)]
        bodies = {key: json.dumps([{**HELD, "name": f"{key[:12]}-{i}"} for i in range(size)]) for key in keys}

        def tried(key: str, bodies: dict[str, str] = bodies) -> Any:
            try:
                return send(cluster.api, bodies[key], key=key)
            except OSError:
                return None
            except Exception as error:  # the connection was cut in the middle of an answer
                assert "IncompleteRead" in repr(error) or "Disconnected" in repr(error) or "BadStatus" in repr(error), error
                return None

        with concurrent.futures.ThreadPoolExecutor(len(keys)) as pool:
            tries = {key: pool.submit(tried, key) for key in keys}
            for _ in zip(range(answered), concurrent.futures.as_completed(tries.values(), PATIENCE), strict=False):
                pass
            cluster.controller.kill()
            before = {key: made.result() for key, made in tries.items()}
        cluster.start_controller()
        there = names(cluster.api)
        for key in keys:
            count = sum(name is not None and name.startswith(key[:12]) for name in there)
            assert count in (0, size), f"{count} of {size} jobs"
            if before[key] is not None:
                assert count == size
        after = {key: send(cluster.api, bodies[key], key=key) for key in keys}
        there = names(cluster.api)
        for key in keys:
            assert after[key][0] == 200 and before[key] is None or before[key][2] == after[key][2]
            assert sorted(name for name in there if name and name.startswith(key[:12])) == sorted(f"{key[:12]}-{i}" for i in range(size))


def test_others_are_served_while_batches_are_read(cluster: Cluster) -> None:
    """Batches of one user wait for each other; a job of another user, sent after them, does not wait for them all."""
    anna, bert = cluster.user("anna"), cluster.user("bert")
    body = json.dumps([{**HELD, "name": f"many-{i}"} for i in range(1000)])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(send, anna, body) for _ in range(8)]
        bert.submit(["true"], hold=True)
        assert {done.result()[0] for done in sent} == {200}
    assert sum(name is not None and name.startswith("many-") for name in names(anna)) == 8000


def batches_answered(api: Api) -> int:
    found = re.search(r'gpuctl_http_requests_total\{[^}]*route="/v1/jobs:batch"[^}]*\} (\d+)', api.raw("GET", "/metrics")[2].decode())
    return int(found[1]) if found else 0


def test_gpuctl_sends_the_jobs_of_a_file_together(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    env = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token"), "NO_COLOR": "1"}
    one = "name: {name}\ncommand: [true]\ngpus: {gpus}\nhold: true\nafter: [{after}]\n"
    before = batches_answered(cluster.api)
    file.write_text("---\n".join(one.format(name=name, gpus=1, after=after) for name, after in (("c", "a, b"), ("a", ""), ("b", ""))))
    made = run_gpuctl("submit", "-f", str(file), "--key", "together", env=env)
    assert made.returncode == 0, made.stderr
    ids = made.stdout.split()
    assert [cluster.api.job(job)["name"] for job in ids] == ["a", "b", "c"]
    assert batches_answered(cluster.api) == before + 2  # c follows a and b
    assert run_gpuctl("submit", "-f", str(file), "--key", "together", env=env).stdout.split() == ids
    file.write_text("---\n".join(one.format(name=name, gpus=gpus, after="") for name, gpus in (("d", 1), ("e", 1000), ("f", 1))))
    mixed = run_gpuctl("submit", "-f", str(file), env=env)
    assert mixed.returncode == 6 and "gpus" in mixed.stderr and str(file) in mixed.stderr
    assert [cluster.api.job(job)["name"] for job in mixed.stdout.split()] == ["d", "f"]
