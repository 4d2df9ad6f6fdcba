# SPDX-License-Identifier: Apache-2.0
"""Searches of output: every line once over all pages, bounded work whatever is searched for, and errors found by their signs."""

from __future__ import annotations

import random
import re
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl
from paper_node import PaperNode

MIB = 1024 * 1024
LINE = 4096  # of a longer line each such piece counts as a line
SEARCHED = 16 * MIB  # by one answer
ENDS = re.compile(rb"\r\n|\n|\r")


def search(cluster: Cluster, job: str, **query: Any) -> Any:
    return cluster.api.get(f"/v1/jobs/{job}/logs/search?{urllib.parse.urlencode(query)}")


def pages(cluster: Cluster, job: str, **query: Any) -> Iterator[Any]:
    """All pages of a search, each with what it looked at."""
    cursor: dict[str, str] = {}
    while True:
        page = search(cluster, job, **query, **cursor)
        yield page
        if page["next"] is None:
            return
        assert page["next"] != cursor.get("cursor"), "a page gets on"
        cursor = {"cursor": page["next"]}


def matches(cluster: Cluster, job: str, **query: Any) -> list[Any]:
    return [match for page in pages(cluster, job, **query) for match in page["matches"]]


def lines_of(text: bytes) -> dict[int, bytes]:
    """The lines of a stream by their offsets, as a search counts them."""
    found, at = {}, 0
    for part in re.split(rb"(\r\n|\n|\r)", text):
        if not ENDS.fullmatch(part):
            for piece in range(0, max(len(part), 1), LINE):
                found[at + piece] = part[piece : piece + LINE]
        at += len(part)
    if found and at in found and not found[at]:
        del found[at]  # nothing is behind the last end
    return found


class Talker:
    """A job of a node of paper, whose ranks say what a test has them say, cut where it likes."""

    def __init__(self, cluster: Cluster, node: PaperNode, ranks: int):
        self.cluster, self.node = cluster, node
        self.job = cluster.api.submit(["true"], gpus=ranks, gpu_type="paper")
        eventually(lambda: cluster.api.job(self.job)["attempt"] == 1, "an attempt")
        (attempt,) = cluster.api.get(f"/v1/jobs/{self.job}/attempts")["attempts"]
        self.epoch = attempt["epoch"]
        self.streams: dict[tuple[int, str], bytes] = {}

    def say(self, rank: int, stream: str, text: bytes) -> None:
        before = self.streams.get((rank, stream), b"")
        where = f"epoch={self.epoch}&node={self.node.name}&rank={rank}&stream={stream}&offset={len(before)}"
        status, _, body = self.node.api.raw("POST", f"/v1/agent/logs?{where}", text, {"Content-Type": "application/octet-stream"})
        assert status == 200, body
        self.streams[rank, stream] = before + text

    def expected(self, wanted: re.Pattern[bytes]) -> set[tuple[int, str, int, str]]:
        return {
            (rank, stream, at, line.decode("utf-8", "replace"))
            for (rank, stream), text in self.streams.items()
            for at, line in lines_of(text).items()
            if wanted.search(line)
        }

    def close(self) -> None:
        self.cluster.api.post(f"/v1/jobs/{self.job}/cancel")
        self.node.api.post(
            "/v1/agent/report", {**self.node.who(), "epoch": int(self.epoch), "kind": "exited", "ranks": [], "flushed": True}
        )
        self.cluster.api.wait(self.job)


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Iterator[PaperNode]:
    made = PaperNode(cluster, "paper", 8, ["paper"] * 8)
    eventually(lambda: "paper" in cluster.nodes(), "the node of paper")
    yield made
    made.close()


@pytest.fixture
def talker(cluster: Cluster, node: PaperNode) -> Iterator[Talker]:
    made = Talker(cluster, node, 4)
    yield made
    made.close()


def peak(cluster: Cluster) -> int:
    """The most memory that the controller has had, in bytes."""
    process = cluster.controller.process
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])


