# SPDX-License-Identifier: Apache-2.0
"""Traces: a collector gets the spans of a job as a tree, a job belongs to the trace of its submission, and its ranks go on with it."""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTLD, PYTHON, ROOT, Cluster, Problem, eventually, run_gpuctl
from otlp_collector import Collector, Span
from paper_node import PaperNode
from test_functions import environment

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
SHOW = ["sh", "-c", "echo parent=$TRACEPARENT state=$TRACESTATE"]
MARK = """
    from serverless_gpu import runtime
    runtime.mark("imported")
"""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    started = Collector().start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Cluster]:
    """Two nodes of two slots each, whose controller sends traces."""
    folder = tmp_path_factory.mktemp("traced")
    headers = folder / "headers"
    headers.write_text("# of the test\nAuthorization: Bearer opensesame\n\n x-tenant:  blue \n")
    options = ["--otlp-endpoint", collector.url, "--otlp-headers", str(headers)]
    cluster = Cluster(folder, [2, 2], controller=options).start()
    yield cluster
    cluster.stop()
    assert "opensesame" not in cluster.controller.said()


def figures(cluster: Cluster) -> dict[str, int]:
    _, _, body = cluster.api.raw("GET", "/metrics")
    found = re.findall(r'^gpuctl_traces_spans_total\{outcome="(\w+)"\} (\d+)$', body.decode(), re.MULTILINE)
    return {outcome: int(count) for outcome, count in found}


def submit(cluster: Cluster, spec: dict[str, Any], **headers: str) -> str:
    return str(cluster.api.call("POST", "/v1/jobs", {"gpus": 1, **spec}, headers)["id"])


def traces(cluster: Cluster, collector: Collector, job: str) -> list[Span]:
    """All spans of a job, once its own has come, which is the last."""
    cluster.api.wait(job)
    eventually(lambda: any(span.name == "job" for span in collector.of_job(job)), f"the span of job {job}")
    return collector.of_job(job)


def named(spans: list[Span], name: str) -> list[Span]:
    return sorted((span for span in spans if span.name == name), key=lambda span: (span.start, span.end))


def check_tree(spans: list[Span]) -> Span:
    """One root; every other span has its parent here and lies within it. Returns the root."""
    ids = {span.id: span for span in spans}
    assert len(ids) == len(spans) and len({span.trace for span in spans}) == 1, spans
    (root,) = [span for span in spans if span.parent not in ids]
    assert root.name == "job"
    for span in spans:
        if span is not root:
            parent = ids[span.parent]
            assert parent.start <= span.start <= span.end <= parent.end, (parent, span)
        assert span.resource["service.name"] == "gpuctl"
    return root


def said(cluster: Cluster, job: str) -> tuple[str, str]:
    """What the first rank found in TRACEPARENT and TRACESTATE."""
    cluster.api.wait(job)
    found = re.fullmatch(r"parent=(\S*) state=(.*)\n", cluster.api.log(job))
    assert found
    return found[1], found[2]


def test_a_gang_on_two_nodes_is_a_tree_of_spans(traced: Cluster, collector: Collector) -> None:
    job = submit(traced, {"command": ["sleep", "2"], "gpus": 4, "name": "gang", "project": "vision"})
    spans = traces(traced, collector, job)
    root = check_tree(spans)
    assert root.parent == "" and not root.failed
    assert root.attributes.items() >= {
        "gpuctl.job.name": "gang", "gpuctl.job.project": "vision", "gpuctl.job.gpus": 4, "gpuctl.job.state": "SUCCEEDED",
        "gpuctl.job.attempts": 1, "process.exit.code": 0,
    }.items()  # fmt: skip
    assert sorted(span.name for span in spans) == ["attempt", "job", "prepare", "prepare", "queued", "run", "run", "start", "start"]
    (queued,), (attempt,) = named(spans, "queued"), named(spans, "attempt")
    assert root.start == queued.start and queued.end == attempt.start
    assert attempt.attributes["gpuctl.nodes"] == 2
    for name in ("node0", "node1"):
        (prepare,), (start,), (run,) = [
            [span for span in named(spans, part) if span.attributes["gpuctl.node"] == name] for part in ("prepare", "start", "run")
        ]
        assert {prepare.parent, start.parent, run.parent} == {attempt.id}
        assert prepare.end <= start.start and start.end == run.start
        assert run.end - run.start >= 1_000_000_000  # ranks begin before they are heard of
        assert run.attributes["process.exit.code"] == 0 and run.attributes["gpuctl.ranks"] == 2
    assert [headers["Authorization"] for headers in collector.headers] == ["Bearer opensesame"] * len(collector.headers)
    assert collector.headers[0]["x-tenant"] == "blue"


