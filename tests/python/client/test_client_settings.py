# SPDX-License-Identifier: Apache-2.0
"""Which controller is spoken to: settings, the instance of one's own, and who this host is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from serverless_gpu._internal.api import context, embedded, settings
from serverless_gpu._internal.calls import host
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import SettingsError

QUIET = Messages(quiet=True)


@pytest.fixture
def files(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The configuration files of the user and of the system; neither exists yet."""
    system = tmp_path / "system"
    monkeypatch.setattr(settings, "SYSTEM_FILE", system)
    (clean / ".config" / "gpuctl").mkdir(parents=True)
    return clean / ".config" / "gpuctl" / "config", system


def test_the_environment_goes_before_the_users_file_and_that_before_the_systems(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    user, system = files
    assert settings.Settings().get("url") is None
    system.write_text("[gpuctl]\nurl = http://system\nca-file: /system.pem ; of the company\nToken_File = /token\n")
    assert settings.Settings().get("url") == "http://system"
    user.write_text("# mine\n\n  url=http://user#1\n token-file =\n")
    found = settings.Settings()
    assert (found.get("url"), found.get("token_file"), found.get("cacert")) == ("http://user#1", "/token", "/system.pem")
    monkeypatch.setenv("GPUCTL_URL", "http://environment")
    assert settings.Settings().get("url") == "http://environment"
    monkeypatch.setenv("GPUCTL_URL", "")
    assert settings.Settings().get("url") == "http://user#1"


@pytest.mark.parametrize(
    ("text", "words"),
    [("url\n", "config:1: expected"), ("\n[other]\n", "config:2: unknown section"), ("url=1\nURL=2\n", "config:2: given twice: url"),
     ("\nulr=1\n", "config:2: unknown setting ulr; did you mean url"), ("zebra=1\n", "config:1: unknown setting zebra")],
)
def test_a_file_that_is_not_understood_is_refused_with_its_line(files: tuple[Path, Path], text: str, words: str) -> None:
    files[0].write_text(text)
    with pytest.raises(SettingsError, match=words):
        settings.Settings()


def test_the_state_folder_follows_settings_and_xdg(
    files: tuple[Path, Path], clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings.Settings().state_folder() == clean / ".local/state/gpuctl"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert settings.Settings().state_folder() == clean / ".local/state/gpuctl"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert settings.Settings().state_folder() == tmp_path / "gpuctl"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUCTL_STATE", "mine")
    assert settings.Settings().state_folder() == tmp_path / "mine"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://gpu.example.org:7070", "unencrypted.*https"),
        ("http://127.0.0.1.example.org", "unencrypted"),
        ("gpu.example.org", "not the URL"),
        ("ftp://gpu.example.org", "not the URL"),
        ("https://user@gpu.example.org", "not the URL"),
        ("https://gpu.example.org:port", "not the URL"),
    ],
)
def test_a_token_is_never_sent_to_a_url_that_is_none_or_in_the_clear(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    monkeypatch.setenv("GPUCTL_URL", url)
    with pytest.raises(SettingsError, match=words):
        context.load(QUIET)


@pytest.mark.parametrize(
    "url", ["https://gpu.example.org:7070/", "http://localhost:1/", "http://[::1]:1", "http://127.9.9.9:1", "http://gpu:1"]
)
def test_a_named_controller_is_taken_with_its_token(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    token = tmp_path / "token"
    token.write_text("gct_abc \n")
    monkeypatch.setenv("GPUCTL_URL", url)
    monkeypatch.setenv("GPUCTL_TOKEN_FILE", str(token))
    monkeypatch.setenv("GPUCTL_CA_FILE", "/ca.pem")
    if url == "http://gpu:1":
        monkeypatch.setenv("GPUCTL_INSECURE_PLAIN_HTTP", "true")
    loaded = context.load(QUIET)
    assert (loaded.url, loaded.token, loaded.cacert, loaded.embedded) == (url.rstrip("/"), "gct_abc", "/ca.pem", False)
    token.write_text("")
    with pytest.raises(SettingsError, match="does not hold a token"):
        context.load(QUIET)


# --- the instance of one's own ---


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def write_instance(state: Path, pid: int, started: str) -> None:
    (state / "controller").mkdir(parents=True, exist_ok=True)
    (state / "endpoint").write_text(json.dumps({"url": "http://127.0.0.1:1234", "pid": pid}))
    (state / "controller.pid").write_text(f"{pid} {started}\n")
    (state / "controller" / "admin.token").write_text("gct_own\n")


def test_an_instance_that_runs_is_found_and_a_stale_file_is_not(clean: Path) -> None:
    state = clean / ".local/state/gpuctl"
    assert embedded.running_url(state) is None
    write_instance(state, os.getpid(), start_time(os.getpid()))
    loaded = context.load(QUIET)
    assert (loaded.url, loaded.token, loaded.embedded) == ("http://127.0.0.1:1234", "gct_own", True)
    write_instance(state, os.getpid(), "1")
    assert embedded.running_url(state) is None
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # ended, and still listed
    write_instance(state, ended.pid, start_time(ended.pid))
    assert embedded.running_url(state) is None
    ended.wait()
    (state / "endpoint").write_text("{")
    assert embedded.running_url(state) is None


def test_an_instance_is_started_where_none_runs_by_the_gpuctl_that_is_found(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = clean / ".local/state/gpuctl"
    prepared = tmp_path / "prepared"
    write_instance(prepared, os.getpid(), start_time(os.getpid()))
    program = tmp_path / "gpuctl"
    told = '{"started": true}'
    program.write_text(
        f"#!/bin/sh\necho \"$@\" >{tmp_path}/arguments\nmkdir -p {state}\ncp -r {prepared}/. {state}/\necho '{told}'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("GPUCTL_LIBEXEC", str(tmp_path))
    assert context.load(Messages()).url == "http://127.0.0.1:1234"
    assert (tmp_path / "arguments").read_text().startswith(f"up -o json --state {state} --python /")
    assert "started a controller" in capsys.readouterr().err
    program.write_text("#!/bin/sh\necho 'gpuctl: the port is taken' >&2\nexit 1\n")
    (state / "endpoint").unlink()
    with pytest.raises(SettingsError, match="could not start a controller here: gpuctl: the port is taken"):
        context.load(QUIET)


def test_without_gpuctl_the_error_names_the_ways_out(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="GPUCTL_URL.*PATH.*GPUCTL_LIBEXEC"):
        context.load(QUIET)


def test_an_instance_that_comes_back_on_another_port_is_found_again(clean: Path) -> None:
    state = clean / ".local/state/gpuctl"
    write_instance(state, os.getpid(), start_time(os.getpid()))
    loaded = context.load(QUIET)
    (state / "endpoint").write_text(json.dumps({"url": "http://127.0.0.1:4321", "pid": os.getpid()}))
    (state / "controller" / "admin.token").write_text("gct_new\n")
    assert loaded.refreshed()[:2] == ("http://127.0.0.1:4321", "gct_new")
    (state / "endpoint").unlink()
    assert loaded.refreshed() == loaded


# --- this host ---


def test_the_host_is_the_hash_of_its_machine_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, boot = tmp_path / "machine-id", tmp_path / "boot-id"
    monkeypatch.setattr(host, "MACHINE_ID", machine)
    monkeypatch.setattr(host, "BOOT_ID", boot)
    boot.write_text("b-o-o-t\n")
    for text, word in (("  abc def\n", "abc"), ("uninitialized\n", "b-o-o-t"), ("", "b-o-o-t")):
        machine.write_text(text)
        assert host.host_id() == hashlib.sha256(word.encode()).hexdigest()
    machine.unlink()
    assert host.host_id() == hashlib.sha256(b"b-o-o-t").hexdigest()
