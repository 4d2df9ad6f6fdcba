# SPDX-License-Identifier: Apache-2.0
"""gpuctl mcp as agents use it: through a client library of the Model Context Protocol, and by its plain messages."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, PATIENCE, PYTHON, TERMINAL, Api, Cluster, run_gpuctl

LACKING = "the client library of the protocol is not installed: deploy/python-environment --tests"
anyio = pytest.importorskip("anyio", reason=LACKING)
mcp = pytest.importorskip("mcp", reason=LACKING)
if not hasattr(mcp, "Client"):
    pytest.skip("the installed client library of the protocol is older than 2.0", allow_module_level=True)

READING = {
    "list_jobs", "show_job", "explain_job", "plan_job", "job_logs", "job_results", "job_events", "list_nodes", "list_pools", "list_secrets",
}  # fmt: skip
CHANGING = {"submit_job", "clone_job", "cancel_job", "hold_job", "release_job"}
SLEEP = ["sleep", "1000"]

Environment = dict[str, str]


@pytest.fixture
def ada(cluster: Cluster) -> Api:
    return cluster.user("ada")


@pytest.fixture
def environment(cluster: Cluster, ada: Api, tmp_path: Path) -> Environment:
    """Settings of a person with a token."""
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(f"{ada.token}\n")
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "HOME": str(tmp_path)}


class Agent:
    """The tools, as a model calls them."""

    def __init__(self, client: Any):
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The answer of a tool, which is the same as text."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    async def fail(self, tool: str, **arguments: Any) -> Any:
        """The problem that a tool answers with."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.content
        return json.loads(result.content[0].text)

    async def wait(self, job: str) -> Any:
        """The job once it has ended."""
        while True:
            view = await self.call("show_job", job=job, wait_s=20)
            if view["state"] in TERMINAL:
                return view

    async def cancel(self, job: str) -> None:
        await self.call("cancel_job", job=job)
        assert (await self.wait(job))["state"] == "CANCELED"


@asynccontextmanager
async def connected(environment: Environment, *options: str, mode: str = "auto") -> Any:
    server = mcp.StdioServerParameters(command=str(GPUCTL), args=["mcp", *options], env={**os.environ, **environment})
    with anyio.fail_after(PATIENCE):
        async with mcp.Client(mcp.stdio_client(server), mode=mode) as client:
            yield Agent(client)


def talk(environment: Environment, conversation: Callable[[Agent], Awaitable[None]], *options: str) -> None:
    """Hold a conversation with a server of its own."""

    async def hold() -> None:
        async with connected(environment, *options) as agent:
            await conversation(agent)

    anyio.run(hold)


# --- the client library ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_finds_tools_that_only_read(environment: Environment, mode: str) -> None:
    async def hold() -> None:
        async with connected(environment, mode=mode) as agent:
            assert agent.client.server_info.name == "gpuctl" and agent.client.protocol_version == "2025-11-25"
            tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
            assert set(tools) == READING
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert all(tool.input_schema["additionalProperties"] is False for tool in tools.values())
            assert "untrusted" in tools["job_logs"].description

    anyio.run(hold)