def test_each_attempt_is_a_span_and_one_that_failed_says_why(traced: Cluster, collector: Collector, tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 3; }}"
    job = submit(traced, {"command": ["sh", "-c", once], "retries": 1})
    spans = traces(traced, collector, job)
    root = check_tree(spans)
    first, second = named(spans, "attempt")
    waited, again = named(spans, "queued")
    assert not root.failed and root.attributes["gpuctl.job.attempts"] == 2
    assert first.failed and "3" in first.message and not second.failed
    assert first.attributes["error.type"] and "error.type" not in second.attributes
    assert [span.attributes["process.exit.code"] for span in named(spans, "run")] == [3, 0]
    assert waited.end == first.start and first.end <= again.start and again.end == second.start


def test_a_job_that_fails_is_an_error_and_one_that_is_canceled_is_none(traced: Cluster, collector: Collector) -> None:
    failed = check_tree(traces(traced, collector, submit(traced, {"command": ["false"]})))
    assert failed.failed and failed.message and failed.attributes["process.exit.code"] == 1
    job = submit(traced, {"command": ["true"], "hold": True})
    traced.api.post(f"/v1/jobs/{job}/cancel")
    (canceled,) = traces(traced, collector, job)
    assert not canceled.failed and canceled.attributes["gpuctl.job.state"] == "CANCELED"


def test_ranks_go_on_with_the_trace_of_the_submission(traced: Cluster, collector: Collector) -> None:
    job = submit(traced, {"command": SHOW}, traceparent=PARENT, tracestate="congo=t61rcWkgMzE")
    parent, state = said(traced, job)
    spans = traces(traced, collector, job)
    root = check_tree(spans)
    (attempt,) = named(spans, "attempt")
    assert (root.trace, root.parent) == (TRACE, "b7ad6b7169203331")
    assert parent == f"00-{TRACE}-{attempt.id}-01"
    assert state == root.state == "congo=t61rcWkgMzE"
    assert traced.api.job(job)["spec"]["traceparent"] == PARENT


def test_a_spec_with_a_trace_counts_more_than_the_header(traced: Cluster, collector: Collector) -> None:
    other = f"00-{'12' * 16}-{'34' * 8}-01"
    job = submit(traced, {"command": SHOW, "traceparent": other}, traceparent=PARENT, tracestate="a=b")
    assert said(traced, job)[0].startswith(f"00-{'12' * 16}-") and said(traced, job)[1] == ""
    assert check_tree(traces(traced, collector, job)).trace == "12" * 16


def test_a_job_of_its_own_has_a_trace_of_its_own(traced: Cluster, collector: Collector) -> None:
    job = submit(traced, {"command": SHOW})
    parent, state = said(traced, job)
    spans = traces(traced, collector, job)
    root = check_tree(spans)
    assert parent == f"00-{root.trace}-{named(spans, 'attempt')[0].id}-01" and state == "" and root.parent == ""


@pytest.mark.parametrize(
    "header",
    [
        "", "nonsense", PARENT.upper(), PARENT[:-1], PARENT + "-00", f"ff{PARENT[2:]}", f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01", PARENT.replace("-", "_"), PARENT[:-2] + "zz", "x" * 3000,
    ],
)  # fmt: skip
def test_a_malformed_header_is_ignored(traced: Cluster, header: str) -> None:
    job = submit(traced, {"command": SHOW}, traceparent=header, tracestate="a=b")
    assert "traceparent" not in traced.api.job(job)["spec"]
    assert not said(traced, job)[0].startswith(f"00-{TRACE}")


def test_a_later_version_of_the_header_counts_as_far_as_it_is_known(traced: Cluster) -> None:
    job = submit(traced, {"command": SHOW}, traceparent=f"cc{PARENT[2:]}-what-the-future-brings")
    assert traced.api.job(job)["spec"]["traceparent"] == PARENT
    assert said(traced, job)[0].startswith(f"00-{TRACE}-")


@pytest.mark.parametrize("state", ["x" * 513, "no list", "a=" + "b" * 511])
def test_a_tracestate_that_cannot_be_passed_on_is_ignored(traced: Cluster, state: str) -> None:
    job = submit(traced, {"command": SHOW}, traceparent=PARENT, tracestate=state)
    assert said(traced, job)[0].startswith(f"00-{TRACE}-") and said(traced, job)[1] == ""


@pytest.mark.parametrize("member", ["traceparent", "tracestate"])
def test_a_malformed_member_of_the_spec_is_an_error(traced: Cluster, member: str) -> None:
    with pytest.raises(Problem) as refused:
        submit(traced, {"command": ["true"], member: "nonsense"})
    assert refused.value.status == 422 and refused.value.field == member and refused.value.body["hint"]


