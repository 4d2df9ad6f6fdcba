# SPDX-License-Identifier: Apache-2.0
"""Inputs from S3: objects and folders of objects, with a secret and without."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Cluster
from owners import cluster_of
from s3_server import CREDENTIALS, SECRET, S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    objects = S3Server()
    yield objects
    objects.stop()


@pytest.fixture(scope="module")
def cluster(server: S3Server) -> Iterator[Cluster]:
    with cluster_of([1], "--s3-endpoint", server.url) as shared:
        set_secret(shared, "S3_KEY", CREDENTIALS)
        yield shared


def set_secret(cluster: Cluster, name: str, text: str) -> None:
    cluster.api.call("PUT", f"/v1/secrets/{name}", {"base64": base64.b64encode(text.encode()).decode()})


def ran(cluster: Cluster, script: str, *inputs: str) -> str:
    job = cluster.api.submit(["sh", "-c", script], inputs=list(inputs))
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    return cluster.api.log(job)


def failed(cluster: Cluster, *inputs: str) -> Any:
    view = cluster.api.wait(cluster.api.submit(["true"], inputs=list(inputs), infra_retries=0))
    assert view["state"] == "FAILED", view
    return view["reason"]


def test_an_object_is_an_input(cluster: Cluster, server: S3Server) -> None:
    key = "models/with space+plus&more=é.bin"
    server.files[f"/bucket/{key}"] = b"weights"
    for _ in range(2):
        said = ran(cluster, 'cat "$GPUCTL_INPUT_W"; basename "$GPUCTL_INPUT_W"', f"w=s3://bucket/{key}#secret=S3_KEY")
        assert said == "weightswith space+plus&more=é.bin\n"
    assert len(server.gets("/bucket/models/with%20space%2Bplus%26more%3D%C3%A9.bin")) == 1


def test_all_objects_below_a_prefix_are_a_folder(cluster: Cluster, server: S3Server) -> None:
    for number in range(5):
        server.files[f"/bucket/set/part {number}/data+{number}.txt"] = str(number).encode() * 3
    server.files["/bucket/set/"] = b""
    server.files["/bucket/settings"] = b"another"
    script = "cd $GPUCTL_INPUT_SET && find . -type f | sort | tr '\\n' ' ' && cat */*"
    expected = " ".join(f"./part {n}/data+{n}.txt" for n in range(5)) + " " + "".join(str(n) * 3 for n in range(5))
    lists = server.lists
    assert ran(cluster, script, "s3://bucket/set/#secret=S3_KEY") == expected
    assert server.lists - lists == 6, "three pages for the probe, and again for the fetch"
    asked = len(server.requests)
    assert ran(cluster, script, "s3://bucket/set/#secret=S3_KEY") == expected
    assert [method for method, path, _, _ in server.requests[asked:] if path.strip("/") != "bucket"] == [], "only the list was looked at"
    server.files["/bucket/set/part 4/data+4.txt"] = b"new"
    assert ran(cluster, script, "s3://bucket/set/#secret=S3_KEY").endswith("333new")


def test_a_public_bucket_needs_no_secret_and_others_do(cluster: Cluster, server: S3Server) -> None:
    server.public.add("open")
    server.files["/open/x"] = server.files["/bucket/x"] = b"x"
    assert ran(cluster, "cat $GPUCTL_INPUT_X", "s3://open/x") == "x"
    assert "403 Forbidden" in failed(cluster, "s3://bucket/x")
    assert "404 Not Found" in failed(cluster, "s3://bucket/absent#secret=S3_KEY")
    assert "there is no object below it" in failed(cluster, "s3://bucket/absent/#secret=S3_KEY")


def test_wrong_credentials_are_said_and_their_values_are_not(cluster: Cluster, server: S3Server) -> None:
    set_secret(cluster, "WRONG", CREDENTIALS.replace(SECRET, "wrong" * 8))
    set_secret(cluster, "ELSE", "a token")
    reason = failed(cluster, "s3://bucket/set/#secret=WRONG")
    assert "The request signature we calculated does not match" in reason and "wrong" not in reason
    reason = failed(cluster, "s3://bucket/set/#secret=ELSE")
    assert "has no lines aws_access_key_id = ..." in reason and "a token" not in reason


def test_a_session_goes_with_its_keys(cluster: Cluster, server: S3Server) -> None:
    set_secret(cluster, "TEMPORARY", f"{CREDENTIALS}aws_session_token = the/session+token==\n")
    server.session = "the/session+token=="
    server.files["/bucket/t"] = b"t"
    try:
        assert ran(cluster, "cat $GPUCTL_INPUT_T", "s3://bucket/t#secret=TEMPORARY") == "t"
        assert "The session is wrong" in failed(cluster, "other=s3://bucket/set/#secret=S3_KEY")
    finally:
        server.session = None


def test_a_key_that_leads_out_of_the_folder_is_refused(cluster: Cluster, server: S3Server) -> None:
    server.files["/bucket/evil/../../../etc/x"] = b"x"
    assert "cannot be a file" in failed(cluster, "s3://bucket/evil/#secret=S3_KEY")
