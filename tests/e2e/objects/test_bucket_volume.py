# SPDX-License-Identifier: Apache-2.0
"""A prefix of a bucket as a volume: the host has mounted it, and jobs find it as any other folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import PYTHON, Cluster, eventually
from owners import MAY_MOUNT
from rclone_server import BUCKET, KEY_ID, SECRET, S3Server


@pytest.mark.skipif(
    not MAY_MOUNT or shutil.which("fusermount3") is None or not os.path.exists("/dev/fuse"), reason="needs the right to mount, and FUSE"
)
def test_a_prefix_of_a_bucket_is_a_volume(make_cluster: Callable[..., Cluster], s3: S3Server, tmp_path: Path) -> None:
    prefix, folder = s3.bucket / "set", tmp_path / "mounted"
    prefix.mkdir()
    folder.mkdir()
    (prefix / "a.txt").write_text("of the bucket\n")
    address = f"http://127.0.0.1:{s3.port}"
    store = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": address, "ACCESS_KEY_ID": KEY_ID, "SECRET_ACCESS_KEY": SECRET}
    words = [str(Path(PYTHON).parent / "rclone"), "mount", "--config", str(tmp_path / "none"), "--allow-other"]
    words += ["--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--cache-dir", str(tmp_path / "cache")]
    environment = {**os.environ, **{f"RCLONE_CONFIG_B_{name}": value for name, value in store.items()}}
    mount = subprocess.Popen([*words, f"b:{BUCKET}/set", str(folder)], env=environment)
    try:
        eventually(lambda: os.path.ismount(folder), "the prefix to be mounted")
        cluster = make_cluster(1, agent=[f"--volume=bucket={folder}:mount"])
        job = cluster.api.submit(["sh", "-c", "cat /data/a.txt && echo by the job >/data/b.txt"], volumes=["bucket:/data"])
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job) == "of the bucket\n"
        eventually((prefix / "b.txt").exists, "the file that the job has written")
        assert (prefix / "b.txt").read_text() == "by the job\n"
    finally:
        subprocess.run(["umount", "--lazy", folder])
        mount.terminate()  # it would wait for the agent's mounts, too
        mount.wait(60)