def test_a_trace_that_is_not_recorded_is_not_sent_and_goes_on(traced: Cluster, collector: Collector) -> None:
    job = submit(traced, {"command": SHOW}, traceparent=PARENT[:-1] + "0")
    assert re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-00", said(traced, job)[0])
    traces(traced, collector, submit(traced, {"command": ["true"]}))
    assert collector.of_job(job) == []


def test_all_jobs_of_a_batch_belong_to_the_trace_of_the_request(traced: Cluster, collector: Collector) -> None:
    specs = [{"command": ["true"], "gpus": 1}, {"command": ["true"], "gpus": 1, "traceparent": f"00-{'12' * 16}-{'34' * 8}-01"}]
    answer = traced.api.call("POST", "/v1/jobs:batch", specs, {"traceparent": PARENT})
    jobs = [part["job"]["id"] for part in answer["jobs"]]
    assert [check_tree(traces(traced, collector, job)).trace for job in jobs] == [TRACE, "12" * 16]


def test_tasks_are_spans_of_their_array(traced: Cluster, collector: Collector) -> None:
    array = submit(traced, {"command": ["true"], "array": {"tasks": 3}}, traceparent=PARENT)
    (root,) = traces(traced, collector, array)
    tasks = [task["id"] for task in traced.api.get(f"/v1/jobs?array={array}")["jobs"]]
    spans = [span for task in tasks for span in traces(traced, collector, task)]
    assert root.parent == PARENT[36:52] and root.attributes["gpuctl.array.tasks"] == 3
    assert check_tree([root, *spans]) is root
    assert sorted(span.attributes["gpuctl.array.task"] for span in spans if span.name == "job") == [0, 1, 2]


def test_marks_of_ranks_are_events_of_the_run(traced: Cluster, collector: Collector) -> None:
    program = MARK.replace("    ", "")
    job = submit(traced, {"command": [PYTHON, "-c", program], "env": {"PYTHONPATH": str(ROOT / "client" / "python" / "src")}})
    (run,) = named(traces(traced, collector, job), "run")
    assert [(name, attributes) for name, _, attributes in run.events] == [("imported", {"gpuctl.rank": 0})]


def test_nodes_that_prepare_what_a_job_brings_along_are_seen_to_do_so(traced: Cluster, collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 4096)
    with tarfile.open(tmp_path / "bundle", "w") as archive:
        archive.add(tmp_path / "file", "file")
    bundle = (tmp_path / "bundle").read_bytes()
    digest = hashlib.sha256(bundle).hexdigest()
    assert traced.api.raw("PUT", f"/v1/blobs/{digest}", bundle, {"Content-Type": "application/octet-stream"})[0] in (200, 201, 204)
    spans = traces(traced, collector, submit(traced, {"command": ["cat", "file"], "bundle": {"blob": digest}}))
    check_tree(spans)
    (queued,), (staging,) = named(spans, "queued"), named(spans, "staging")
    assert staging.parent == queued.id


def test_a_node_of_an_earlier_version_gets_a_spec_that_it_knows(make_cluster: Callable[..., Cluster]) -> None:
    """It refuses members that it does not know, and reports no moments."""
    collector = Collector().start()
    cluster = make_cluster(controller=["--otlp-endpoint", collector.url])
    node = PaperNode(cluster, "paper", 1)
    try:
        job = submit(cluster, {"command": ["true"]}, traceparent=PARENT, tracestate="a=b")
        (order,) = node.until(lambda reply: reply["orders"], "to be told to run something")["orders"]
        assert order["spec"] == {"command": ["true"], "gpus": 1}
        assert order["traceparent"].startswith(f"00-{TRACE}-") and order["tracestate"] == "a=b"
        exits = [{"rank": 0, "code": 0, "at_ms": 2}]
        node.api.post("/v1/agent/report", {**node.who(), "epoch": order["epoch"], "kind": "exited", "ranks": exits, "flushed": True})
        spans = traces(cluster, collector, job)
    finally:
        node.close()
    check_tree(spans)
    assert sorted(span.name for span in spans) == ["attempt", "job", "queued"]
    collector.stop()


def test_a_variable_of_the_job_counts_more_than_ours(traced: Cluster) -> None:
    job = submit(traced, {"command": SHOW, "env": {"TRACEPARENT": "mine"}}, traceparent=PARENT, tracestate="a=b")
    assert said(traced, job) == ("mine", "")


