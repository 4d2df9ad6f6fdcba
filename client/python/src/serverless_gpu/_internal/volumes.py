# SPDX-License-Identifier: Apache-2.0
"""Implements serverless_gpu.data: the files of a volume, split between ranks and workers; a loader whose position in them can be stored;
and storage of torch.distributed.checkpoint in a volume.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, Callable, Union

import torch.distributed as dist
import torch.utils.data
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter

from serverless_gpu.data import Checkpointable

PathLike = Union[str, "os.PathLike[str]"]

NUM_WORKERS = 6  # processes that read ahead
PREFETCH_FACTOR = 4  # batches that each worker holds ready
TIMINGS_S = 10.0  # between two reports of timings
VERSION = 1  # of the states that this module makes


def _place() -> tuple[int, int]:
    """Return (rank, world) of this process; (0, 1) if torch.distributed is not initialized."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1)


class NotMounted(NotADirectoryError, ValueError):
    """The folder is not on this machine."""


def _mounted(path: PathLike) -> str:
    folder = os.path.abspath(os.fspath(path))
    if not os.path.isdir(folder):
        raise NotMounted(f"the volume {folder} is no folder on this machine: mount it on the nodes, too")
    return folder


def _is_path(checkpoint_id: PathLike) -> bool:
    return os.path.isabs(os.fspath(checkpoint_id))


def _integer(state: dict[str, Any], name: str, least: int) -> int:
    value = state.get(name)
    if not isinstance(value, int) or value < least:
        raise ValueError(f"the state has no sound {name!r}: {value!r}")
    return value


class UCVolumeWriter(FileSystemWriter):
    """Writes the checkpoints of `torch.distributed.checkpoint.save(..., storage_writer=UCVolumeWriter(path))` to a folder.

    The folder is made if it is missing. Further arguments are those of torch's FileSystemWriter.
    """

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        """Return whether the id is an absolute path and no URL; the folder need not exist yet."""
        return _is_path(checkpoint_id)