def test_tools_that_change_something_are_there_when_that_is_allowed(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        tools = {tool.name: tool.annotations for tool in (await agent.client.list_tools()).tools}
        assert set(tools) == READING | CHANGING
        assert {name for name, told in tools.items() if not told.read_only_hint} == CHANGING
        assert {name for name, told in tools.items() if told.destructive_hint} == {"cancel_job"}
        assert {name for name, told in tools.items() if not told.idempotent_hint} == {"submit_job", "clone_job"}

    talk(environment, conversation, "--allow-changes")


def test_a_change_that_was_not_allowed_is_refused(environment: Environment, ada: Api) -> None:
    job = ada.submit(SLEEP)

    async def conversation(agent: Agent) -> None:
        calls: dict[str, dict[str, Any]] = {"cancel_job": {"job": job}, "submit_job": {"command": ["true"], "gpus": 1}}
        for tool, arguments in calls.items():
            problem = await agent.fail(tool, **arguments)
            assert problem["code"] == "forbidden" and "--allow-changes" in problem["hint"]

    talk(environment, conversation)
    assert [found["id"] for found in ada.get("/v1/jobs?state=QUEUED,PLACED,RUNNING")["jobs"]] == [job]
    ada.post(f"/v1/jobs/{job}/cancel")
    ada.wait(job)


def test_a_job_is_submitted_waited_for_and_read(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        submitted = await agent.call(
            "submit_job", command=["sh", "-c", "echo out $RANK of $WORDS; echo err >&2"], gpus=2, name="words", env={"WORDS": "two"}
        )
        job = submitted["id"]
        view = await agent.wait(job)
        assert (view["state"], view["exit_code"], view["name"]) == ("SUCCEEDED", 0, "words")
        assert (await agent.call("job_logs", job=job[:12]))["text"] == "out 0 of two\n"
        told = await agent.call("job_logs", job=job, rank=1, stream="stdout")
        assert (told["job"], told["rank"], told["text"]) == (job, 1, "out 1 of two\n")
        assert (await agent.call("job_logs", job=job, stream="stderr"))["text"] == "err\n"
        assert (await agent.call("job_results", job=job))["results"] == []
        kinds = [event["kind"] for event in (await agent.call("job_events", job=job))["events"]]
        assert kinds[0] == "submitted" and kinds[-1] == "succeeded"
        listed = await agent.call("list_jobs", name="words", state="SUCCEEDED", limit=1)
        assert [found["id"] for found in listed["jobs"]] == [job]
        nodes = (await agent.call("list_nodes"))["nodes"]
        assert [(node["name"], node["gpus"]) for node in nodes] == [("node0", 2), ("node1", 2)]
        (pool,) = (await agent.call("list_pools"))["pools"]
        assert pool["types"] == [{"gpu_type": "cpu", "gpus": 4, "free": 4}]

    talk(environment, conversation, "--allow-changes")


def test_a_job_gets_cpus_memory_and_a_secret_whose_name_is_listed(environment: Environment, ada: Api) -> None:
    ada.call("PUT", "/v1/secrets/HF_TOKEN", {"value": "canary-8d21f0"})

    async def conversation(agent: Agent) -> None:
        listed = await agent.call("list_secrets")
        assert [(one["name"], one["bytes"]) for one in listed["secrets"]] == [("HF_TOKEN", 13)] and "canary" not in json.dumps(listed)
        told = ["sh", "-c", "echo ${#HF_TOKEN}"]
        submitted = await agent.call("submit_job", command=told, gpus=0, cpus=0.5, memory="64M", secrets=["HF_TOKEN"])
        view = await agent.wait(submitted["id"])
        assert view["state"] == "SUCCEEDED" and view["spec"]["secrets"] == ["HF_TOKEN"]
        assert (await agent.call("job_logs", job=submitted["id"]))["text"] == "13\n"
        assert (view["spec"]["cpus"], view["spec"]["memory"]) == (0.5, "64M")
        assert (await agent.fail("list_secrets", project="nobodys"))["code"] == "forbidden"

    talk(environment, conversation, "--allow-changes")
    ada.call("DELETE", "/v1/secrets/HF_TOKEN")


def test_results_of_a_function_are_values(environment: Environment, ada: Api) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed: deploy/python-environment")

    def where() -> dict[str, Any]:
        import os

        return {"rank": int(os.environ["RANK"]), "text": "\x1b[31m\ud800\x07"}

    payload = "gpuctl-function 1 python={}.{}\n".format(*sys.version_info[:2]).encode() + cloudpickle.dumps((where, (), {}))
    spec = {"gpus": 2, "function": {"inline": base64.b64encode(payload).decode()}, "python": PYTHON}
    job = ada.post("/v1/jobs", spec, Idempotency_Key=uuid.uuid4().hex)["id"]
    ada.wait(job)

    async def conversation(agent: Agent) -> None:
        page = await agent.call("job_results", job=job, limit=1)
        (first,) = page["results"]
        assert first["rank"] == 0 and first["kind"] == "value"
        (second,) = (await agent.call("job_results", job=job, after=page["next"]))["results"]
        assert second["rank"] == 1

    talk(environment, conversation)


def test_a_waiting_job_is_explained_planned_held_and_canceled(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        running = (await agent.call("submit_job", command=SLEEP, gpus=4))["id"]
        waiting = (await agent.call("submit_job", command=["true"], gpus=3))["id"]
        told = await agent.call("explain_job", job=waiting)
        assert told["state"] == "QUEUED" and told["reason"]["code"] == "NODES_BUSY" and told["turn"]["ahead"] == 0
        plan = await agent.call("plan_job", command=["true"], gpus=1)
        assert plan["admitted"] is True and plan["reason"]["code"] in ("NODES_BUSY", "BEHIND")
        refused = await agent.call("plan_job", command=["true"], gpus=50)
        assert refused["admitted"] is False and "50" in refused["refusal"]["detail"]
        assert (await agent.call("hold_job", job=waiting))["state"] == "HELD"
        assert (await agent.call("release_job", job=waiting))["state"] == "QUEUED"
        assert {job["id"] for job in (await agent.call("list_jobs", state="QUEUED,RUNNING,PLACED"))["jobs"]} == {running, waiting}
        await agent.cancel(waiting)
        await agent.cancel(running)

    talk(environment, conversation, "--allow-changes")


def test_the_same_key_makes_one_job(environment: Environment, ada: Api) -> None:
    async def conversation(agent: Agent) -> None:
        made = await agent.call("submit_job", command=["true"], gpus=1, name="once")
        key = made["idempotency_key"]
        assert await agent.call("submit_job", command=["true"], gpus=1, name="once", idempotency_key=key) == made
        assert (await agent.fail("submit_job", command=["false"], gpus=1, idempotency_key=key))["code"] == "idempotency_mismatch"
        for wrong in ("", "a b", "a\r\nX: y", "é", "k" * 129):
            problem = await agent.fail("submit_job", command=["true"], gpus=1, idempotency_key=wrong)
            assert (problem["code"], problem["field"]) == ("invalid_field", "idempotency_key")
        await agent.wait(made["id"])

    talk(environment, conversation, "--allow-changes")
    assert len(ada.get("/v1/jobs?name=once")["jobs"]) == 1


def test_jobs_have_labels_by_which_they_are_listed(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        job = (await agent.call("submit_job", command=["true"], gpus=1, labels={"phase": "2", "team": "a=b"}))["id"]
        await agent.call("submit_job", command=["true"], gpus=1, labels={"phase": "3"})
        for label, found in (("phase=2", [job]), ("team=a=b", [job]), ("phase=4", [])):
            assert [one["id"] for one in (await agent.call("list_jobs", label=label))["jobs"]] == found
        assert (await agent.call("show_job", job=job))["spec"]["labels"] == {"phase": "2", "team": "a=b"}
        problem = await agent.fail("list_jobs", label="phase")
        assert problem["field"] == "label" and "KEY=VALUE" in problem["detail"]

    talk(environment, conversation, "--allow-changes")


def test_a_job_is_cloned_with_other_parameters_once_for_each_key(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        told = ["sh", "-c", 'echo "$@" $WORD of $WORLD_SIZE', "--", "--lr", "0.1"]
        first = (await agent.call("submit_job", command=told, gpus=1, name="first", env={"WORD": "old"}))["id"]
        await agent.wait(first)
        changes: dict[str, Any] = {"set": {"lr": "0.2"}, "env": {"WORD": "new"}, "gpus": 2, "name": "second"}
        changes["arguments"] = ["--epochs", "3"]
        made = await agent.call("clone_job", job=first[:12], **changes)
        view = await agent.wait(made["id"])
        assert (view["state"], view["name"], view["gpus"]) == ("SUCCEEDED", "second", 2)
        assert (await agent.call("job_logs", job=made["id"]))["text"] == "--lr 0.2 --epochs 3 new of 2\n"
        key = made["idempotency_key"]
        assert (await agent.call("clone_job", job=first, **changes, idempotency_key=key))["id"] == made["id"]
        assert (await agent.fail("clone_job", job=first, idempotency_key=key))["code"] == "idempotency_mismatch"
        wrongs: dict[str, dict[str, Any]] = {"set.depth": {"set": {"depth": "1"}}, "set": {"set": "lr"}, "gpus": {"gpus": -1}}
        for field, wrong in {**wrongs, "pool": {"pool": "x"}, "idempotency_key": {"idempotency_key": "a b"}}.items():
            assert (await agent.fail("clone_job", job=first, **wrong))["field"] == field
        assert (await agent.fail("clone_job", job="zzzzzzzzzzzz"))["code"] == "not_found"
        assert (await agent.fail("clone_job"))["field"] == "job"

    talk(environment, conversation, "--allow-changes")


def test_a_job_gets_inputs_and_an_image_and_what_is_wrong_with_them_is_named(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        asked: dict[str, Any] = {"command": ["true"], "gpus": 1, "inputs": ["set=https://example.org/set.csv"], "hold": True}
        image = "registry.example.org/train@sha256:" + "0" * 64
        for more in ({}, {"image": image}):
            job = (await agent.call("submit_job", **asked, **more))["id"]
            spec = (await agent.call("show_job", job=job))["spec"]
            assert spec["inputs"] == asked["inputs"] and spec.get("image") == more.get("image")
            await agent.cancel(job)
        for wrong in ({"inputs": ["ftp://x/y"]}, {"volumes": ["data:relative"]}, {"image": "Not An Image"}):
            (field,) = wrong
            problem = await agent.fail("submit_job", **{**asked, **wrong})
            assert problem["code"] == "invalid_field" and problem["field"].startswith(field)
        assert "--volume" in (await agent.fail("submit_job", command=["true"], gpus=1, volumes=["data:ro"]))["hint"]

    talk(environment, conversation, "--allow-changes")


def test_the_error_of_a_field_comes_through(environment: Environment) -> None:
    async def conversation(agent: Agent) -> None:
        problem = await agent.fail("submit_job", command=["true"], gpus=-1)
        assert (problem["code"], problem["field"]) == ("invalid_field", "gpus") and "gpus" in problem["detail"]
        problem = await agent.fail("submit_job", command=["true"], gpus=1, priorty=3)
        assert (problem["code"], problem["field"]) == ("unknown_field", "priorty") and "priority" in problem["hint"]
        assert (await agent.fail("plan_job", command="true", gpus=1))["field"] == "command"
        assert (await agent.fail("list_jobs", state="ASLEEP"))["field"] == "state"
        assert (await agent.fail("show_job", job="zzzzzzzzzzzz"))["code"] == "not_found"
        assert (await agent.fail("show_job", job="../nodes"))["code"] == "not_found"

    talk(environment, conversation, "--allow-changes")


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("show_job", {}, "job"),
        ("show_job", {"job": 7}, "job"),
        ("show_job", {"job": "x7k2", "wait_s": 26}, "wait_s"),
        ("job_logs", {"job": "x7k2", "stream": "metrics"}, "stream"),
        ("job_logs", {"job": "x7k2", "bytes": 65537}, "bytes"),
        ("job_logs", {"job": "x7k2", "rank": "0"}, "rank"),
        ("list_pools", {"pool": "a"}, "pool"),
    ],
)
def test_an_argument_that_is_wrong_is_named(environment: Environment, tool: str, arguments: dict[str, Any], field: str) -> None:
    async def conversation(agent: Agent) -> None:
        problem = await agent.fail(tool, **arguments)
        assert (problem["code"], problem["field"]) == ("invalid_field", field)

    talk(environment, conversation)


# --- output of jobs ----------------------------------------------------------------------------------------------------------


def test_hostile_output_is_a_text_in_valid_json(environment: Environment, ada: Api) -> None:
    said = b'\x1b[2J\x1b]0;x\x07\x00\x7f\xc2\x85 \xff\xfe\xed\xa0\x80 \\ud800 "}]}\r\n\xe2\x80\xa8{"jsonrpc":"2.0","id":1}\n'
    job = ada.submit([PYTHON, "-c", f"import sys; sys.stdout.buffer.write({said!r})"])
    assert ada.wait(job)["state"] == "SUCCEEDED"
    wanted = said.decode(errors="replace").replace("\ufffd", "")

    async def conversation(agent: Agent) -> None:
        told = await agent.call("job_logs", job=job)
        assert (told["offset"], told["next_offset"], told["size"]) == (0, len(said), len(said))
        assert told["text"].replace("\ufffd", "") == wanted and "\ufffd" in told["text"]

    talk(environment, conversation)
    given = request(1, "tools/call", {"name": "job_logs", "arguments": {"job": job}})
    assert [reply["id"] for reply in raw(given, environment)] == [1]


def test_long_output_is_read_in_parts_that_cut_no_character(environment: Environment, ada: Api) -> None:
    text = "".join(f"{number} ä€𝄞\n" for number in range(4000))
    job = ada.submit([PYTHON, "-c", "import sys; sys.stdout.reconfigure(encoding='utf-8')\nfor n in range(4000): print(n, 'ä€𝄞')"])
    assert ada.wait(job)["state"] == "SUCCEEDED"

    async def conversation(agent: Agent) -> None:
        last = await agent.call("job_logs", job=job)
        assert text.endswith(last["text"]) and 16384 - 4 < len(last["text"].encode()) <= 16384
        assert last["next_offset"] == last["size"] == len(text.encode())
        for size in (7777, 65536):
            offset, parts = 0, list[str]()
            while not parts or parts[-1]:
                part = await agent.call("job_logs", job=job, offset=offset, bytes=size)
                assert part["offset"] == offset and len(part["text"].encode()) <= size
                parts.append(part["text"])
                offset = part["next_offset"]
            assert "".join(parts) == text
        assert (await agent.fail("job_logs", job=job, offset=last["size"] + 1))["code"] == "range_not_satisfiable"

    talk(environment, conversation)


def test_output_of_a_job_that_has_written_nothing_is_empty(environment: Environment, ada: Api) -> None:
    job = ada.submit(["true"])
    ada.wait(job)

    async def conversation(agent: Agent) -> None:
        for arguments in ({}, {"offset": 0}):
            told = await agent.call("job_logs", job=job, **arguments)
            assert (told["text"], told["offset"], told["next_offset"], told["size"]) == ("", 0, 0, 0)

    talk(environment, conversation)


def test_a_long_spec_is_left_out(environment: Environment, ada: Api) -> None:
    job = ada.submit(["true"], files=[{"path": "data", "text": "x" * 100_000}])
    ada.wait(job)

    async def conversation(agent: Agent) -> None:
        view = await agent.call("show_job", job=job)
        assert view["id"] == job and view["spec"].keys() == {"left_out_bytes"} and view["spec"]["left_out_bytes"] > 100_000

    talk(environment, conversation)


def test_output_of_control_characters_fits_into_an_answer(environment: Environment, ada: Api) -> None:
    job = ada.submit(["sh", "-c", "head -c 65536 /dev/zero; head -c 524288 /dev/zero | tr '\\0' '\\1'"])
    ada.wait(job)

    async def conversation(agent: Agent) -> None:
        told = await agent.call("job_logs", job=job, bytes=65536)
        assert told["text"] == "\1" * 65536

    talk(environment, conversation)


@pytest.fixture
def large_controller() -> Iterator[str]:
    """The URL of a controller whose answers have 600 KiB."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"pools": ["x" * (600 << 10)]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_answer_that_is_too_long_says_how_to_get_less(environment: Environment, large_controller: str) -> None:
    async def conversation(agent: Agent) -> None:
        problem = await agent.fail("list_pools")
        assert problem["code"] == "too_large" and "limit" in problem["hint"]

    talk({**environment, "GPUCTL_URL": large_controller}, conversation)


# --- controllers that do not answer -------------------------------------------------------------------------------------------


def test_a_wrong_token_or_no_controller_is_an_error_of_the_tool_and_the_server_goes_on(environment: Environment, ada: Api) -> None:
    token = Path(environment["GPUCTL_TOKEN_FILE"])

    async def conversation(agent: Agent) -> None:
        token.write_text("wrong\n")
        assert (await agent.fail("list_jobs"))["code"] == "unauthenticated"
        token.unlink()
        problem = await agent.fail("list_jobs")
        assert problem["code"] == "unauthenticated" and "--token-file" in problem["hint"]
        token.write_text(f"{ada.token}\n")
        await agent.call("list_jobs")

    talk(environment, conversation)

    async def alone(agent: Agent) -> None:
        assert (await agent.fail("list_jobs"))["code"] == "unreachable"
        assert (await agent.fail("list_pools"))["code"] == "unreachable"

    talk({**environment, "GPUCTL_URL": "http://127.0.0.1:1"}, alone)


def test_only_a_submission_starts_an_instance_of_ones_own(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "state")}

    async def conversation(agent: Agent) -> None:
        assert (await agent.fail("list_jobs"))["code"] == "unreachable"
        assert (await agent.fail("plan_job", command=["true"], gpus=1))["code"] == "unreachable"
        assert not (tmp_path / "state" / "endpoint").exists()
        job = (await agent.call("submit_job", command=["echo", "hello"], gpus=1))["id"]
        assert (await agent.wait(job))["state"] == "SUCCEEDED"
        assert (await agent.call("job_logs", job=job))["text"] == "hello\n"

    try:
        talk(environment, conversation, "--allow-changes")
    finally:
        down = run_gpuctl("down", "--force", env=environment)
    assert down.returncode == 0, down.stderr


# --- plain messages ------------------------------------------------------------------------------------------------------------


def request(number: Any, method: str, params: Any = None) -> str:
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(message if params is None else {**message, "params": params}) + "\n"


def raw(given: str, environment: Environment | None = None) -> list[Any]:
    """The messages that come for these lines. The server ends well when its input does, and has nothing else to say."""
    ran = subprocess.run(
        [str(GPUCTL), "mcp"], input=given.encode("utf-8", "surrogateescape"), capture_output=True, timeout=PATIENCE,
        env={**os.environ, **(environment or {})}, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.endswith(b"\n") or not ran.stdout
    return [json.loads(line) for line in ran.stdout.decode().split("\n")[:-1]]


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        ("{", -32700, None),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "ping"}', -32700, None),
        ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32700, None),
        ('{"jsonrpc": "2.0", "id": "\udcff", "method": "ping"}', -32700, None),
        ("\0", -32700, None),
        ("[" * 1000, -32700, None),
        ("", -32700, None),
        ("7", -32600, None),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        ('{"id": 1, "method": "ping"}', -32600, 1),
        ('{"jsonrpc": "2.0", "id": 1}', -32600, 1),
        ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, None),
        ('{"jsonrpc": "2.0", "id": "a", "method": "resources/list"}', -32601, "a"),
        ('{"jsonrpc": "2.0", "id": 1, "method": "initialize"}', -32602, 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}', -32602, 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}', -32602, 1),
        ('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_jobs", "arguments": 1}}', -32602, 1),
    ],
)  # fmt: skip
def test_a_message_that_is_wrong_gets_an_error_and_the_next_its_answer(line: str, code: int, number: Any) -> None:
    wrong, pong = raw(f"{line}\n" + request(2, "ping"))
    assert (wrong["id"], wrong["error"]["code"]) == (number, code) and wrong["error"]["message"]
    assert pong == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_notifications_and_responses_get_no_answer() -> None:
    lines = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ]
    assert raw("".join(json.dumps(line) + "\n" for line in lines)) == []


def test_a_line_that_is_too_long_is_refused_whole_and_the_next_is_read() -> None:
    most = 4 << 20
    fits = request(1, "ping", {"x": ""})
    fits = fits.replace('""', f'"{"x" * (most - len(fits) + 1)}"')
    assert len(fits) == most + 1  # with its end
    first, second, third = raw(fits + fits.replace("xx", "xxx", 1) + request(3, "ping"))
    assert first["result"] == {} and third["id"] == 3
    assert (second["id"], second["error"]["code"]) == (None, -32600) and str(most) in second["error"]["message"]


def test_input_that_ends_in_a_line_is_answered() -> None:
    assert raw("") == []
    assert raw(request(1, "ping").rstrip("\n")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")] + [("2030-01-01", "2025-11-25")],
)
def test_the_version_of_the_client_is_taken_where_it_is_known(wanted: str, given: str) -> None:
    (told,) = raw(request(1, "initialize", {"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}))
    assert told["result"]["protocolVersion"] == given and told["result"]["capabilities"] == {"tools": {"listChanged": False}}


def test_an_argument_is_wrong_use() -> None:
    ran = run_gpuctl("mcp", "serve")
    assert (ran.returncode, ran.stdout) == (2, "") and 'does not take "serve"' in ran.stderr


def test_a_person_at_a_terminal_is_told_what_it_is_for_and_served() -> None:
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen([str(GPUCTL), "mcp"], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(terminal)
    os.write(keyboard, request(1, "ping").encode() + b"\x04")
    said, told = process.communicate(timeout=PATIENCE)
    os.close(keyboard)
    assert process.returncode == 0 and json.loads(said)["id"] == 1
    assert len(told.splitlines()) == 1 and "MCP client" in told
