# SPDX-License-Identifier: Apache-2.0
"""The form to submit a job: its container image, inputs, volumes and labels, and the page of the job that has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness import Cluster
from reader import Reader, in_chromium, opened, with_axe
from test_secrets_page import button, field

pytestmark = in_chromium

IMAGE = "registry.example.org/train@sha256:" + "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node that has a volume."""
    folder = tmp_path_factory.mktemp("submit")
    (folder / "data/set").mkdir(parents=True)
    (folder / "data/set/a.txt").write_text("from the volume\n")
    cluster = Cluster(folder, [2], agent=[f"--volume=data={folder}/data"]).start()
    try:
        yield cluster
    finally:
        cluster.stop()


def facts(reader: Reader) -> dict[str, str]:
    names = reader.tab.locator("dl").first.locator("dt").all_inner_texts()
    return dict(zip(names, reader.tab.locator("dl").first.locator("dd").all_inner_texts(), strict=True))


def test_a_job_gets_inputs_volumes_and_labels_from_the_form_and_its_page_shows_them(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("filler")
    reader = opened(browser, user, cluster.url, "/submit")
    field(reader, "Command").fill('sh -c \'cat "$GPUCTL_INPUT_SET/a.txt" "$GPUCTL_VOLUME_DATA/set/a.txt"; sleep 1000\'')
    field(reader, "Name").fill("filled")
    field(reader, "Inputs, one a line").fill("set=volume:data/set\n\n")
    field(reader, "Volumes, one a line").fill("  data:ro")
    field(reader, "Labels, one a line").fill("phase=2\nteam=a=b\nempty=")
    options = "--input set=volume:data/set --volume data:ro --label phase=2 --label team=a=b --label empty="
    reader.sees("no node has its environment ready", options)
    reader.shoot("page-submit-data")
    button(reader, "Submit").click()
    reader.sees("RUNNING", "from the volume\nfrom the volume")
    (job,) = user.get("/v1/jobs?name=filled&label=team%3Da%3Db")["jobs"]
    spec = user.job(job["id"])["spec"]
    assert (spec["inputs"], spec["volumes"]) == (["set=volume:data/set"], ["data:ro"])
    assert spec["labels"] == {"phase": "2", "team": "a=b", "empty": ""} and "image" not in spec
    told = facts(reader)
    assert (told["Inputs"], told["Volumes"], told["Labels"]) == ("set=volume:data/set", "data:ro", "phase=2, team=a=b, empty=")
    user.post(f"/v1/jobs/{job['id']}/cancel")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_a_job_keeps_its_checkpoints_on_one_of_its_volumes(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("keeper")
    reader = opened(browser, user, cluster.url, "/submit")
    field(reader, "Command").fill("sleep 1000")
    assert field(reader, "Checkpoint volume").is_disabled()
    field(reader, "Volumes, one a line").fill("data:ro")
    field(reader, "Checkpoint volume").fill("data")
    reader.sees("checkpoint_volume")
    field(reader, "Volumes, one a line").fill("data")
    reader.sees("--volume data --checkpoint-volume data -- sleep 1000", "It would start now.")
    button(reader, "Submit").click()
    reader.sees("RUNNING")
    told = facts(reader)
    assert (told["Volumes"], told["Checkpoint volume"]) == ("data", "data")
    (job,) = user.get("/v1/jobs")["jobs"]
    user.post(f"/v1/jobs/{job['id']}/cancel")
    assert len(reader.said) == 1 and "422" in reader.said[0] and reader.fits()  # the browser's word on what was refused
    reader.context.close()


def test_a_job_asks_for_an_image_and_the_secret_to_pull_it(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("puller")
    user.call("PUT", "/v1/secrets/REGISTRY", {"value": '{"auths": {}}'})
    reader = opened(browser, user, cluster.url, "/submit")
    field(reader, "Command").fill("python train.py")
    assert field(reader, "Secret of the image").is_disabled()
    field(reader, "Container image").fill("Not An Image")
    reader.sees("image must be the name of an image")
    field(reader, "Container image").fill(IMAGE)
    field(reader, "Secret of the image").fill("REGISTRY")
    assert reader.tab.locator("datalist#secrets option").evaluate_all("all => all.map(one => one.value)") == ["REGISTRY"]
    reader.sees(f"gpuctl submit --gpus 1 --image {IMAGE} --image-secret REGISTRY -- python train.py", "no node has its environment ready")
    field(reader, "Container image").fill("")
    reader.sees("gpuctl submit --gpus 1 -- python train.py", "It would start now.")
    field(reader, "Container image").fill(IMAGE)
    field(reader, "Secret of the image").fill("NONE")
    button(reader, "Submit").click()
    reader.tab.get_by_role("alert").wait_for()
    assert "NONE" in reader.tab.get_by_role("alert").inner_text() and user.get("/v1/jobs")["jobs"] == []
    job = user.submit(["true"], hold=True, image=IMAGE, image_secret="REGISTRY")
    reader.tab.goto(f"{cluster.url}/#/jobs/{job}")
    reader.sees("HELD")
    assert facts(reader)["Image"] == IMAGE
    user.post(f"/v1/jobs/{job}/cancel")
    assert reader.fits()
    reader.context.close()


def test_lines_that_are_no_labels_are_said_and_nothing_is_sent(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("typist")
    reader = opened(browser, user, cluster.url, "/submit")
    field(reader, "Command").fill("true")
    wrong = {
        "a=1\nno value": 'A label is NAME=VALUE, and "no value" is not.',
        "=1": '"=1" is not.',
        "a=1\na=2": "The label a is there twice.",
    }
    for text, said in wrong.items():
        field(reader, "Labels, one a line").fill(text)
        reader.sees(said)
        button(reader, "Submit").click()
        assert said in reader.tab.get_by_role("alert").inner_text()
        assert field(reader, "Labels, one a line").input_value() == text
    field(reader, "Labels, one a line").fill("a=1")
    reader.sees("It would start now.", "--label a=1")
    assert user.get("/v1/jobs")["jobs"] == [] and reader.said == []
    reader.context.close()


@with_axe
@pytest.mark.parametrize(("dark", "width"), [(False, 1300), (True, 400)], ids=["light", "dark-narrow"])
def test_axe_has_no_findings_on_the_form(cluster: Cluster, browser: Any, dark: bool, width: int) -> None:
    reader = opened(browser, cluster.user("axe"), cluster.url, "/submit", dark=dark, width=width)
    field(reader, "Command").fill("python train.py")
    field(reader, "Labels, one a line").fill("no value")
    field(reader, "Inputs, one a line").fill("s3://bucket/a-rather-long-prefix/of/a/data-set/#secret=S3_KEY:/data/images")
    reader.sees('"no value" is not.')
    reader.shoot(f"page-submit-{width}")
    assert reader.findings() == [] and reader.said == [] and reader.fits()
    reader.context.close()
