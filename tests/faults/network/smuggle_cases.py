# SPDX-License-Identifier: Apache-2.0
"""Requests that two readers could understand differently, each with the one status that it must get.

A case is the bytes of a request, in which H0ST stands for the controller's own name and T for a token. Behind each the test sends a
second, good request: it must be answered only where the first one was understood, so that nothing of a refused request is ever taken
for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    request: bytes
    #: The status of the reply; 0: the connection ends without one.
    status: int
    #: Whether the connection goes on: then the request behind it is answered.
    goes_on: bool = False
    #: Whether the HTTP library refuses it before it calls us: it does so with a page of HTML, without a type.
    by_library: bool = False


TOKEN = "Authorization: Bearer T\r\n"
HOST = "Host: H0ST\r\n"
JSON = "Content-Type: application/json\r\n"
#: A plan of nothing is understood, and refused for what it says: 422.
PLAN = "POST /v1/plan HTTP/1.1\r\n" + HOST + TOKEN + JSON
UNDERSTOOD = 422


def lengths() -> Iterator[Case]:
    """Content-Length, alone and in company."""

    def plan(name: str, headers: str, status: int, *, body: str = "{}", goes_on: bool = False, by_library: bool = False) -> Case:
        return Case(f"length: {name}", (PLAN + headers + "\r\n" + body).encode("latin1"), status, goes_on, by_library)

    yield plan("good", "Content-Length: 2\r\n", UNDERSTOOD, goes_on=True)
    yield plan("leading zeros", "Content-Length: 0002\r\n", UNDERSTOOD, goes_on=True)
    for second in ("2", "3", "0", "2 "):
        yield plan(f"twice, 2 and {second!r}", f"Content-Length: 2\r\nContent-Length: {second}\r\n", 400)
    yield plan("twice, other case", "Content-Length: 2\r\ncontent-length: 2\r\n", 400)
    for wrong in ("+2", "-1", "2, 2", "2,2", "0x2", "2 2", "1e1", "2.0", "", "two", "2;", "0b10", "٢", "２", "2_0"):
        text = wrong.encode().decode("latin1")
        yield plan(f"{wrong!r}", f"Content-Length: {text}\r\n", 400, by_library=True)
    yield plan("above 64 bits", "Content-Length: 18446744073709551618\r\n", 413, by_library=True)
    yield plan("above 63 bits", "Content-Length: 9223372036854775808\r\n", 400)
    yield plan("10 GiB", "Content-Length: 10737418240\r\n", 413)
    for name in ("Content-Length ", "Content-Length\t", " Content-Length", "\tContent-Length"):
        yield plan(f"space in {name!r}", f"{name}: 2\r\n", 400)
    for name in ("Content_Length", "Content-Length2", "X-Content-Length", "Content\xa0Length"):
        status = 400 if "\xa0" in name else 411
        yield plan(f"none, but {name!r}", f"{name}: 2\r\n", status, body="", goes_on=status == 411)
    yield plan("none", "", 411, body="", goes_on=True)
    for fold in (
        "Content-Length: 2\r\n 2\r\n",
        "Content-Length:\r\n 2\r\n",
        "Content-Leng: 2\r\n th\r\n",
        "X-Own: a\r\n Content-Length: 2\r\n",
    ):
        yield plan(f"folded {fold!r}", fold, 400)
    for control in "\x00\x01\x0b\x0c\x0d\x1f\x7f":
        yield plan(f"behind {control!r} in a value", f"X-Own: a{control}Content-Length: 2\r\nContent-Length: 2\r\n", 400)
    for control in "\x00\x01\x0b\x0c\x0d\x7f":
        yield plan(f"{control!r} behind the number", f"Content-Length: 2{control}\r\n", 400, by_library=control != "\x00")


def codings() -> Iterator[Case]:
    """Transfer-Encoding, alone and in company."""
    chunks = "2\r\n{}\r\n0\r\n\r\n"

    def plan(name: str, headers: str, status: int, *, goes_on: bool = False, version: str = "1.1") -> Case:
        start = PLAN.replace("HTTP/1.1", f"HTTP/{version}")
        return Case(f"coding: {name}", (start + headers + "\r\n" + chunks).encode("latin1"), status, goes_on)

    for good in ("chunked", "Chunked", "CHUNKED"):
        yield plan(good, f"Transfer-Encoding: {good}\r\n", UNDERSTOOD, goes_on=True)
    yield plan("tab before", "Transfer-Encoding:\tchunked\r\n", UNDERSTOOD, goes_on=True)
    for wrong in (
        "xchunked", "chunkedx", "chunked, chunked", "chunked,", ", chunked", "gzip, chunked", "gzip", "identity", "identity, chunked",
        "chunked;q=1",
        '"chunked"', "chunked ", "chunked\t", "", "chunke", "chunked chunked", "\xa0chunked", "chu\u0131ked".encode().decode("latin1"),
        "deflate", "br",
        "trailers", "chunked, identity", "0", "true",
    ):  # fmt: skip
        yield plan(f"{wrong!r}", f"Transfer-Encoding: {wrong}\r\n", 400)
    for control in "\x00\x01\x0b\x0c\x0d\x1f\x7f":
        for value in (f"{control}chunked", f"chunked{control}", f"x{control}chunked", f"chunked{control}x"):
            yield plan(f"{value!r}", f"Transfer-Encoding: {value}\r\n", 400)
    for other in ("chunked", "identity", "gzip", "x"):
        yield plan(f"twice, chunked and {other}", f"Transfer-Encoding: chunked\r\nTransfer-Encoding: {other}\r\n", 400)
        yield plan(f"twice, {other} and chunked", f"Transfer-Encoding: {other}\r\nTransfer-Encoding: chunked\r\n", 400)
    for length in ("0", "2", "12", "13", "999"):
        yield plan(f"with a length of {length}", f"Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n", 400)
        yield plan(f"behind a length of {length}", f"Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n", 400)
        yield plan(f"unknown, with a length of {length}", f"Content-Length: {length}\r\nTransfer-Encoding: cow\r\n", 400)
    for name in ("Transfer-Encoding ", "Transfer-Encoding\t", " Transfer-Encoding"):
        yield plan(f"space in {name!r}", f"{name}: chunked\r\n", 400)
    for fold in ("Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding: x\r\n chunked\r\n", "Transfer-Encod: chunked\r\n ing\r\n"):
        yield plan(f"folded {fold!r}", fold, 400)
    yield plan("in HTTP/1.0", "Transfer-Encoding: chunked\r\n", 400, version="1.0")


def chunks() -> Iterator[Case]:
    """The chunks themselves."""
    start = PLAN + "Transfer-Encoding: chunked\r\n\r\n"

    def plan(name: str, body: str, status: int = 400) -> Case:
        good = status == UNDERSTOOD
        return Case(f"chunk: {name}", (start + body).encode("latin1"), status, goes_on=good, by_library=not good)

    for body in (
        "2\r\n{}\r\n0\r\n\r\n", "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", "00002\r\n{}\r\n000\r\n\r\n", "2;a=b\r\n{}\r\n0;c\r\n\r\n",
        "2\r\n{}\r\n0\r\nX-Own: a\r\n\r\n",
        "2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n", "2\r\n{}\r\n0\r\nHost: evil\r\n\r\n",
        "2\r\n{}\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n",
        "a\r\n{        }\r\n0\r\n\r\n", "A\r\n{        }\r\n0\r\n\r\n",
    ):  # fmt: skip
        yield plan(f"good, {body!r}", body, UNDERSTOOD)
    for size in (
        "-2",
        "+2",
        "0x2",
        " 2",
        "2 ",
        "x",
        "",
        "2,2",
        "2\t",
        "\x002",
        "g",
        "2x",
        "\xb2",
        "0X2",
        "2.0",
        "''",
        "2h",
        "_2",
        "-0",
        "\t2",
    ):
        yield plan(f"size {size!r}", f"{size}\r\n{{}}\r\n0\r\n\r\n")
    yield plan("size above 64 bits", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n", 413)
    for tail in ("{}0\r\n\r\n", "{}xx\r\n0\r\n\r\n", "{} \r\n0\r\n\r\n", "{}\r\r\n0\r\n\r\n"):
        yield plan(f"data that do not end, {tail!r}", f"2\r\n{tail}")


def first_lines() -> Iterator[Case]:
    """The first line: method, target, version."""

    def line(name: str, text: str, status: int, *, goes_on: bool = False, by_library: bool = False) -> Case:
        return Case(f"line: {name}", (text + "\r\n" + HOST + "\r\n").encode("latin1"), status, goes_on, by_library)

    yield line("good", "GET /healthz HTTP/1.1", 200, goes_on=True)
    yield line("an empty line before", "\r\nGET /healthz HTTP/1.1", 200, goes_on=True)
    for method in ("get", "Get", "BREW", "TRACE", "OPTIONS", "PUT", "POST", "DELETE", "PATCH", "LINK", "G%45T", "GETX", "PROPFIND"):
        yield line(f"method {method}", f"{method} /healthz HTTP/1.1", 405, goes_on=True)
    yield line("CONNECT", "CONNECT H0ST HTTP/1.1", 400)
    yield line("no method", " /healthz HTTP/1.1", 0)
    yield line("tabs for spaces", "GET\t/healthz\tHTTP/1.1", 0)
    for spaces in (
        "GET  /healthz HTTP/1.1",
        "GET   /healthz HTTP/1.1",
        "GET /healthz  HTTP/1.1",
        "GET /healthz x HTTP/1.1",
        "GET /health z HTTP/1.1",
    ):
        yield line(f"spaces, {spaces!r}", spaces, 400)
    yield line("a space at the end", "GET /healthz HTTP/1.1 ", 400, by_library=True)
    for nul in (
        "GET\0 /healthz HTTP/1.1",
        "GET /healthz\0 HTTP/1.1",
        "GET /healthz\0z HTTP/1.1",
        "GET /healthz?a\0b HTTP/1.1",
        "GET /v1/jobs\0/x HTTP/1.1",
    ):
        yield line(f"NUL, {nul!r}", nul, 400)
    for version in ("HTTP/1.2", "HTTP/1.9"):
        yield line(version, f"GET /healthz {version}", 400)
    for version in (
        "",
        " http/1.1",
        " HTTP/1",
        " HTTP/1.",
        " HTTP/1.10",
        " HTTP/01.1",
        " HTTP/1,1",
        " HTTPS/1.1",
        " ICY/1.1",
        " HTTP /1.1",
    ):
        status = 400
        yield line(f"version {version!r}", f"GET /healthz{version}", status, by_library=True)
    for version in ("HTTP/2.0", "HTTP/3.0", "HTTP/0.9"):
        yield line(version, f"GET /healthz {version}", 505, by_library=True)
    yield Case("line: preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, by_library=True)
    yield Case("line: TLS to plain HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 0)
    for target in (
        "*", "http://H0ST/healthz", "https://H0ST/healthz", "http://evil/healthz", "//H0ST/healthz", "H0ST/healthz", "healthz", "?a=b",
        "/healthz#x", "/\\healthz",
        "//healthz", "/v1//jobs", "/./healthz", "/../healthz", "/v1/../healthz", "/v1/./jobs", "/v1/jobs/..", "/v1/jobs/.",
        "/%2e/healthz", "/%2e%2e/healthz",
        "/v1/%2e%2e/healthz", "/%2E%2E/healthz", "/.%2e/healthz", "/v1%2fjobs", "/v1%2Fjobs", "/v1/jobs%2f", "/healthz%00",
        "/health%00z", "/%00healthz",
        "/v1%5cjobs", "/v1\\jobs", "/v1/jobs%20", "/v1/jobs%0d%0aX:y", "/v1/jobs%09", "/v1/%6aobs", "/v1/jobs;a=b", "/v1/jobs,a",
        "/v1/jobs|80", "/v1/jobs@x",
        "/v1/jobs%", "/v1/jobs%2", "/v1/jobs%zz", "/v1/jobs\xe9", "/v1/jobs\x7f", "/v1/jobs\x01", "/v1/jobs\"", "/v1/jobs<x>",
        "/v1/jobs|", "/v1/jobs{}",
        "/healthz?a%00b", "/healthz?a%", "/healthz?a%2", "/healthz?a%zz", "/healthz?\xe9", "/healthz?a#b", "/healthz?\x01",
        "/api/2.0/mlflow-artifacts/artifacts/a%2fb", "/api/2.0/mlflow-artifacts/artifacts/a%00b",
        "/api/2.0/mlflow-artifacts/artifacts/%2e%2e/b",
        "/api/2.0/mlflow-artifacts/artifacts/../b", "/api/2.0/mlflow-artifacts/artifacts//b", "/api/2.0/mlflow-artifacts/artifacts/a%5cb",
        "/api/2.0/mlflow-artifacts/artifacts/%c0%ae%c0%ae/b", "/api/2.0/mlflow-artifacts/artifacts/a%zz",
    ):  # fmt: skip
        yield line(f"target {target!r}", f"GET {target} HTTP/1.1", 400)
    yield line("a target of 4,096 bytes", "GET /healthz/" + "a" * 4087 + " HTTP/1.1", 404, goes_on=True)
    yield line("a target of 4,097 bytes", "GET /healthz/" + "a" * 4088 + " HTTP/1.1", 414)
    yield line("a target of 9,000 bytes", "GET /" + "a" * 9000 + " HTTP/1.1", 414, by_library=True)


def headers() -> Iterator[Case]:
    """Headers of all kinds."""

    def get(name: str, lines: str, status: int, *, goes_on: bool = False, by_library: bool = False) -> Case:
        return Case(f"header: {name}", ("GET /healthz HTTP/1.1\r\n" + lines + "\r\n").encode("latin1"), status, goes_on, by_library)

    yield get("good", HOST, 200, goes_on=True)
    yield get("no Host", "X-Own: a\r\n", 400)
    yield get("no header", "", 400)
    yield get("Host twice", HOST + HOST, 400)
    yield get("Host twice, own and foreign", HOST + "Host: evil\r\n", 400)
    yield get("Host twice, foreign and own", "Host: evil\r\n" + HOST, 400)
    for host in (
        "evil.example", "", "127.0.0.1.evil", "127.0.0.1:x", "127.0.0.1:", "evil@127.0.0.1", "127.0.0.1/x", "127.0.0.1, evil",
        "127.0.0.1 127.0.0.1", "[::1",
        "localhost.", "0", "2130706433", "127.1", "[::]", "[::ffff:127.0.0.1]",
    ):  # fmt: skip
        yield get(f"Host {host!r}", f"Host: {host}\r\n", 421)
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.0.0.1:1", "[::1]:80"):
        yield get(f"Host {host!r}", f"Host: {host}\r\n", 200, goes_on=True)
    for name in ("Authorization", "Content-Type", "Range", "If-Match", "Idempotency-Key", "Last-Event-ID", "Expect"):
        yield get(f"{name} twice", f"{HOST}{name}: a\r\n{name}: b\r\n", 400)
    yield get("Accept twice is one list", f"{HOST}Accept: a\r\nAccept: b\r\n", 200, goes_on=True)
    yield get("no colon", f"{HOST}X-Own\r\n", 400, by_library=True)
    yield get("no colon at all", "X-Own\r\n", 400, by_library=True)
    for name in (
        "",
        "X Own",
        "X\tOwn",
        "X(Own",
        "X/Own",
        "X[Own]",
        "X{Own}",
        'X"Own',
        "X,Own",
        "X;Own",
        "X=Own",
        "X?Own",
        "X@Own",
        "X\\Own",
        "X\xe9",
    ):
        yield get(f"name {name!r}", f"{HOST}{name}: a\r\nX-More: b\r\n", 400)
    yield get("no name, last", f"{HOST}: a\r\n", 400)
    for control in "\x00\x01\x08\x0b\x0c\x0d\x1b\x7f":
        yield get(f"{control!r} in a value", f"{HOST}X-Own: a{control}b\r\n", 400)
        yield get(f"{control!r} in a value, not last", f"X-Own: a{control}b\r\n{HOST}", 400)
    yield get("NUL behind Host", "Host: H0ST\0evil\r\n", 400)
    yield get("NUL in a name", f"{HOST}X\0Own: a\r\n", 400, by_library=True)
    yield get("a folded header", f"{HOST}X-Own: a\r\n b\r\n", 400)
    yield get("a folded header with a tab", f"{HOST}X-Own: a\r\n\tb\r\n", 400)
    yield get("a folded Host", "Host:\r\n H0ST\r\n", 400)
    yield get("a fold before all", " X-Own: a\r\n" + HOST, 400)
    for expect in ("200-ok", "100-continued", "", "100-continue, x"):
        yield get(f"Expect {expect!r}", f"{HOST}Expect: {expect}\r\n", 417)
    yield get("an upgrade is passed over", f"{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n", 200, goes_on=True)
    yield get("headers of 6,000 bytes", f"{HOST}X-Own: {'a' * 5900}\r\n", 200, goes_on=True)
    yield get("headers of 6,500 bytes", f"{HOST}X-Own: {'a' * 6500}\r\n", 431)
    for size in (9000, 100_000):
        yield get(f"a header of {size} bytes", f"{HOST}X-Own: {'a' * size}\r\n", 431, by_library=True)
        yield get(f"a name of {size} bytes", f"{HOST}X{'a' * size}: b\r\n", 431, by_library=True)
    for count in (150, 5000):
        yield get(f"{count} headers", HOST + "".join(f"X{n}: b\r\n" for n in range(count)), 431, by_library=True)
    body = "Content-Length: 5\r\n"
    yield get("a body where none belongs", HOST + body, 413)
    yield get("an empty body where none belongs", HOST + "Content-Length: 0\r\n", 200, goes_on=True)


def line_ends() -> Iterator[Case]:
    """What ends a line is CR LF."""
    yield Case("line end: LF alone", b"GET /healthz HTTP/1.1\nHost: H0ST\n\n", 400)
    yield Case("line end: LF behind the first line", b"GET /healthz HTTP/1.1\nHost: H0ST\r\n\r\n", 400)
    yield Case("line end: LF behind a header", b"GET /healthz HTTP/1.1\r\nX-Own: a\nHost: H0ST\r\n\r\n", 400)
    yield Case("line end: LF behind the last header", b"GET /healthz HTTP/1.1\r\nHost: H0ST\n\r\n", 400)
    yield Case("line end: LF for the empty line", b"GET /healthz HTTP/1.1\r\nHost: H0ST\r\n\n", 400)
    yield Case("line end: CR CR LF", b"GET /healthz HTTP/1.1\r\r\nHost: H0ST\r\n\r\n", 400, by_library=True)
    yield Case("line end: CR CR LF behind a header", b"GET /healthz HTTP/1.1\r\nX-Own: a\r\r\nHost: H0ST\r\n\r\n", 400)
    yield Case(
        "line end: a hidden request behind CR CR",
        b"GET /healthz HTTP/1.1\r\nHost: H0ST\r\rGET /version HTTP/1.1\r\nHost: H0ST\r\n\r\n",
        400,
    )
    yield Case("line end: LF in a smuggled length", (PLAN + "X-Own: a\nContent-Length: 2\r\n\r\n{}").encode(), 400)


def all_cases() -> list[Case]:
    cases = [*lengths(), *codings(), *chunks(), *first_lines(), *headers(), *line_ends()]
    return list({case.request: case for case in cases}.values())
