# SPDX-License-Identifier: Apache-2.0
"""What serverless_gpu.data offers: files of a volume, split between ranks and workers; a loader whose place in them can be stored; and
storage of torch.distributed.checkpoint in a volume.
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
PREFETCH_FACTOR = 4  # batches that each of them holds ready
TIMINGS_S = 10.0  # between two reports of them
VERSION = 1  # of the states here


def _place() -> tuple[int, int]:
    """(rank, world) of this process, where torch.distributed is initialized."""
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
    """Where `torch.distributed.checkpoint.save(..., storage_writer=UCVolumeWriter(path))` writes. The folder is made where it is missing;
    further arguments are those of torch's FileSystemWriter.
    """

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(path, **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        """Whether it is a path, and no address; the folder need not be there yet."""
        return _is_path(checkpoint_id)


class UCVolumeReader(FileSystemReader):
    """Where `torch.distributed.checkpoint.load(..., storage_reader=UCVolumeReader(path))` reads. A path that is no folder is an error."""

    def __init__(self, path: PathLike, **kwargs: Any):
        super().__init__(_mounted(path), **kwargs)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: PathLike) -> bool:
        """Whether it is a path, and no address."""
        return _is_path(checkpoint_id)


class UCVolumeDataset(torch.utils.data.IterableDataset[str]):
    """The paths of the files that lie in a folder itself, in their order, each for one rank and one worker of a DataLoader.

    The ranks are those of torch.distributed where it is initialized when the iteration begins. The list of files is made once, so that
    all ranks and workers count alike while files come. The state is how many paths this stream has given.
    """

    def __init__(self, path: PathLike):
        self.paths = sorted(entry.path for entry in os.scandir(_mounted(path)) if entry.is_file())
        self._given = 0
        self._skip: int | None = None  # what the next iteration leaves out, of a state that was loaded

    def _stream(self) -> tuple[int, int, list[str]]:
        """(rank, worker, its files)."""
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
        """What `load_state_dict` of the same rank and worker takes: the next iteration goes on there."""
        rank, number, _ = self._stream()
        return {"version": VERSION, "delivered": self._given if self._skip is None else self._skip, "rank": rank, "worker_id": number}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there. Raises ValueError for the state of another version, rank or worker."""
        rank, number, _ = self._stream()
        if state_dict.get("version") != VERSION:
            raise ValueError(f"the state is of version {state_dict.get('version')!r}, not {VERSION}")
        if (state_dict.get("rank"), state_dict.get("worker_id")) != (rank, number):
            whose = f"rank {state_dict.get('rank')!r}, worker {state_dict.get('worker_id')!r}"
            raise ValueError(f"the state is of {whose}, and this is rank {rank}, worker {number}")
        self._skip = _integer(state_dict, "delivered", 0)


class _Collate:
    """Makes batches, each with the worker that made it and the state of its dataset behind it: (batch, worker, state)."""

    def __init__(self, collate: Callable[[Any], Any], dataset: Any):
        self.collate = collate
        self.dataset = dataset

    def __call__(self, items: Any) -> Any:
        worker = torch.utils.data.get_worker_info()
        number = 0 if worker is None else worker.id
        dataset: Any = self.dataset if worker is None else worker.dataset
        return self.collate(items), number, dataset.state_dict()


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
            worker.dataset.load_state_dict(self.states[number])  # type: ignore[attr-defined]


class _Timings:
    """How long batches were waited for, and how long what was done with them took: mean and variance, to MLflow, every ten seconds.

    They go to the active run, or to that of MLFLOW_RUN_ID; where there is none, or no MLflow, nowhere. Nobody waits for a server.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._rank = _place()[0]
        self._run = ""
        self._seconds: dict[str, list[float]] = {}
        self._sent = time.monotonic()

    def begin(self) -> None:
        """An epoch begins."""
        self._rank, self._run, self._seconds, self._sent = _place()[0], _run(), {}, time.monotonic()

    def add(self, what: str, begin: float, end: float) -> None:
        """Note a duration."""
        self._seconds.setdefault(what, []).append(end - begin)

    def step(self) -> None:
        """A batch was taken."""
        if self._run and time.monotonic() - self._sent >= TIMINGS_S:
            self.send()
        self.steps += 1

    def end(self) -> None:
        """The epoch ends; what is left has a step of its own."""
        self.send()
        self.steps += 1

    def send(self) -> None:
        """Send what was noted since the last time."""
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
    """The id of the MLflow run that the timings go to, or ""."""
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

    Where the dataset is Checkpointable, so is the loader: its state counts the batches that were taken, not those that were read ahead.
    With num_workers=0 the process itself reads, and nothing is read ahead. How long batches take is logged to MLflow where a run is known:
    dataloader/fetch_seconds/rank_0, dataloader/between_next_seconds/rank_0, and their variances.
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
        """Where each worker is, by the batches that were taken of it. Raises TypeError where the dataset has no state."""
        self._check_tracks()
        return {**self._grid(), "per_worker": dict(self._states)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there with the next iteration. Raises ValueError where the world or the workers are other than they were."""
        self._check_tracks()
        for name, value in self._grid().items():
            if state_dict.get(name) != value:
                raise ValueError(f"the state has {name} {state_dict.get(name)!r}, this loader {value}")
        states = {int(number): state for number, state in state_dict["per_worker"].items()}
        self._states, self._begin.states = states, dict(states)
        if self.num_workers == 0:
            for state in states.values():
                self.dataset.load_state_dict(state)  # type: ignore[attr-defined]
        if self._iterator is not None:  # the workers that stay have begun otherwise
            self._iterator._shutdown_workers()
            self._iterator = None