class UCVolumeReader(FileSystemReader):
    """Reads the checkpoints of `torch.distributed.checkpoint.load(..., storage_reader=UCVolumeReader(path))` from a folder.

    Raises NotMounted, which is a NotADirectoryError and a ValueError, if the path is no folder.
    """

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(_mounted(path), **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        """Return whether the id is an absolute path and no URL."""
        return _is_path(checkpoint_id)


class UCVolumeDataset(torch.utils.data.IterableDataset[str]):
    """Yields the paths of the files directly in a folder, sorted; each path goes to one rank and one worker of a DataLoader.

    The ranks are those of torch.distributed if it is initialized when the iteration begins. The list of files is made once, so that all
    ranks and workers count alike while files are added. The state is the number of paths that this stream has yielded.
    """

    def __init__(self, path: PathLike):
        self.paths = sorted(entry.path for entry in os.scandir(_mounted(path)) if entry.is_file())
        self._given = 0
        self._skip: int | None = None  # how many paths the next iteration skips, from a loaded state

    def _stream(self) -> tuple[int, int, list[str]]:
        """Return (rank, worker, the files of this worker)."""
        rank, world = _place()
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return rank, number, self.paths[rank::world][number::workers]

    def __iter__(self) -> Iterator[str]:
        _, _, files = self._stream()
        self._given, self._skip = self._skip or 0, None
        for file in files[self._given :]:
            self._given += 1
            yield file

    def state_dict(self) -> dict[str, Any]:
        """Return the state, from which `load_state_dict` of the same rank and worker continues."""
        rank, number, _ = self._stream()
        return {"version": VERSION, "delivered": self._given if self._skip is None else self._skip, "rank": rank, "worker_id": number}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iteration continue from the state. Raises ValueError for the state of another version, rank or worker."""
        rank, number, _ = self._stream()
        if state_dict.get("version") != VERSION:
            raise ValueError(f"the state is of version {state_dict.get('version')!r}, not {VERSION}")
        if (state_dict.get("rank"), state_dict.get("worker_id")) != (rank, number):
            whose = f"rank {state_dict.get('rank')!r}, worker {state_dict.get('worker_id')!r}"
            raise ValueError(f"the state is of {whose}, and this is rank {rank}, worker {number}")
        self._skip = _integer(state_dict, "delivered", 0)


class _Collate:
    """Makes batches, each with its worker and the state of that worker's dataset after the batch: (batch, worker, state)."""

    def __init__(self, collate: Callable[[Any], Any], dataset: Any):
        self.collate = collate
        self.dataset = dataset

    def __call__(self, items: Any) -> Any:
        worker = torch.utils.data.get_worker_info()
        number = 0 if worker is None else worker.id
        dataset: Any = self.dataset if worker is None else worker.dataset
        return self.collate(items), number, dataset.state_dict()


class _Begin:
    """Runs first in each worker: the user's own function, then the state from which the worker continues."""

    def __init__(self, own: Callable[[int], None] | None):
        self.own = own
        self.states: dict[int, dict[str, Any]] = {}

    def __call__(self, number: int) -> None:
        if self.own is not None:
            self.own(number)
        worker = torch.utils.data.get_worker_info()
        if worker is not None and number in self.states:
            worker.dataset.load_state_dict(self.states[number])  # type: ignore[attr-defined]


class _Timings:
    """Measures how long the loop waits for batches and how long it uses them, and logs mean and variance to MLflow every ten seconds.

    They go to the active run, or to the run of MLFLOW_RUN_ID. Without a run or without MLflow they are dropped. Logging never waits for a
    server.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._rank = _place()[0]
        self._run = ""
        self._seconds: dict[str, list[float]] = {}
        self._sent = time.monotonic()

    def begin(self) -> None:
        """Start over: an epoch begins."""
        self._rank, self._run, self._seconds, self._sent = _place()[0], _run(), {}, time.monotonic()

    def add(self, what: str, begin: float, end: float) -> None:
        """Note a duration."""
        self._seconds.setdefault(what, []).append(end - begin)

    def step(self) -> None:
        """Count a batch that was taken; send the timings if it is time."""
        if self._run and time.monotonic() - self._sent >= TIMINGS_S:
            self.send()
        self.steps += 1

    def end(self) -> None:
        """Send the remaining timings under a step of their own: the epoch ends."""
        self.send()
        self.steps += 1

    def send(self) -> None:
        """Send the durations since the last report."""
        seconds, self._seconds, self._sent = self._seconds, {}, time.monotonic()
        if not self._run or not seconds:
            return
        import mlflow

        values = {f"dataloader/{what}/rank_{self._rank}": statistics.fmean(of) for what, of in seconds.items()}
        values.update({f"dataloader/{what}_variance/rank_{self._rank}": statistics.pvariance(of) for what, of in seconds.items()})
        now = round(time.time() * 1000)
        points = [mlflow.entities.Metric(name, value, now, self.steps) for name, value in values.items()]
        try:
            mlflow.MlflowClient().log_batch(self._run, points, synchronous=False)
        except Exception as error:
            self._run = ""
            warnings.warn(f"the timings of the DataLoader are logged no more: {error}", stacklevel=2)


def _run() -> str:
    """Return the id of the MLflow run for the timings, or ""."""
    named = os.environ.get("MLFLOW_RUN_ID", "")
    if not named and "mlflow" not in sys.modules:
        return ""
    try:
        import mlflow
    except ImportError:
        return ""
    active = mlflow.active_run()
    return named if active is None else str(active.info.run_id)


class DataLoader(torch.utils.data.DataLoader[Any]):
    """A torch.utils.data.DataLoader with six workers that hold four batches each and stay between epochs; all other arguments are torch's.

    If the dataset is Checkpointable, so is the loader: its state counts the batches that were taken, not the batches that were read ahead.
    With num_workers=0 the process itself reads, and nothing is read ahead. If an MLflow run is known, the loader logs the durations in
    seconds as dataloader/fetch_seconds/rank_0 and dataloader/between_next_seconds/rank_0, and their variances.
    """

    collate_fn: Any
    worker_init_fn: Any
    _iterator: Any

    def __init__(
        self, dataset: Any, *args: Any, num_workers: int = NUM_WORKERS, prefetch_factor: int | None = PREFETCH_FACTOR, **kwargs: Any
    ):
        kwargs["num_workers"] = num_workers
        if num_workers > 0:
            kwargs = {"persistent_workers": True, **kwargs, "prefetch_factor": prefetch_factor}
        super().__init__(dataset, *args, **kwargs)
        self._tracks = isinstance(dataset, Checkpointable)
        self._begin = _Begin(self.worker_init_fn)
        self._states: dict[int, dict[str, Any]] = {}
        self._timings = _Timings()
        if self._tracks:
            self.worker_init_fn = self._begin
            self.collate_fn = _Collate(self.collate_fn, dataset)

    def __iter__(self) -> Any:
        batches = super().__iter__()
        self._states, self._begin.states = dict(self._begin.states), {}
        self._timings.begin()
        return self._taken(batches)

    def _taken(self, batches: Iterator[Any]) -> Iterator[Any]:
        asked, given = time.monotonic(), 0.0
        try:
            for batch in batches:
                given = time.monotonic()
                self._timings.add("fetch_seconds", asked, given)
                if self._tracks:
                    batch, number, state = batch
                    self._states[number] = state
                self._timings.step()
                yield batch
                asked = time.monotonic()
                self._timings.add("between_next_seconds", given, asked)
        finally:
            self._timings.end()

    def _grid(self) -> dict[str, int]:
        return {"version": VERSION, "world_size": _place()[1], "num_workers": self.num_workers}

    def _check_tracks(self) -> None:
        if not self._tracks:
            raise TypeError("the dataset has no state_dict and load_state_dict")

    def state_dict(self) -> dict[str, Any]:
        """Return the position of each worker, by the batches taken from it. Raises TypeError if the dataset has no state."""
        self._check_tracks()
        return {**self._grid(), "per_worker": dict(self._states)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iteration continue from the state. Raises ValueError if the version, the number of ranks or of workers differs."""
        self._check_tracks()
        for name, value in self._grid().items():
            if state_dict.get(name) != value:
                raise ValueError(f"the state has {name} {state_dict.get(name)!r}, this loader {value}")
        states = {int(number): state for number, state in state_dict["per_worker"].items()}
        self._states, self._begin.states = states, dict(states)
        if self.num_workers == 0:
            for state in states.values():
                self.dataset.load_state_dict(state)  # type: ignore[attr-defined]
        if self._iterator is not None:  # persistent workers have begun elsewhere
            self._iterator._shutdown_workers()
            self._iterator = None
