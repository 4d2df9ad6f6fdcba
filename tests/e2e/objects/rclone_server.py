# SPDX-License-Identifier: Apache-2.0
"""A real S3 server on loopback: rclone serve s3, whose objects are files of a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

from harness import PATIENCE, PYTHON, eventually

KEY_ID, SECRET, BUCKET = "AKIATESTTESTTEST", "secret/of+the=tests", "gpuctl-bucket"


class S3Server:
    """Serves the folder; its port stays the same when it ends and starts again."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bucket = folder / "data" / BUCKET
        self.bucket.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as chosen:
            self.port = int(chosen.getsockname()[1])
        self.credentials = folder / "credentials"
        self.write_credentials(SECRET)
        self.process: subprocess.Popen[bytes] | None = None

    def write_credentials(self, secret: str) -> None:
        self.credentials.touch(0o600)
        self.credentials.write_text(f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {secret}\n")

    def address(self, port: int | None = None, bucket: str = BUCKET) -> str:
        return f"s3://{bucket}/some/prefix?endpoint=http://127.0.0.1:{port or self.port}&region=eu-test-1"

    def options(self, *more: str, port: int | None = None) -> list[str]:
        """Of gpuctld."""
        return ["--object-store", self.address(port), "--object-store-credentials", str(self.credentials), *more]

    def start(self) -> S3Server:
        rclone = Path(PYTHON).parent / "rclone"
        with (self.folder / "rclone.log").open("ab") as out:
            self.process = subprocess.Popen(
                [
                    str(rclone), "serve", "s3", "--config", str(self.folder / "rclone.conf"), "--addr", f"127.0.0.1:{self.port}",
                    "--auth-key", f"{KEY_ID},{SECRET}", "--no-cleanup", str(self.folder / "data"),
                ],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        eventually(self.answers, "the S3 server to answer")
        return self

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process = None

    def pause(self, paused: bool) -> None:
        """It neither answers nor refuses while it is paused."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP if paused else signal.SIGCONT)

    def keys(self, begin: str = "") -> set[str]:
        """Of its objects, without our prefix."""
        top = self.bucket / "some" / "prefix"
        names = {os.path.relpath(os.path.join(folder, name), top) for folder, _, files in os.walk(top) for name in files}
        return {name for name in names if name.startswith(begin)}

    def file(self, key: str) -> Path:
        return self.bucket / "some" / "prefix" / key
