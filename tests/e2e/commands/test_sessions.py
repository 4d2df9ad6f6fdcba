# SPDX-License-Identifier: Apache-2.0
"""Sessions of browsers: what begins one, what a request in one needs, and what ends it."""

from __future__ import annotations

import http.cookies
import json
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTLD, Api, Cluster

#: LIMIT_SESSION_CODES.
CODES = 8


@dataclass
class Browser:
    """What a browser keeps: a cookie, and the proof that the page keeps."""

    cluster: Cluster
    cookie: str = ""
    proof: str | None = None

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        sent = {**({"Cookie": self.cookie} if self.cookie else {}), **({"Gpuctl-Session": self.proof} if self.proof else {}), **headers}
        text = None if body is None else json.dumps(body).encode()
        if text is not None:
            sent["Content-Type"] = "application/json"
        status, answered, answer = Api(self.cluster.url, None).raw(method, path, text, headers=sent)
        return status, answered, json.loads(answer)

    def sign_in(self, **by: str) -> dict[str, Any]:
        status, headers, session = self.ask("POST", "/v1/session", by)
        assert status == 201, session
        (self.cookie, *self.attributes) = headers["set-cookie"].split("; ")
        self.proof = session["proof"]
        assert headers["cache-control"] == "no-store"
        return dict(session)

    def status(self, path: str = "/v1/jobs") -> int:
        return self.ask("GET", path)[0]

    def refusal(self) -> str:
        status, _, problem = self.ask("GET", "/v1/jobs")
        assert status == 401 and problem["code"] == "unauthenticated"
        return str(problem["detail"])


@pytest.fixture
def browser(cluster: Cluster) -> Browser:
    made = Browser(cluster)
    made.sign_in(token=cluster.admin_token)
    return made


def test_a_session_acts_for_the_token_that_it_was_made_with(cluster: Cluster) -> None:
    user = cluster.user("ann")
    browser = Browser(cluster)
    session = browser.sign_in(token=str(user.token))
    assert (session["owner"], session["role"]) == ("ann", "user")
    assert sorted(browser.attributes) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict"]
    assert str(user.token) not in browser.cookie and session["proof"] not in browser.cookie
    job = browser.ask("POST", "/v1/jobs", {"command": ["true"], "gpus": 1})[2]["id"]
    assert user.get(f"/v1/jobs/{job}")["owner"] == "ann"
    assert browser.ask("GET", "/v1/session")[2] == {key: session[key] for key in ("owner", "role", "expires_at")}
    assert browser.status("/v1/tokens") == 403 and browser.status("/version") == 200


def test_a_request_needs_both_halves_of_a_session(cluster: Cluster, browser: Browser) -> None:
    other = Browser(cluster)
    other.sign_in(token=cluster.admin_token)
    assert browser.status() == other.status() == 200
    without = "the cookie of a session without its proof"
    assert without in Browser(cluster, browser.cookie).refusal()
    assert without in Browser(cluster, browser.cookie, other.proof).refusal()
    assert without in Browser(cluster, browser.cookie, "no proof").refusal()
    assert "carries no token" in Browser(cluster, "", browser.proof).refusal()
    assert Browser(cluster, f"a=b; {browser.cookie}; c=d", browser.proof).status() == 200


def test_no_page_of_another_port_is_allowed_to_send_the_proof(browser: Browser) -> None:
    """Its browser would send the cookie, because a port is no other site; the header needs a permission that nobody gets."""
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "gpuctl-session"}
    for path in ("/v1/jobs", "/v1/session", "/"):
        status, headers, _ = browser.ask("OPTIONS", path, Origin="http://127.0.0.1:1", **asked)
        assert status == 405 and not any(name.startswith("access-control") for name in headers)


def test_no_part_of_a_cookie_can_be_changed(cluster: Cluster, browser: Browser) -> None:
    name, value = browser.cookie.split("=")
    parts = value.split(".")
    assert len(parts) == 4
    later = [parts[0], str(int(parts[1]) + 1), *parts[2:]]
    wrong = [".".join(later), ".".join(parts[:3]), ".".join([*parts, "x"]), value[:-1], value + "0", "", "..." * 100, "x" * 1000]
    for position in range(len(value)):
        wrong.append(value[:position] + ("0" if value[position] != "0" else "1") + value[position + 1 :])
    for changed in wrong:
        assert Browser(cluster, f"{name}={changed}", browser.proof).refusal() == "the session is over", changed


def test_a_token_counts_even_beside_a_cookie(cluster: Cluster, browser: Browser) -> None:
    user = cluster.user("bob")
    assert browser.ask("GET", "/v1/session", Authorization=f"Bearer {user.token}")[2]["owner"] == "bob"
    assert browser.ask("GET", "/v1/session", Authorization="Bearer gct_none")[0] == 401
    status, _, problem = browser.ask("DELETE", "/v1/session", Authorization=f"Bearer {user.token}")
    assert status == 409 and "not in a session" in problem["detail"]