def found(all_matches: list[Any]) -> list[tuple[int, str, int, str]]:
    return [(one["rank"], one["stream"], one["offset"], one["text"]) for one in all_matches]


def test_the_pages_of_a_search_have_every_line_once_however_the_output_was_cut(cluster: Cluster, talker: Talker) -> None:
    """Ranks and streams in turn; pieces of one byte and more, and lines that end with all kinds of ends or are too long."""
    dice = random.Random(7)
    ends = [b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n"]
    waiting = {
        (rank, stream): b"".join(
            dice.choice(
                [b"step %d loss needle" % n, b"step %d" % n, b"needle", b"", b"x" * dice.choice([4095, 4096, 4097, 9000]) + b"needle"]
            )
            + dice.choice(ends)
            for n in range(60)
        )
        + b"a last needle without an end"
        for rank in range(4)
        for stream in ("stdout", "stderr")
    }
    while waiting:
        key = dice.choice(sorted(waiting))
        size = dice.choice([1, 2, 7, 100, 5000, 20000])
        talker.say(*key, waiting[key][:size])
        waiting[key] = waiting[key][size:]
        if not waiting[key]:
            del waiting[key]
    for query, wanted in (
        ({"q": "needle"}, b"needle"),
        ({"q": "^step [0-9]*5$", "regex": 1}, b"^step [0-9]*5$"),
        ({"q": "LOSS", "case": 0}, b"loss"),
    ):
        expected = talker.expected(re.compile(wanted))
        assert len(expected) > 5
        for limit in (1, 7, 200):
            got = found(matches(cluster, talker.job, **query, limit=limit))
            wrong = [(rank, stream, at, len(text)) for rank, stream, at, text in sorted(set(got) ^ expected)]
            assert len(got) == len(set(got)) and wrong == [], (query, limit)
    of_one = found(matches(cluster, talker.job, q="needle", rank=2, stream="stderr"))
    assert set(of_one) == {one for one in talker.expected(re.compile(b"needle")) if one[:2] == (2, "stderr")}
    assert [one[2] for one in of_one] == sorted(one[2] for one in of_one)


def test_a_match_says_where_it_is_and_output_goes_on_from_there(cluster: Cluster, talker: Talker) -> None:
    talker.say(1, "stdout", b"first\nsecond\nthird\n")
    talker.say(0, "stdout", b"of another\n")
    (match,) = search(cluster, talker.job, q="second")["matches"]
    assert (match["rank"], match["stream"], match["attempt"], match["offset"], match["text"], match["cut"]) == (
        1,
        "stdout",
        1,
        6,
        "second",
        False,
    )
    assert match["at"].startswith("20")
    path = f"/v1/jobs/{talker.job}/logs"
    assert cluster.api.raw("GET", f"{path}?rank=1", headers={"Range": "bytes=6-"})[2] == b"second\nthird\n"
    (event, *_) = cluster.api.stream(f"{path}?follow=0", match["id"])
    assert "second\\nthird" in event["data"] and "first" not in event["data"]


def test_a_match_is_said_with_bytes_that_are_no_text_and_of_a_long_line_a_piece(cluster: Cluster, talker: Talker) -> None:
    talker.say(0, "stdout", b"\xff needle\n" + b"y" * 5000 + b"needle\n")
    first, second = search(cluster, talker.job, q="needle")["matches"]
    assert first["text"] == "\ufffd needle"
    assert second["offset"] == 9 + LINE and not second["cut"] and len(second["text"]) == 5000 - LINE + 6
    (whole,) = search(cluster, talker.job, q="^y+$", regex=1)["matches"]
    assert whole["cut"] and whole["text"] == "y" * LINE


def test_an_answer_looks_at_a_bounded_part_and_its_cursor_goes_on(cluster: Cluster, talker: Talker) -> None:
    line = b"z" * 99 + b"\n"
    for piece in range(40):
        talker.say(piece % 2, "stdout", line * (MIB // 100) + (b"needle %d\n" % piece))
    began = list(pages(cluster, talker.job, q="needle"))
    assert all(page["scanned"] <= SEARCHED + 2 * LINE for page in began)
    assert sum(page["scanned"] for page in began) >= sum(map(len, talker.streams.values()))
    assert len(began) >= 3 and [match["text"] for page in began for match in page["matches"]] == [f"needle {n}" for n in range(40)]


HOSTILE = {
    "states without end": ("(z|y)*z(z|y){60}", b"z" * 40 + b"yzyyzzy"),
    "a plus of pluses": ("((z+)+)+y$", b"z"),
    "alternatives": ("(z|zz|zzz|zzzz)+y", b"z"),
    "a long repetition": ("(z{4}){40}y", b"z"),
    "from every place": ("z*z*z*z*z*z*y", b"z"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression_keeps_nobody_waiting(cluster: Cluster, talker: Talker, name: str) -> None:
    expression, text = HOSTILE[name]
    talker.say(0, "stdout", (text * (MIB // len(text)))[:MIB])
    for piece in range(100):
        talker.say(1, "stdout", (text * 40)[: 37 * (piece + 1)] + b"\n")
    page: dict[str, Any] = {"next": None}
    for _ in range(5):
        begin = time.monotonic()
        page = search(cluster, talker.job, q=expression, regex=1, **({"cursor": page["next"]} if page["next"] else {}))
        assert time.monotonic() - begin < 5
        began = time.monotonic()
        cluster.api.get("/v1/overview")
        assert time.monotonic() - began < 2
    assert peak(cluster) < 512 * MIB


@pytest.mark.parametrize(
    "query, field, said",
    [
        ("", "q", "q is missing"),
        ("q=", "q", "empty"),
        ("q=a&errors=1", "q", "exclude"),
        ("q=" + "a" * 257, "q", "at most 256"),
        ("q=a%0Ab", "q", "end of a line"),
        ("q=(a&regex=1", "q", "no regular expression"),
        ("q=(a)%5C1&regex=1", "q", "back-reference"),
        ("q=((a{90}){90}){90}&regex=1", "q", "repeats too much"),
        ("q=a{99999999999999999999}&regex=1", "q", "repeats too much"),
        ("q=(a*)*&regex=1", "q", "may be nothing"),
        ("q=" + "(" * 20 + "a" + ")%2B" * 20 + "&regex=1", "q", "repeats too much"),
        ("q=a" + "%2B" * 42 + "&regex=1", "q", "repeats what is repeated already"),
        ("q=a&regex=2", "regex", "regex"),
        ("q=a&rank=4", "rank", "rank"),
        ("q=a&stream=metrics", "stream", "not a stream of output"),
        ("q=a&attempt=2", "attempt", "attempt"),
        ("q=a&limit=0", "limit", "limit"),
        ("q=a&limit=201", "limit", "limit"),
        ("q=a&cursor=x", "cursor", "not one of this search"),
        ("q=a&attempt=1&cursor=2.0.0", "cursor", "not one of this search"),
    ],
)
def test_a_wrong_search_is_refused_by_its_field(cluster: Cluster, talker: Talker, query: str, field: str, said: str) -> None:
    with pytest.raises(Problem) as problem:
        cluster.api.get(f"/v1/jobs/{talker.job}/logs/search?{query}")
    assert problem.value.status == 422 and problem.value.body["field"] == field and said in problem.value.body["detail"]


@pytest.mark.parametrize("cursor", ["1.0.99999999", "1.99999999.0", "9.0.0", "1.0.1"])
def test_a_cursor_of_somebody_s_own_finds_at_most_what_there_is(cluster: Cluster, talker: Talker, cursor: str) -> None:
    talker.say(0, "stdout", b"needle\n" * 3)
    assert len(search(cluster, talker.job, q="needle", cursor=cursor)["matches"]) <= 3


def test_brackets_and_escapes_in_an_expression_are_no_repetitions(cluster: Cluster, talker: Talker) -> None:
    talker.say(0, "stdout", b"a{9999}\n]{9999}\nb\\1\n")
    assert [match["text"] for match in matches(cluster, talker.job, q="[]{][9]*[{9][9]{3}", regex=1)] == ["a{9999}", "]{9999}"]
    assert [match["text"] for match in matches(cluster, talker.job, q="a\\{9999\\}", regex=1)] == ["a{9999}"]
    assert [match["text"] for match in matches(cluster, talker.job, q="A{9999}", case=0)] == ["a{9999}"]


def test_a_job_of_somebody_else_and_an_array_are_not_searched(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], gpu_type="cpu")
    with pytest.raises(Problem, match="404"):
        cluster.user("somebody").get(f"/v1/jobs/{job}/logs/search?q=a")
    array = cluster.api.post("/v1/jobs", {"command": ["echo", "{task}"], "gpus": 1, "gpu_type": "cpu", "array": {"tasks": 2}})["id"]
    with pytest.raises(Problem, match="name a task"):
        cluster.api.get(f"/v1/jobs/{array}/logs/search?q=a")
    cluster.api.wait(array)
    assert [match["text"] for match in matches(cluster, f"{array}.1", q="1")] == ["1"]


ERRORS = [
    "Traceback (most recent call last):",
    "ValueError: the shape is wrong",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "node0:12:34 [0] NCCL WARN Net : Connection refused",
    "Segmentation fault (core dumped)",
    "sh: line 1:   123 Killed                  python train.py",
    "Killed",
    "2026-11-27 12:00:00 ERROR the disk is gone",
    "[rank0]: error: no such option",
    "gcc: fatal error: no input files",
    "subprocess.CalledProcessError: Command 'false' returned non-zero exit status 1.",
    "python3: can't open file '/x/train.py': [Errno 2] No such file or directory",
]
FINE = ["Mean Squared Error: 0.25", "errors: 0", "0 errors", "no exception was raised", "KilledProcesses=0", "loss 0.1", "terror: none"]


def test_lines_that_look_like_an_error_are_found_and_others_are_not(cluster: Cluster, talker: Talker) -> None:
    talker.say(0, "stderr", "\n".join(line for pair in zip(ERRORS, FINE * 2, strict=False) for line in pair).encode() + b"\n")
    assert [match["text"] for match in matches(cluster, talker.job, errors=1)] == ERRORS


def test_the_first_error_is_the_one_that_came_first_of_all_ranks(cluster: Cluster, talker: Talker) -> None:
    talker.say(3, "stderr", b"ValueError: the cause\n")
    talker.say(0, "stderr", b"RuntimeError: another rank has gone\n")
    assert [match["rank"] for match in search(cluster, talker.job, errors=1, limit=1)["matches"]] == [3]


def test_gpuctl_greps_the_output_of_a_job(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "echo rank $RANK says needle; echo no; echo ValueError: needle >&2"], gpus=2, gpu_type="cpu")
    cluster.api.wait(job)

    def gpuctl(*arguments: str) -> tuple[int, list[str]]:
        ran = run_gpuctl(
            "--url", cluster.url, "logs", job, *arguments, env={"GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
        )
        return ran.returncode, sorted((ran.stdout + ran.stderr).splitlines())

    assert gpuctl("--grep", "says needle") == (0, ["[0] rank 0 says needle", "[1] rank 1 says needle"])
    assert gpuctl("--grep", "^no$", "--rank", "1") == (0, ["no"])
    assert gpuctl("--grep", "NEEDLE", "--ignore-case", "--stream", "stderr") == (0, ["[0] ValueError: needle", "[1] ValueError: needle"])
    assert gpuctl("--grep", "(", "--fixed-strings") == (1, [])
    assert gpuctl("--errors") == (0, ["[0] ValueError: needle", "[1] ValueError: needle"])
    assert gpuctl("--grep", "nowhere") == (1, [])
    code, said = gpuctl("--grep", "(")
    assert code == 2 and "no regular expression" in " ".join(said)
    code, said = gpuctl("--grep", "a", "--errors")
    assert code == 2 and "exclude each other" in " ".join(said)
    code, said = gpuctl("--grep", "a", "--follow")
    assert code == 2 and "--follow" in " ".join(said)
