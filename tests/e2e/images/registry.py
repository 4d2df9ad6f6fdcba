# SPDX-License-Identifier: Apache-2.0
"""A registry of container images (Debian's docker-registry), and images that the tests make byte by byte."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import Program, eventually

BUSYBOX = "/bin/busybox"
APPLETS = ["sh", "cat", "echo", "id", "ls", "sleep", "env", "touch", "true", "dd", "mount", "hostname", "kill", "tty", "stty", "head", "wc"]
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def layer_of(files: Mapping[str, bytes | str | Path]) -> bytes:
    """A tar: bytes are a file, a text is a link to it, a path is a copy of a file or a folder of this machine."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            if isinstance(content, Path):
                archive.add(content, name)
                continue
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            elif name.endswith("/"):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp/" else 0o755
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def busybox(**more: bytes) -> dict[str, bytes | str | Path]:
    files: dict[str, bytes | str | Path] = {"bin/": b"", "tmp/": b"", "root/": b"", "bin/busybox": Path(BUSYBOX).read_bytes()}
    files.update({f"bin/{name}": "busybox" for name in APPLETS})
    files["etc/"] = b""
    files["etc/image"] = b"of the image\n"
    return {**files, **more}


class Layout:
    """An image in the form of OCI, as a folder."""

    def __init__(self, folder: Path, layers: list[bytes], architecture: str = MACHINE, **config: Any):
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
        described = {
            "architecture": architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.put(json.dumps(described).encode(), "config.v1+json"),
            "layers": [self.put(layer, "layer.v1.tar+gzip") for layer in packed],
        }
        entry = self.put(json.dumps(manifest).encode(), "manifest.v1+json")
        self.digest = entry["digest"]
        index = {"schemaVersion": 2, "manifests": [{**entry, "annotations": {"org.opencontainers.image.ref.name": "image"}}]}
        (folder / "index.json").write_text(json.dumps(index))
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def put(self, content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


class Registry:
    """docker-registry over HTTP on this host; `users` are lines of htpasswd."""

    def __init__(self, folder: Path, users: str = ""):
        self.folder = folder
        folder.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        config: dict[str, Any] = {
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": str(folder / "store")}},
            "http": {"addr": self.address},
        }
        if users:
            (folder / "users").write_text(users)
            config["auth"] = {"htpasswd": {"realm": "tests", "path": str(folder / "users")}}
        (folder / "config.yml").write_text(json.dumps(config))
        self.program = Program(["docker-registry", "serve", str(folder / "config.yml")], folder / "log")
        self.program.start()
        eventually(self.answers, "the registry to answer")
        self.made = 0
        self.digest = ""  # of the last image, and of each by its name
        self.digests: dict[str, str] = {}

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://{self.address}/v2/", timeout=5)  # noqa: S310  (an address of our own)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self.program.kill()

    def push(self, name: str, layers: list[bytes], *credentials: str, **config: Any) -> str:
        """Put an image into it and return its name."""
        self.made += 1
        layout = Layout(self.folder / f"layout{self.made}", layers, **config)
        image = f"{self.address}/{name}"
        subprocess.run(["skopeo", "copy", *credentials, "--dest-tls-verify=false", f"oci:{layout.folder}:image", f"docker://{image}"],
                       check=True, capture_output=True)  # fmt: skip
        self.digest = self.digests[name] = layout.digest
        shutil.rmtree(layout.folder)
        return image

    def blob(self, digest: str) -> Path:
        kind, value = digest.split(":")
        return self.folder / "store" / "docker" / "registry" / "v2" / "blobs" / kind / value[:2] / value / "data"


def home(folder: Path, *addresses: str) -> str:
    """A home whose settings name registries that speak plain HTTP."""
    path = folder / "home" / ".config" / "containers" / "registries.conf"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n' for address in addresses))
    return str(folder / "home")