def test_a_code_signs_in_once(cluster: Cluster) -> None:
    user = cluster.user("cleo")
    code = user.post("/v1/session/codes")["code"]
    browser = Browser(cluster)
    assert browser.sign_in(code=code)["owner"] == "cleo" and browser.status() == 200
    for used in (code, "0" * 32, "", "x" * 5000):
        status, _, problem = browser.ask("POST", "/v1/session", {"code": used})
        assert status == 401 and "too old, or was used already" in problem["detail"] and "gpuctl open" in problem["hint"]
    codes = [user.post("/v1/session/codes")["code"] for _ in range(CODES)]
    with pytest.raises(Exception, match="codes of this token wait"):
        user.post("/v1/session/codes")
    assert cluster.api.post("/v1/session/codes")["code"] not in codes  # others make theirs
    cluster.api.post(f"/v1/tokens/{str(user.token).split('_')[1]}/revoke")
    assert browser.ask("POST", "/v1/session", {"code": codes[0]})[0] == 401


def test_a_session_ends_with_its_token_and_when_somebody_signs_out(cluster: Cluster, browser: Browser) -> None:
    user = cluster.user("dora")
    of_user = Browser(cluster)
    of_user.sign_in(token=str(user.token))
    cluster.api.post(f"/v1/tokens/{str(user.token).split('_')[1]}/revoke")
    assert of_user.refusal() == "the token that the session was made with is revoked or has expired"
    status, headers, _ = browser.ask("DELETE", "/v1/session")
    assert status == 200
    morsel = next(iter(http.cookies.SimpleCookie(headers["set-cookie"]).values()))
    assert morsel.value == "" and morsel["max-age"] == "0"
    assert browser.refusal() == "the session is over"


def test_a_session_lasts_no_longer_than_its_token(cluster: Cluster) -> None:
    made = cluster.api.post("/v1/tokens", {"role": "user", "owner": "eve", "expires_in_s": 600})
    browser = Browser(cluster)
    assert browser.sign_in(token=made["secret"])["expires_at"][:19] == made["expires_at"][:19]
    (life,) = [int(one.partition("=")[2]) for one in browser.attributes if one.startswith("Max-Age=")]
    assert 590 <= life <= 600


def test_a_session_is_renewed_in_itself(cluster: Cluster, browser: Browser) -> None:
    before = (browser.cookie, browser.proof)
    assert browser.sign_in()["owner"] == "admin"
    assert browser.cookie != before[0] and browser.proof != before[1] and browser.status() == 200
    assert Browser(cluster, *before).status() == 200  # another tab may be about to use it
    status, _, problem = Browser(cluster).ask("POST", "/v1/session", {})
    assert status == 401 and problem["detail"] == "the session is over"
    assert Browser(cluster, browser.cookie).ask("POST", "/v1/session", {})[0] == 401


def test_what_begins_a_session_is_checked(cluster: Cluster) -> None:
    browser = Browser(cluster)
    node = cluster.api.post("/v1/tokens", {"role": "node", "owner": "n"})["secret"]
    for body, status, words in (
        ({"token": "gct_aaaaaaaa_" + "x" * 43}, 401, "unknown, revoked or expired"),
        ({"token": ""}, 401, "carries no token"),
        ({"token": node}, 403, "needs a token of role viewer"),
        ({"token": cluster.admin_token, "code": "x"}, 422, "a token or with a code"),
        ({"token": 1}, 422, "token"),
        ({"password": "x"}, 422, "password"),
    ):
        got, headers, problem = browser.ask("POST", "/v1/session", body)
        assert (got, "set-cookie" in headers) == (status, False) and words in problem["detail"], problem


def test_sessions_live_through_a_restart_of_the_controller(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, [1])
    try:
        cluster.start()
        browser = Browser(cluster)
        browser.sign_in(token=cluster.admin_token)
        cluster.controller.kill(signal.SIGKILL)
        cluster.start_controller()
        assert browser.status() == 200
    finally:
        cluster.stop()


def test_cookies_of_one_host_are_kept_apart_and_tls_makes_them_secure(cluster: Cluster, browser: Browser, tmp_path: Path) -> None:
    files = ["--state", str(tmp_path / "controller"), "--config", str(tmp_path / "controller.conf")]
    subprocess.run([str(GPUCTLD), "init", *files, "--listen", "127.0.0.1:0"], check=True, capture_output=True)
    other = Cluster(tmp_path, [1])
    try:
        other.start()
        token = other.admin_token
        assert token is not None
        sent = json.dumps({"token": token}).encode()
        status, headers, _ = other.api.raw("POST", "/v1/session", sent, headers={"Content-Type": "application/json"})
        assert status == 201 and headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Secure")
        assert headers["set-cookie"].partition("=")[0] != browser.cookie.partition("=")[0]
    finally:
        other.stop()