def test_gpuctl_sends_the_trace_of_its_environment(traced: Cluster, tmp_path: Path) -> None:
    variables = environment(traced, tmp_path)
    done = run_gpuctl("submit", "--", *SHOW, env={**variables, "TRACEPARENT": PARENT, "TRACESTATE": "a=b"})
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    assert traced.api.job(job)["spec"]["traceparent"] == PARENT and said(traced, job)[1] == "a=b"
    done = run_gpuctl("submit", "--", *SHOW, env={**variables, "TRACEPARENT": "nonsense\r\nx: y"})
    assert done.returncode == 0 and "traceparent" not in traced.api.job(done.stdout.strip())["spec"], done.stderr


def test_without_a_collector_ranks_get_the_trace_of_the_submission(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    assert said(cluster, submit(cluster, {"command": SHOW}, traceparent=PARENT, tracestate="a=b")) == (PARENT, "a=b")
    assert said(cluster, submit(cluster, {"command": SHOW})) == ("", "")
    assert figures(cluster) == {"sent": 0, "rejected": 0, "dropped": 0}


def test_a_collector_that_was_away_gets_what_it_missed(make_cluster: Callable[..., Cluster]) -> None:
    collector = Collector().start()
    cluster = make_cluster(1, controller=["--otlp-endpoint", f"{collector.url}/"])
    collector.stop()
    jobs = [submit(cluster, {"command": ["true"]}) for _ in range(2)]
    eventually(lambda: "traces unsent" in cluster.controller.said(), "a try to fail")
    jobs.append(submit(cluster, {"command": ["true"]}))
    assert cluster.api.wait(jobs[2])["state"] == "SUCCEEDED", "nothing waits for a collector"
    collector.start()
    for job in jobs:
        check_tree(traces(cluster, collector, job))
    eventually(lambda: figures(cluster)["sent"] == len(collector.spans), "all to be counted")
    assert figures(cluster)["dropped"] == 0 and "traces sent" in cluster.controller.said()
    assert len({span.id for span in collector.spans}) == len(collector.spans)
    collector.stop()


def test_a_busy_collector_is_asked_again_and_one_that_refuses_is_not(make_cluster: Callable[..., Cluster]) -> None:
    collector = Collector().start()
    cluster = make_cluster(1, controller=["--otlp-endpoint", collector.url])
    collector.statuses, collector.retry_after = [429, 503], "1"
    check_tree(traces(cluster, collector, submit(cluster, {"command": ["true"]})))
    assert collector.asked >= 3
    eventually(lambda: figures(cluster)["sent"] == len(collector.spans), "all to be counted")
    collector.statuses = [400]
    submit(cluster, {"command": ["true"]})
    eventually(lambda: figures(cluster)["rejected"] > 0, "the refusal to be counted")
    sent = figures(cluster)["sent"]
    collector.reply = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "two too many"}}
    rejected = figures(cluster)["rejected"]
    job = submit(cluster, {"command": ["true"]})
    traces(cluster, collector, job)
    eventually(lambda: figures(cluster)["rejected"] >= rejected + 2 and figures(cluster)["sent"] > sent, "the rejected to be counted")
    assert figures(cluster)["dropped"] == 0
    collector.stop()


def test_a_controller_that_ends_sends_what_it_has_and_does_not_wait(make_cluster: Callable[..., Cluster]) -> None:
    collector = Collector().start()
    cluster = make_cluster(1, controller=["--otlp-endpoint", collector.url])
    job = submit(cluster, {"command": ["true"]})
    cluster.api.wait(job)
    assert cluster.controller.kill(signal.SIGTERM) == 0
    check_tree(collector.of_job(job))
    collector.stop()
    cluster.start_controller()
    cluster.api.wait(submit(cluster, {"command": ["true"]}))
    assert cluster.controller.kill(signal.SIGTERM) == 0
    cluster.start_controller()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--otlp-endpoint", "collector:4318"], "--otlp-endpoint"),
        (["--otlp-endpoint", "http://me:opensesame@collector:4318"], "--otlp-endpoint"),
        (["--otlp-headers", "FILE"], "--otlp-headers"),
        (["--otlp-endpoint", "http://collector:4318", "--otlp-headers", "FILE"], "line 2"),
    ],
)
def test_settings_that_cannot_work_are_refused_without_their_secrets(tmp_path: Path, options: list[str], says: str) -> None:
    (tmp_path / "headers").write_text("x-fine: 1\nopensesame\n")
    arguments = [str(tmp_path / "headers") if option == "FILE" else option for option in options]
    done = subprocess.run(
        [str(GPUCTLD), "--state", str(tmp_path), "--config", "none", *arguments, "--check-config"], capture_output=True, text=True
    )
    assert done.returncode == 2 and says in done.stderr and "opensesame" not in done.stderr, done.stderr
