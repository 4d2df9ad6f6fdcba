# SPDX-License-Identifier: Apache-2.0
"""What serverless_gpu.data offers: files of a volume, split between ranks and workers; a loader whose place in them can be stored; and
storage of torch.distributed.checkpoint in a volume.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Callable, Union

import torch.distributed as dist
import torch.utils.data
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

from serverless_gpu.data import Checkpointable

PathLike = Union[str, "os.PathLike[str]"]

NUM_WORKERS = 6  # processes that read ahead
PREFETCH_FACTOR = 4  # batches that each of them holds ready
VERSION = 1  # of the states here


def _place() -> tuple[int, int]:
    """(rank, world) of this process, where torch.distributed is initialized."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1)


def _mounted(path: PathLike) -> str:
    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"the volume {folder} is no folder on this machine: mount it on the nodes, too")
    return folder


def _integer(state: dict[str, Any], name: str, least: int) -> int:
    value = state.get(name)
    if not isinstance(value, int) or value < least:
        raise ValueError(f"the state has no sound {name!r}: {value!r}")
    return value


class UCVolumeWriter(FileSystemWriter):
    """Where `torch.distributed.checkpoint.save(..., storage_writer=UCVolumeWriter(path))` writes. The folder is made where it is missing;
    further arguments are those of torch's FileSystemWriter.
    """

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(path, **kwargs)


class UCVolumeReader(FileSystemReader):
    """Where `torch.distributed.checkpoint.load(..., storage_reader=UCVolumeReader(path))` reads. A path that is no folder is an error."""

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(_mounted(path), **kwargs)


class UCVolumeDataset(torch.utils.data.IterableDataset[str]):
    """The paths of all files below a folder, in their order, each for one rank and one worker of a DataLoader.

    The ranks are those of torch.distributed where it is initialized when the iteration begins. The list of files is made once, so that
    all ranks and workers count alike while files come. The state is how many paths this stream has given.
    """

    def __init__(self, path: PathLike):
        folder = _mounted(path)
        found = (os.path.join(inner, name) for inner, _, names in os.walk(folder) for name in names)
        self.paths = sorted(file for file in found if os.path.isfile(file))
        self._given = self._skip = 0

    def _stream(self) -> tuple[int, int, list[str]]:
        """(rank, worker, its files)."""
        rank, world = _place()
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return rank, number, self.paths[rank::world][number::workers]

    def __iter__(self) -> Iterator[str]:
        _, _, files = self._stream()
        self._given, self._skip = self._skip, 0
        for file in files[self._given :]:
            self._given += 1
            yield file

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` of the same rank and worker takes: the next iteration goes on there."""
        rank, number, _ = self._stream()
        return {"version": VERSION, "delivered": max(self._given, self._skip), "rank": rank, "worker_id": number}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there. Raises ValueError for the state of another version, rank or worker."""
        rank, number, _ = self._stream()
        if state_dict.get("version") != VERSION:
            raise ValueError(f"the state is of version {state_dict.get('version')!r}, not {VERSION}")
        if (state_dict.get("rank"), state_dict.get("worker_id")) != (rank, number):
            whose = f"rank {state_dict.get('rank')!r}, worker {state_dict.get('worker_id')!r}"
            raise ValueError(f"the state is of {whose}, and this is rank {rank}, worker {number}")
        self._skip = _integer(state_dict, "delivered", 0)


class _Tracked(torch.utils.data.IterableDataset[Any]):
    """A dataset whose items carry the worker and the state behind them."""

    def __init__(self, dataset: Any):
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        number = 0 if worker is None else worker.id
        for item in self.dataset:
            yield item, number, self.dataset.state_dict()


class _Collate:
    """Batches of such items: (batch, worker, state behind its last item)."""

    def __init__(self, collate: Callable[[Any], Any], batched: bool):
        self.collate = collate
        self.batched = batched

    def __call__(self, items: Any) -> Any:
        if not self.batched:
            item, number, state = items
            return self.collate(item), number, state
        return self.collate([item for item, _, _ in items]), *items[-1][1:]


class _Begin:
    """Run first in each worker: what the user wants, then the state that the worker goes on from."""

    def __init__(self, own: Callable[[int], None] | None):
        self.own = own
        self.states: dict[int, dict[str, Any]] = {}

    def __call__(self, number: int) -> None:
        if self.own is not None:
            self.own(number)
        worker = torch.utils.data.get_worker_info()
        if worker is not None and number in self.states:
            tracked: Any = worker.dataset
            tracked.dataset.load_state_dict(self.states[number])


class DataLoader(torch.utils.data.DataLoader[Any]):
    """A torch.utils.data.DataLoader with six workers that hold four batches each and stay between epochs; all other arguments are torch's.

    Where the dataset is an IterableDataset that is Checkpointable, so is the loader: its state counts the batches that were taken, not
    those that were read ahead. With num_workers=0 the process itself reads, and nothing is read ahead.
    """

    def __init__(
        self, dataset: Any, *args: Any, num_workers: int = NUM_WORKERS, prefetch_factor: int | None = PREFETCH_FACTOR, **kwargs: Any
    ):
        kwargs["num_workers"] = num_workers
        if num_workers > 0:
            kwargs = {"persistent_workers": True, **kwargs, "prefetch_factor": prefetch_factor}
        self._tracks = isinstance(dataset, torch.utils.data.IterableDataset) and isinstance(dataset, Checkpointable)
        self._begin = _Begin(kwargs.get("worker_init_fn"))
        self._states: dict[int, dict[str, Any]] = {}
        if self._tracks:
            kwargs["worker_init_fn"] = self._begin
        super().__init__(_Tracked(dataset) if self._tracks else dataset, *args, **kwargs)
        if self._tracks:
            self.collate_fn = _Collate(self.collate_fn, self.batch_size is not None)

    def __iter__(self) -> Any:
        batches = super().__iter__()
        return self._taken(batches) if self._tracks else batches

    def _taken(self, batches: Iterator[Any]) -> Iterator[Any]:
        self._states, self._begin.states = dict(self._begin.states), {}
        for batch, number, state in batches:
            self._states[number] = state
            yield batch

    def _grid(self) -> dict[str, int]:
        return {"version": VERSION, "world_size": _place()[1], "num_workers": self.num_workers}

    def _dataset(self) -> Any:
        if not self._tracks:
            raise TypeError("the dataset is no IterableDataset with state_dict and load_state_dict")
        return self.dataset.dataset  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        """Where each worker is, by the batches that were taken of it. Raises TypeError where the dataset has no state."""
        self._dataset()
        return {**self._grid(), "workers": dict(self._states or self._begin.states)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there with the next iteration. Raises ValueError where the world or the workers are other than they were."""
        dataset = self._dataset()
        for name, value in self._grid().items():
            if state_dict.get(name) != value:
                raise ValueError(f"the state has {name} {state_dict.get(name)!r}, this loader {value}")
        states = {int(number): state for number, state in state_dict["workers"].items()}
        self._states = states
        if self.num_workers == 0:
            for state in states.values():
                dataset.load_state_dict(state)
            return
        self._begin.states = states
        if self._iterator is not None:  # the workers that stay have begun otherwise
            self._iterator._shutdown_workers()  # type: ignore[attr-defined]
            self._iterator = None
