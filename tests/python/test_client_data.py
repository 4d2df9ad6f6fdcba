# SPDX-License-Identifier: Apache-2.0
"""Files of a volume: datasets, loaders, readers and writers that stay inside."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SOURCES
from serverless_gpu import data


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    root = tmp_path / "volume"
    for name in ("b.txt", "a.txt", "deep/er/c.txt", "d.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name[0])
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


def test_a_dataset_has_the_files_that_match_in_the_order_of_their_paths(volume: Path) -> None:
    dataset = data.UCVolumeDataset(volume, pattern="**/*.txt", transform=lambda content: content.decode().upper())
    assert list(dataset.paths) == ["a.txt", "b.txt", "deep/er/c.txt"] and list(dataset) == ["A", "B", "D"] and len(dataset) == 3
    with pytest.raises(IndexError):
        dataset[3]
    assert list(data.UCVolumeDataset(str(volume), with_path=True))[-1] == ("deep/er/c.txt", b"d")


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "deep/../../secret.txt", "link.txt", "deep/er/../../../volume2/x"])
def test_nothing_leaves_the_volume(volume: Path, path: str) -> None:
    reader, writer = data.UCVolumeReader(volume), data.UCVolumeWriter(volume)
    for attempt in (lambda: reader.read(path), lambda: reader.exists(path), lambda: writer.write(path, b"x"), lambda: writer.delete(path)):
        with pytest.raises(ValueError, match="leads out of the volume"):
            attempt()
    assert (volume.parent / "secret.txt").read_text() == "secret"


def test_a_writer_makes_folders_and_replaces_whole_files(volume: Path) -> None:
    writer = data.UCVolumeWriter(volume / "new")
    assert writer.write("x/y.bin", b"one") == volume / "new/x/y.bin"
    writer.write(volume / "new/x/y.bin", bytearray(b"two"))
    reader = data.UCVolumeReader(volume / "new")
    assert reader.read("x/y.bin") == b"two" and reader.list() == ["x/y.bin"] and reader.exists("x") and not reader.exists("y")
    assert os.listdir(volume / "new/x") == ["y.bin"] and not (volume / "new/x/y.bin").stat().st_mode & 0o111
    writer.delete("x/y.bin")
    writer.delete("x/y.bin")
    assert not reader.exists("x/y.bin")
    with pytest.raises(ValueError, match="path of a file"):
        writer.write("", b"")


def test_a_new_file_has_the_permissions_of_any_new_file(volume: Path) -> None:
    (volume / "usual").touch()
    written = data.UCVolumeWriter(volume).write("ours", b"")
    assert written.stat().st_mode == (volume / "usual").stat().st_mode


def test_a_write_that_fails_leaves_what_was_there(volume: Path) -> None:
    with pytest.raises(TypeError):
        data.UCVolumeWriter(volume).write("a.txt", "text")  # type: ignore[arg-type]
    assert (volume / "a.txt").read_text() == "a" and not [name for name in os.listdir(volume) if name.startswith(".")]


def test_a_volume_that_is_not_mounted_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="mount it on the nodes"):
        data.UCVolumeDataset(tmp_path / "none")


def test_a_loader_works_with_its_defaults_and_without_workers(volume: Path) -> None:
    pytest.importorskip("torch")
    dataset = data.UCVolumeDataset(volume, pattern="*.txt", transform=len)
    loader = data.DataLoader(dataset, batch_size=2)
    assert (loader.num_workers, loader.prefetch_factor) == (6, 4)
    assert data.DataLoader(dataset, num_workers=1, prefetch_factor=7).prefetch_factor == 7
    for plain in (data.DataLoader(dataset, batch_size=2, num_workers=0), data.DataLoader(dataset, 2, num_workers=0, prefetch_factor=4)):
        assert [batch.tolist() for batch in plain] == [[1, 1]]
    assert [batch.tolist() for batch in data.DataLoader(dataset, batch_size=2, num_workers=1)] == [[1, 1]]


def test_a_dataset_travels(volume: Path) -> None:
    assert list(pickle.loads(pickle.dumps(data.UCVolumeDataset(volume, pattern="a*")))) == [b"a"]


def test_what_has_a_state_is_checkpointable() -> None:
    class Sampler:
        def state_dict(self) -> dict[str, int]:
            return {}

        def load_state_dict(self, state_dict: dict[str, int]) -> None:
            pass

    assert isinstance(Sampler(), data.Checkpointable) and not isinstance(object(), data.Checkpointable)


def test_importing_data_loads_no_torch() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import serverless_gpu.data; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
