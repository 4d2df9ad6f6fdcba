# SPDX-License-Identifier: Apache-2.0
"""Files of a volume: datasets, loaders whose place is stored, and checkpoints of torch.distributed.checkpoint."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SOURCES
from serverless_gpu import data

torch = pytest.importorskip("torch")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    root = tmp_path / "volume"
    (root / "below").mkdir(parents=True)
    (root / "below" / "11.txt").write_text("11")
    for number in range(9):
        (root / f"{number}.txt").write_text(str(number))
    (tmp_path / "elsewhere").write_text("9")
    (root / "9.txt").symlink_to(tmp_path / "elsewhere")
    (root / "gone").symlink_to("nowhere")
    return root


def numbers(paths: Any) -> list[int]:
    return [int(Path(path).read_text()) for path in paths]


ALL = list(range(10))  # in the order of the paths


def test_a_dataset_gives_the_paths_of_all_files_of_the_folder_itself_in_order(volume: Path) -> None:
    dataset = data.UCVolumeDataset(str(volume))
    assert numbers(dataset) == numbers(dataset) == ALL and all(os.path.isabs(path) for path in dataset)
    assert numbers(pickle.loads(pickle.dumps(dataset))) == ALL


def test_ranks_and_workers_share_the_files_without_doubles(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from serverless_gpu._internal import volumes

    found = []
    for rank in range(3):
        monkeypatch.setattr(volumes, "_place", lambda rank=rank: (rank, 3))
        found.append([path for batch in data.DataLoader(data.UCVolumeDataset(volume), batch_size=2, num_workers=2) for path in batch])
    assert sorted(number for paths in found for number in numbers(paths)) == list(range(10))
    assert [len(paths) for paths in found] == [4, 3, 3]


def test_a_dataset_goes_on_where_its_state_says_and_then_from_the_start(volume: Path) -> None:
    dataset = data.UCVolumeDataset(volume)
    begun = iter(dataset)
    assert numbers([next(begun) for _ in range(4)]) == ALL[:4]
    state = dataset.state_dict()
    assert state == {"version": 1, "delivered": 4, "rank": 0, "worker_id": 0}
    other = data.UCVolumeDataset(volume)
    other.load_state_dict(state)
    assert other.state_dict() == state and numbers(other) == ALL[4:] and numbers(other) == ALL
    for wrong in ({"version": 2}, {"rank": 1}, {"worker_id": 3}, {"delivered": -1}, {"delivered": "4"}):
        with pytest.raises(ValueError, match="the state"):
            other.load_state_dict({**state, **wrong})


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_goes_on_behind_the_last_batch_that_was_taken(volume: Path, workers: int) -> None:
    def loader() -> Any:
        return data.DataLoader(data.UCVolumeDataset(volume), batch_size=2, num_workers=workers)

    whole = [numbers(batch) for batch in loader()]
    first = loader()
    batches = iter(first)
    taken = [numbers(next(batches)) for _ in range(3)]
    state = pickle.loads(pickle.dumps(first.state_dict()))
    assert state["num_workers"] == workers and state["world_size"] == 1
    second = loader()
    iter(second)  # its workers are there already
    second.load_state_dict(state)
    assert second.state_dict() == state
    rest = [numbers(batch) for batch in second]
    assert sorted(taken + rest) == sorted(whole)
    assert sorted(numbers(batch) for batch in second) == sorted(whole)  # the next epoch is whole
    with pytest.raises(ValueError, match="num_workers"):
        data.DataLoader(data.UCVolumeDataset(volume), num_workers=1).load_state_dict({**state, "num_workers": 5})


def test_a_loader_has_workers_that_stay_and_takes_any_dataset(volume: Path) -> None:
    loader = data.DataLoader([1, 2, 3], batch_size=2)
    assert (loader.num_workers, loader.prefetch_factor, loader.persistent_workers) == (6, 4, True)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert data.DataLoader([1], num_workers=1, prefetch_factor=7).prefetch_factor == 7
    assert [batch.tolist() for batch in data.DataLoader([1, 2, 3], 2, num_workers=0, prefetch_factor=4)] == [[1, 2], [3]]
    assert numbers(data.DataLoader(data.UCVolumeDataset(volume), batch_size=None, num_workers=0)) == ALL
    with pytest.raises(TypeError, match="state_dict"):
        loader.state_dict()


def test_a_checkpoint_goes_into_a_volume_and_comes_back(tmp_path: Path) -> None:
    from torch.distributed import checkpoint

    model = torch.nn.Linear(3, 2)
    checkpoint.save({"model": model.state_dict()}, storage_writer=data.UCVolumeWriter(tmp_path / "volume" / "step1"), no_dist=True)
    other = {"model": torch.nn.Linear(3, 2).state_dict()}
    checkpoint.load(other, storage_reader=data.UCVolumeReader(tmp_path / "volume" / "step1"), no_dist=True)
    assert torch.equal(other["model"]["weight"], model.weight)


def test_a_volume_that_is_not_mounted_says_so(tmp_path: Path) -> None:
    for make in (data.UCVolumeDataset, data.UCVolumeReader):
        with pytest.raises(NotADirectoryError, match="mount it on the nodes"):
            make(tmp_path / "none")


def test_what_has_a_state_is_checkpointable(volume: Path) -> None:
    assert isinstance(data.UCVolumeDataset(volume), data.Checkpointable) and not isinstance(object(), data.Checkpointable)


def test_importing_data_loads_no_torch() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import serverless_gpu.data; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        data.x  # noqa: B018
