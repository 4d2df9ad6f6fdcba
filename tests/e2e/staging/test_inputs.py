# SPDX-License-Identifier: Apache-2.0
"""Inputs: data that nodes fetch once while their jobs hold no GPU, keep, and show to ranks for reading."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from file_server import FileServer
from harness import GPUCTLD, Cluster, Problem, eventually, run_gpuctl
from owners import MAY_MOUNT, RUN_AS, cluster_of, needs_owners, passable_folder
from test_staging import put_blob, tar_of

LOOPBACK = ("--input-plain-http", "--input-networks", "127.0.0.0/8")


@pytest.fixture
def server() -> Iterator[FileServer]:
    files = FileServer()
    yield files
    files.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of([2], *LOOPBACK) as shared:
        yield shared


def ran(cluster: Cluster, script: str, *inputs: str, **spec: Any) -> str:
    job = cluster.api.submit(["sh", "-c", script], inputs=list(inputs), **spec)
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    return cluster.api.log(job)


def failed(cluster: Cluster, *inputs: str) -> Any:
    job = cluster.api.submit(["true"], inputs=list(inputs), infra_retries=0)
    view = cluster.api.wait(job)
    assert view["state"] == "FAILED" and "placed" not in cluster.api.events(job), view
    return view


def random_bytes(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_a_job_reads_an_input_that_its_node_fetched_once(cluster: Cluster, server: FileServer) -> None:
    server.files["/train.csv"] = b"a,b\n1,2\n"
    script = "cat $GPUCTL_INPUT_TRAIN_CSV; basename $GPUCTL_INPUT_TRAIN_CSV"
    for _ in range(2):
        assert ran(cluster, script, f"{server.url}/train.csv") == "a,b\n1,2\ntrain.csv\n"
    assert server.gets("/train.csv") == [None]
    named = ran(cluster, "cat $GPUCTL_INPUT_TABLE", f"table={server.url}/train.csv")
    assert named == "a,b\n1,2\n" and server.gets("/train.csv") == [None], "another name, the same input"


def test_an_input_that_has_changed_is_fetched_anew_and_running_jobs_keep_theirs(cluster: Cluster, server: FileServer) -> None:
    server.files["/data"] = b"old"
    running = cluster.api.submit(["sh", "-c", "cat $GPUCTL_INPUT_DATA; while [ ! -e $GO ]; do sleep 0.05; done; cat $GPUCTL_INPUT_DATA"],
                                 inputs=[f"{server.url}/data"], env={"GO": str(cluster.folder / "go")})  # fmt: skip
    eventually(lambda: cluster.api.get(f"/v1/jobs/{running}")["state"] == "RUNNING", "a job to run")
    server.files["/data"] = b"new!"
    assert ran(cluster, "cat $GPUCTL_INPUT_DATA", f"{server.url}/data") == "new!"
    (cluster.folder / "go").touch()
    assert cluster.api.wait(running)["state"] == "SUCCEEDED"
    assert cluster.api.log(running) == "oldold"


def test_a_pinned_input_is_checked_and_then_nobody_is_asked_any_more(cluster: Cluster, server: FileServer) -> None:
    server.files["/model.bin"] = content = random_bytes(100_000)
    right, wrong = hashlib.sha256(content).hexdigest(), "0" * 64
    view = failed(cluster, f"{server.url}/model.bin#sha256={wrong}")
    assert f"has the SHA-256 {right}, and the job wants {wrong}" in view["reason"], view["reason"]
    script = "sha256sum <$GPUCTL_INPUT_MODEL_BIN | cut -c-64"
    assert ran(cluster, script, f"{server.url}/model.bin#sha256={right}").strip() == right
    asked = len(server.requests)
    del server.files["/model.bin"]
    assert ran(cluster, script, f"{server.url}/model.bin#sha256={right}").strip() == right
    assert len(server.requests) == asked


@pytest.mark.parametrize("run_as", RUN_AS)
def test_nobody_writes_to_an_input(server: FileServer, run_as: str) -> None:
    server.files["/data"] = b"content"
    with cluster_of([1], "--run-as", run_as, *LOOPBACK) as cluster:
        script = "cat $GPUCTL_INPUT_DATA; (echo x >$GPUCTL_INPUT_DATA) 2>&1; rm -f $GPUCTL_INPUT_DATA 2>&1; touch $(dirname $GPUCTL_INPUT_DATA)/x 2>&1; cat $GPUCTL_INPUT_DATA"  # noqa: E501
        said = ran(cluster, script, f"{server.url}/data")
        assert said.startswith("content") and said.endswith("content"), said
        assert "x" not in said.splitlines()
        if os.geteuid() == 0:
            assert said.count("Read-only file system") == 3, said


@needs_owners
def test_an_input_is_where_the_job_wants_it_and_hidden_from_others(server: FileServer) -> None:
    server.files["/data.txt"] = b"content"
    with cluster_of([1], "--run-as", "owner", *LOOPBACK) as cluster:
        place = f"/mnt/gpuctl-test-{os.getpid()}"
        kept = cluster.folder / "node0" / "inputs"
        script = f"cat {place}/data.txt; echo; echo $GPUCTL_INPUT_D; ls -ld {kept}; ls {kept} || true"
        said = ran(cluster, script, f"d={server.url}/data.txt:{place}")
        assert said.splitlines()[:2] == ["content", f"{place}/data.txt"]
        assert "drwx--x--x" in said and len(said.splitlines()) == 3, "its folders cannot be listed"
        with contextlib.suppress(FileNotFoundError):
            Path(place).rmdir()
        owner = {path.stat().st_uid for path in kept.glob("*/data/*")}
        assert owner == {1900000015}, "the fetcher has no rights, and no other program has its number"


@needs_owners
def test_owners_read_inputs_of_an_agent_whose_files_are_its_own(server: FileServer) -> None:
    server.files["/data"] = b"content"
    before = os.umask(0o077)
    try:
        with cluster_of([1], "--run-as", "owner", *LOOPBACK) as cluster:
            assert ran(cluster, "cat $GPUCTL_INPUT_DATA", f"{server.url}/data") == "content"
    finally:
        os.umask(before)


def test_jobs_that_want_the_same_at_the_same_time_fetch_it_once(cluster: Cluster, server: FileServer) -> None:
    server.files["/large"] = random_bytes(300_000)
    server.stops["/large"] = 100_000
    server.files["/small"] = b"s"
    large = f"x={server.url}/large"
    script = ["sh", "-c", "wc -c <$GPUCTL_INPUT_X"]
    jobs = [cluster.api.submit(script, inputs=inputs) for inputs in ([large], [large, f"{server.url}/small"], [large], [large])]
    assert server.stopped.wait(60)
    eventually(lambda: "MB have come" in str(cluster.api.get(f"/v1/jobs/{jobs[0]}")["reason"]), "progress to be said")
    eventually(lambda: server.gets("/small"), "the other staging to begin")
    assert all(cluster.api.job(job)["state"] == "STAGING" for job in jobs[:2]), "they hold no GPU"
    server.go.set()
    for job in jobs:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job) == "300000\n"
    assert server.gets("/large") == [None]


def test_a_node_that_has_the_input_is_preferred(server: FileServer) -> None:
    server.files["/data"] = b"d"
    with cluster_of([1, 1], *LOOPBACK) as cluster:
        busy = cluster.api.submit(["sleep", "600"])
        eventually(lambda: cluster.api.job(busy)["state"] == "RUNNING", "a job to run")
        first = cluster.api.wait(cluster.api.submit(["true"], inputs=[f"{server.url}/data"]))
        assert [node["node"] for node in cluster.api.job(busy)["nodes"] + first["nodes"]] == ["node0", "node1"]
        cluster.api.post(f"/v1/jobs/{busy}/cancel")
        cluster.api.wait(busy)
        second = cluster.api.wait(cluster.api.submit(["true"], inputs=[f"{server.url}/data"]))
        assert [node["node"] for node in second["nodes"]] == ["node1"]
        assert server.gets("/data") == [None]


def test_a_node_that_has_the_input_is_preferred_for_other_code(server: FileServer) -> None:
    server.files["/data"] = b"d"
    rounds = [("node0", "node1"), (None, "node1"), ("node1", "node0")]
    with cluster_of([1, 1], *LOOPBACK) as cluster:
        for version, (full, node) in enumerate(rounds):
            busy = busy_on(cluster, full) if full else None
            bundle = {"blob": put_blob(cluster, tar_of({"code.sh": f"echo {version} $(cat $GPUCTL_INPUT_DATA)"}))}
            job = cluster.api.submit(["sh", "code.sh"], bundle=bundle, inputs=[f"{server.url}/data"])
            assert [each["node"] for each in cluster.api.wait(job)["nodes"]] == [node], cluster.api.job(job)
            assert cluster.api.log(job) == f"{version} d\n"
            assert len(server.gets("/data")) == (1 if node == "node1" else 2), "once for a node"
            if busy is not None:
                cluster.api.post(f"/v1/jobs/{busy}/cancel")
                cluster.api.wait(busy)


def busy_on(cluster: Cluster, node: str) -> str:
    job = cluster.api.submit(["sleep", "600"], constraints={"node": node})
    eventually(lambda: cluster.api.job(job)["state"] == "RUNNING", "a job to run")
    return job


def test_half_a_fetch_goes_on_where_it_broke_off(cluster: Cluster, server: FileServer) -> None:
    server.files["/broken"] = content = random_bytes(200_000)
    server.breaks["/broken"] = [50_000, 120_000]
    digest = ran(cluster, "sha256sum <$GPUCTL_INPUT_BROKEN | cut -c-64", f"{server.url}/broken").strip()
    assert digest == hashlib.sha256(content).hexdigest()
    assert server.gets("/broken") == [None, "bytes=50000-", "bytes=120000-"]


def test_a_server_that_always_breaks_off_at_the_same_byte_is_given_up(cluster: Cluster, server: FileServer) -> None:
    server.files["/endless"] = content = random_bytes(200_000)
    server.nameless.add("/endless")
    server.breaks["/endless"] = [50_000] * 1000
    view = failed(cluster, f"{server.url}/endless#sha256={hashlib.sha256(content).hexdigest()}")
    assert f"{server.url}/endless: " in view["reason"], view["reason"]


def test_an_answer_that_is_no_file_is_no_empty_input(cluster: Cluster, server: FileServer) -> None:
    server.files["/other"] = b"content"
    server.get_statuses["/other"] = 203
    assert "the server answers 203" in failed(cluster, f"{server.url}/other")["reason"]


def written(kept: Path) -> int:
    """Bytes of what has come so far."""
    return sum(path.stat().st_size for part in kept.glob("*.part") for path in (part / "work").glob("*"))


def test_a_killed_agent_goes_on_with_its_fetch_and_nobody_sees_half_of_it(server: FileServer) -> None:
    server.files["/killed"] = content = random_bytes(400_000)
    server.stops["/killed"] = 150_000
    with cluster_of([1], *LOOPBACK) as cluster:
        job = cluster.api.submit(["sh", "-c", "sha256sum <$GPUCTL_INPUT_KILLED | cut -c-64"], inputs=[f"{server.url}/killed"])
        assert server.stopped.wait(60)
        kept = cluster.folder / "node0" / "inputs"
        eventually(lambda: written(kept) == 150_000, "what has come to be written")
        cluster.agents[0].kill(signal.SIGKILL)
        assert list(kept.glob("*/data/killed")) == []
        server.go.set()
        cluster.agents[0].start()
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job).strip() == hashlib.sha256(content).hexdigest()
        assert server.gets("/killed") == [None, "bytes=150000-"]
        assert list(kept.glob("*.part")) == []


def test_a_fetch_that_was_whole_when_its_agent_died_counts_its_bytes_once(server: FileServer) -> None:
    server.files["/whole"] = content = random_bytes(400_000)
    server.stops["/whole"] = 150_000
    with cluster_of([1], "--input-limit", "600K", *LOOPBACK) as cluster:
        script = ["sh", "-c", "sha256sum <$GPUCTL_INPUT_WHOLE | cut -c-64"]
        job = cluster.api.submit(script, inputs=[f"{server.url}/whole"], infra_retries=0)
        assert server.stopped.wait(60)
        kept = cluster.folder / "node0" / "inputs"
        eventually(lambda: written(kept) == 150_000, "what has come to be written")
        cluster.agents[0].kill(signal.SIGKILL)
        (piece,) = (path for part in kept.glob("*.part") for path in (part / "work").glob("*"))
        piece.write_bytes(content)
        server.go.set()
        cluster.agents[0].start()
        view = cluster.api.wait(job)
        assert view["state"] == "SUCCEEDED", view
        assert cluster.api.log(job).strip() == hashlib.sha256(content).hexdigest()
        assert ("GET", "/whole", "bytes=400000-", 416) in server.requests
        assert [json.loads(marker.read_text())["size_bytes"] for marker in kept.glob("*/gpuctl.json")] == [400_000]


@pytest.mark.skipif(not MAY_MOUNT, reason="to mount a small disk takes the right to")
def test_a_fetch_does_not_fill_the_disk(make_cluster: Callable[..., Cluster], server: FileServer, tmp_path: Path) -> None:
    server.files["/much"] = random_bytes(400_000)
    server.stops["/much"] = 150_000
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1060m", "tmpfs", disk], check=True)
    try:
        cluster = make_cluster()
        cluster.add_agent("node0", 1, "--state", str(disk / "node0"), *LOOPBACK)
        cluster.wait_ready()
        job = cluster.api.submit(["true"], inputs=[f"{server.url}/much"], infra_retries=0)
        assert server.stopped.wait(60)
        (disk / "filler").write_bytes(bytes(40 * 2**20))
        time.sleep(1)  # the disk is looked at twice a second at most: what comes sooner is not held up
        server.go.set()
        view = cluster.api.wait(job)
        assert view["state"] == "FAILED" and "the disk of this node is nearly full" in view["reason"], view
        (disk / "filler").unlink()
        assert ran(cluster, "wc -c <$GPUCTL_INPUT_MUCH", f"{server.url}/much") == "400000\n"
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_an_input_that_changes_between_two_halves_is_begun_anew(server: FileServer) -> None:
    server.files["/changed"] = random_bytes(400_000)
    server.stops["/changed"] = 150_000
    with cluster_of([1], *LOOPBACK) as cluster:
        job = cluster.api.submit(["sh", "-c", "sha256sum <$GPUCTL_INPUT_CHANGED | cut -c-64"], inputs=[f"{server.url}/changed"])
        assert server.stopped.wait(60)
        cluster.agents[0].kill(signal.SIGKILL)
        server.files["/changed"] = content = random_bytes(300_000)
        server.go.set()
        cluster.agents[0].start()
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job).strip() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("how", ["untagged", "no_head", "redirect"])
def test_servers_differ(cluster: Cluster, server: FileServer, how: str) -> None:
    server.files[f"/{how}"] = content = how.encode() * 1000
    if how == "redirect":
        server.files["/elsewhere"] = server.files.pop("/redirect")
        server.redirects["/redirect"] = f"{server.url}/elsewhere"
    else:
        getattr(server, how).add(f"/{how}")
    assert ran(cluster, "cat $GPUCTL_INPUT_X", f"x={server.url}/{how}?signature=s") == content.decode()


def test_https_is_checked_against_the_authorities_of_the_node(tmp_path: Path) -> None:
    init = ["init", "--state", str(tmp_path / "authority"), "--config", str(tmp_path / "authority.conf"), "--listen", "127.0.0.1:0"]
    subprocess.run([str(GPUCTLD), *init], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "authority/tls/server.pem", tmp_path / "authority/tls/server.key")
    server = FileServer(tls)
    server.files["/data"] = b"encrypted"
    options = ["--input-networks", "127.0.0.0/8"]
    try:
        with cluster_of([1], *options) as cluster:
            assert "certificate" in failed(cluster, f"{server.url}/data")["reason"].lower()
        authority = {"SSL_CERT_FILE": str(tmp_path / "authority/tls/ca.pem")}
        trusting = Cluster(tmp_path, [1], agent=options, agent_environment=authority).start()
        try:
            assert ran(trusting, "cat $GPUCTL_INPUT_DATA", f"{server.url}/data") == "encrypted"
        finally:
            trusting.stop()
    finally:
        server.stop()


@pytest.mark.parametrize(("path", "said"), [
    ("/absent", "the server answers 404 Not Found"),
    ("/forbidden", "the server answers 403 Forbidden"),
    ("/private", "the server answers 401 Unauthorized: name a secret with #secret=NAME"),
    ("/nameless", "has neither ETag nor Last-Modified, so nobody knows when it changes: name its content with #sha256=HEX"),
    ("/loop", "redirects"),
])  # fmt: skip
def test_a_job_whose_input_nobody_gives_fails_while_it_holds_no_gpu(cluster: Cluster, server: FileServer, path: str, said: str) -> None:
    server.statuses = {"/forbidden": 403}
    server.tokens["/private"] = "t"
    server.files["/private"] = server.files["/nameless"] = b"x"
    server.nameless.add("/nameless")
    server.redirects["/loop"] = f"{server.url}/loop"
    view = failed(cluster, f"{server.url}{path}?token=hidden")
    assert said in view["reason"] and "hidden" not in view["reason"], view["reason"]


def test_a_job_that_names_an_absent_input_twice_fails_and_its_node_goes_on(cluster: Cluster, server: FileServer) -> None:
    view = failed(cluster, f"a={server.url}/absent", f"b={server.url}/absent")
    assert "the server answers 404 Not Found" in view["reason"], view["reason"]
    assert all(agent.alive() for agent in cluster.agents), cluster.agents[0].said()
    server.files["/twice"] = b"x"
    assert ran(cluster, "cat $GPUCTL_INPUT_A $GPUCTL_INPUT_B", f"a={server.url}/twice", f"b={server.url}/twice") == "xx"


def test_a_server_that_is_away_for_a_while_costs_a_retry(cluster: Cluster, server: FileServer) -> None:
    server.statuses["/busy"] = 503
    job = cluster.api.submit(["true"], inputs=[f"{server.url}/busy"], infra_retries=0)
    view = cluster.api.wait(job)
    assert view["state"] == "FAILED" and "the server answers 503" in view["reason"], view


def test_inputs_come_from_the_networks_that_the_operator_allows_also_after_redirects(server: FileServer) -> None:
    server.files["/data"] = b"x"
    server.redirects["/metadata"] = "http://169.254.169.254/latest/meta-data/"
    server.redirects["/file"] = "file:///etc/passwd"
    with cluster_of([1], "--input-plain-http") as cluster:
        for url in (f"{server.url}/data", "http://[::1]:1/data", "http://169.254.169.254/latest", "http://localhost:1/data"):
            view = failed(cluster, f"x={url}")
            assert "which this node fetches nothing from" in view["reason"] and "--input-networks" in view["reason"], view["reason"]
    assert server.requests == []
    with cluster_of([1], *LOOPBACK) as cluster:
        assert "leads to 169.254.169.254, which" in failed(cluster, f"x={server.url}/metadata")["reason"]
        failed(cluster, f"x={server.url}/file")
    with cluster_of([1], "--input-networks", "127.0.0.0/8") as cluster:
        assert "fetched by https alone" in failed(cluster, f"x={server.url}/data")["reason"]


def test_a_node_keeps_inputs_within_its_limit_and_never_removes_one_in_use(server: FileServer) -> None:
    for name in "abcde":
        server.files[f"/{name}"] = random_bytes(400_000) + name.encode()
    with cluster_of([2], "--input-limit", "1M", *LOOPBACK) as cluster:
        kept = cluster.folder / "node0" / "inputs"

        def names() -> set[str]:
            return {path.name for path in kept.glob("*/data/*")}

        script = f"while [ ! -e {cluster.folder}/go ]; do sleep 0.05; done; wc -c <$GPUCTL_INPUT_A"
        using = cluster.api.submit(["sh", "-c", script], inputs=[f"{server.url}/a"])
        eventually(lambda: cluster.api.get(f"/v1/jobs/{using}")["state"] == "RUNNING", "a job to run")
        for name in "bc":
            assert ran(cluster, f"wc -c <$GPUCTL_INPUT_{name.upper()}", f"{server.url}/{name}") == "400001\n"
        eventually(lambda: names() == {"a", "c"}, "the input that was used longest ago to go")
        server.files["/huge"] = random_bytes(1_100_000)
        assert "keeps 1.0 MB of inputs: gpuagent --input-limit" in failed(cluster, f"{server.url}/huge")["reason"]
        cluster.agents[0].kill(signal.SIGKILL)
        cluster.agents[0].start()
        view = failed(cluster, *(f"{server.url}/{name}" for name in "de"))
        assert "there is no room for an input of 0.4 MB" in view["reason"], view["reason"]
        assert "a" in names()
        (cluster.folder / "go").touch()
        assert cluster.api.wait(using)["state"] == "SUCCEEDED" and cluster.api.log(using) == "400001\n"


def test_a_secret_opens_an_input_for_its_owner_alone(cluster: Cluster, server: FileServer) -> None:
    server.files["/private"] = server.files["/landing"] = b"for members"
    server.tokens["/private"] = "hf_0123456789"
    cluster.api.call("PUT", "/v1/secrets/HF_TOKEN", {"base64": "aGZfMDEyMzQ1Njc4OQo="})
    said = ran(cluster, "cat $GPUCTL_INPUT_PRIVATE", f"{server.url}/private#secret=HF_TOKEN")
    assert said == "for members"
    pin = f"sha256={hashlib.sha256(b'for members').hexdigest()}"
    assert ran(cluster, "cat $GPUCTL_INPUT_PRIVATE", f"{server.url}/private#secret=HF_TOKEN&{pin}") == said
    assert "401" in failed(cluster, f"{server.url}/private#{pin}")["reason"]
    assert "401" in failed(cluster, f"{server.url}/private")["reason"], "what was fetched with a secret is not given without it"
    with pytest.raises(Problem) as caught:
        cluster.user("somebody-else").submit(["true"], inputs=[f"{server.url}/private#secret=HF_TOKEN"])
    assert caught.value.field == "inputs[0]" and "no secret HF_TOKEN" in caught.value.body["detail"]


def test_a_token_goes_to_the_host_of_the_url_alone(cluster: Cluster, server: FileServer) -> None:
    other = FileServer()
    try:
        other.files["/landing"] = b"bytes"
        server.redirects["/there"] = f"{other.url.replace('127.0.0.1', '127.0.0.2')}/landing".replace("127.0.0.2", "localhost")
        cluster.api.call("PUT", "/v1/secrets/LEAKY", {"base64": "c2VjcmV0LXRva2Vu"})
        assert ran(cluster, "cat $GPUCTL_INPUT_THERE", f"{server.url}/there#secret=LEAKY") == "bytes"
        assert set(server.authorizations["/there"]) == {"Bearer secret-token"}
        assert set(other.authorizations["/landing"]) == {None}
    finally:
        other.stop()


def test_a_folder_of_a_volume_that_is_too_large_is_no_input(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "set"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    for number in range(100_000):
        (folder / str(number)).symlink_to("file")
    cluster = make_cluster(1, agent=[f"--volume=data={tmp_path}/shared"])
    said = "more than 100000 files, folders and links are in one folder"
    assert said in failed(cluster, "volume:data/set")["reason"], "nobody would know which files are missing"


@needs_owners
def test_an_input_is_copied_out_of_a_volume() -> None:
    with passable_folder() as folder:
        data = folder / "shared"
        (data / "set" / "a").mkdir(parents=True)
        for path in (data, data / "set", data / "set" / "a"):
            path.chmod(0o755)
        (data / "set" / "a" / "one").write_text("1")
        (data / "set" / "two").write_text("22")
        (data / "set" / "link").symlink_to("/etc/passwd")
        (data / "hidden").write_text("x")
        (data / "hidden").chmod(0o600)
        cluster = Cluster(folder, [1], agent=["--run-as", "owner", f"--volume=data={data}:ro"]).start()
        try:
            assert ran(cluster, "cd $GPUCTL_INPUT_SET; find . -type f | sort; cat a/one two", "volume:data/set") == "./a/one\n./two\n122"
            assert ran(cluster, "cat $GPUCTL_INPUT_TWO; ls -1 $(dirname $GPUCTL_INPUT_TWO)", "volume:data/set/two") == "22two\n"
            (data / "set" / "two").write_text("222")
            assert ran(cluster, "cat $GPUCTL_INPUT_SET/two", "volume:data/set") == "222"
            assert "No such file" in failed(cluster, "volume:data/absent")["reason"]
            assert "inputs are read without rights" in failed(cluster, "volume:data/hidden")["reason"]
            with pytest.raises(Problem) as caught:
                cluster.api.submit(["true"], inputs=["volume:unknown/x"])
            assert "volume unknown" in caught.value.body["detail"]
        finally:
            cluster.stop()


@pytest.mark.parametrize(("inputs", "field", "said"), [
    (["ftp://host/x"], "inputs[0]", "no URL that nodes can fetch"),
    (["/etc/passwd"], "inputs[0]", "no URL that nodes can fetch"),
    (["https://user:secret@host/x"], "inputs[0]", "a user or a password"),
    (["https:///x"], "inputs[0]", "is no URL"),
    (["https://host/a b"], "inputs[0]", "is no URL"),
    (["https://host/x#md5=1"], "inputs[0]", "options behind # that are none"),
    (["https://host/x#sha256=12"], "inputs[0]", "options behind # that are none"),
    (["https://host/x", "https://other/x"], "inputs[1]", "variable of another input"),
    (["a=https://host/x", "A=https://host/y"], "inputs[1]", "variable of another input"),
    (["https://host/x:/etc/x"], "inputs[0]", "folder of the system"),
    (["https://host/x:/a", "https://host/y:/a/b"], "inputs[1]", "where another input is"),
    (["https://host/%20x"], "inputs[0]", "no name that a variable can have"),
    (["s3://"], "inputs[0]", "names no bucket"),
    (["s3://bucket/a/../b"], "inputs[0]", "names no file"),
    (["s3://bucket/p/#sha256=" + "0" * 64], "inputs[0]", "is a folder"),
    (["volume:data/../x"], "inputs[0]", "names nothing in a volume"),
    (["volume:data/x#secret=S"], "inputs[0]", "takes no options"),
    (["https://host/x#secret=ABSENT"], "inputs[0]", "no secret ABSENT"),
    ([7], "inputs[0]", "must be a text"),
    (["https://host/" + "x" * 5000], "inputs[0]", "at most 4096 bytes"),
    ("https://host/x", "inputs", "an array"),
    ([f"https://host/{n}" for n in "abcdefghi"], "inputs", "at most 8"),
])  # fmt: skip
def test_inputs_that_cannot_be_are_refused_at_once(cluster: Cluster, inputs: object, field: str, said: str) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.post("/v1/jobs", {"gpus": 1, "command": ["true"], "inputs": inputs})
    body = caught.value.body
    assert body["field"] == field and said in body["detail"] and body["hint"], body


def test_gpuctl_and_its_words(cluster: Cluster, server: FileServer) -> None:
    server.files["/a,b.csv"] = b"with a comma"
    client = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    done = run_gpuctl("run", "--input", f"t={server.url}/a,b.csv", "--", "sh", "-c", "cat $GPUCTL_INPUT_T", env=client)
    assert done.returncode == 0 and done.stdout == "with a comma", done
