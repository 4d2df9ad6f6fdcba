# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="import-untyped"
"""What people do with `databricks.air`, done with the one on the path, ours or the original: writes {use: what came of it} to uses.json
in the folder.

    python air_uses.py FOLDER

What came of a use is {"value": ...}, or {"raised": the names of the classes of the exception}. FOLDER is empty, and stands for a volume.
Uses that need Databricks' service are left out. The functions are named as the uses; a use is done in a process of its own only where it
says so.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import logging
import multiprocessing
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

os.environ["DATABRICKS_INTERNAL_BETA_WARNING_PRINTED"] = "1"
sys.modules["ipywidgets"] = types.SimpleNamespace(Output=object)  # type: ignore[assignment]  # the original shows tables with it

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from databricks import air  # noqa: E402
from databricks.air import compute, data, exceptions, runtime  # noqa: E402

FOLDER = Path(sys.argv[1])
VOLUME = FOLDER / "volume"
RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "REPLICA_RANK")
USES: dict[str, Callable[[], Any]] = {}


def use(function: Callable[[], Any]) -> Callable[[], Any]:
    USES[function.__name__] = function
    return function


def named(number: int, *ways: tuple[str, Callable[[], Any]]) -> Any:
    """Several short uses; `number` is how many, so that none is lost unseen."""
    assert number == len(ways)
    USES.update(ways)


def came_of(function: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": json.loads(json.dumps(function()))}
    except Exception as error:
        return {"raised": [kind.__name__ for kind in type(error).__mro__ if kind not in (object, BaseException, Exception)]}


@contextlib.contextmanager
def environment(**variables: Any) -> Iterator[None]:
    before = dict(os.environ)
    for name in RANKS:
        os.environ.pop(name, None)
    os.environ.update({name: str(value) for name, value in variables.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# --- compute ---


@use
def gpu_types_are_found_by_any_spelling() -> Any:
    return [compute.GPUType(text).name for text in ("H100", "h100", "h100_80gb", "H100_80GB", "a10", "A10", "A10G", "a10g", "b300")]


@use
def accelerator_types_are_found_by_any_spelling() -> Any:
    return [compute.AcceleratorType(text).name for text in ("GPU_8xH100", "gpu_1xh100", "GPU_1XA10", "gpu_8xB300")]


@use
def accelerator_types_say_what_they_are() -> Any:
    return [(each.name, each.value, each.gpu_type.name, each.gpus_per_node) for each in compute.AcceleratorType]


@use
def accelerator_types_come_of_gpu_types() -> Any:
    make = compute.AcceleratorType.from_gpu_type
    kinds = (compute.GPUType.H100, compute.GPUType.A10, compute.GPUType.B300)
    return [make(kind, count).value for kind in kinds for count in (1, 2, 8, 16)]


named(
    6,
    ("values_of_gpu_types", lambda: compute.GPUType.values()),
    ("names_of_gpu_types", lambda: compute.GPUType.names()),
    ("an_unknown_gpu_type", lambda: compute.GPUType("H1000")),
    ("values_of_accelerator_types", lambda: compute.AcceleratorType.values()),
    ("an_unknown_accelerator_type", lambda: compute.AcceleratorType("GPU_9xH100")),
    ("no_accelerator_type_of_a_gpu_type", lambda: compute.AcceleratorType.from_gpu_type("L4", 1)),  # type: ignore[arg-type]
)


# --- exceptions ---


@use
def exceptions_and_what_each_is() -> Any:
    found = inspect.getmembers(exceptions, inspect.isclass)
    return {name: sorted(kind.__name__ for kind in own.__mro__ if (kind.__name__, kind) in found) for name, own in found}


# --- ranks ---


def ranks() -> dict[str, int]:
    names = ("global_rank", "local_rank", "node_rank", "world_size", "local_world_size", "replica_rank")
    return {name: getattr(runtime, f"get_{name}")() for name in names}


def place(rank: int) -> dict[str, Any]:
    return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "NODE_RANK": 0}


@use
def ranks_of_a_plain_process() -> Any:
    with environment():
        return ranks()


@use
def ranks_of_the_environment() -> Any:
    with environment(RANK=5, WORLD_SIZE=8, LOCAL_RANK=1, LOCAL_WORLD_SIZE=4, NODE_RANK=1, REPLICA_RANK=0):
        return ranks()


@use
def ranks_of_the_environment_without_a_replica() -> Any:
    with environment(RANK=5, WORLD_SIZE=8, LOCAL_RANK=1, LOCAL_WORLD_SIZE=4, NODE_RANK=1):
        return ranks()


@use
def a_rank_that_is_no_number() -> Any:
    with environment(RANK="first"):
        return runtime.get_global_rank()


def in_a_group(rank: int) -> dict[str, Any]:
    """What one of two processes sees that have initialized torch.distributed."""
    found: dict[str, Any] = {}
    with environment(**place(rank)):
        dist.init_process_group("gloo", init_method=f"file://{FOLDER}/meeting", rank=rank, world_size=2)
        alone = dist.new_group([1])
        whole = dist.new_group([0, 1])
        found["ranks"] = ranks()
        found["in_groups"] = [runtime.get_global_rank(whole), runtime.get_global_rank(alone) if rank == 1 else None]
        os.environ["RANK"] = "7"
        found["contradicted"] = came_of(runtime.get_global_rank)
        del os.environ["RANK"], os.environ["LOCAL_RANK"]
        found["not_said"] = came_of(runtime.get_global_rank)
        found["local_not_said"] = came_of(runtime.get_local_rank)
    loader = data.DataLoader(data.UCVolumeDataset(str(VOLUME)), batch_size=2, num_workers=1)
    found["files"] = [read(batch) for batch in loader]
    found["state"] = loader.state_dict()
    found["workers"] = data.DataLoader([1]).num_workers
    dist.barrier()
    dist.destroy_process_group()
    return found


def two_processes() -> None:
    """Do what two processes do, and make uses of what they found."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    processes = [context.Process(target=lambda rank=rank: queue.put((rank, came_of(lambda: in_a_group(rank))))) for rank in (0, 1)]
    for process in processes:
        process.start()
    found = dict(queue.get() for _ in processes)
    for process in processes:
        process.join()
    for name in found[0].get("value", {"failed": None}):
        USES[f"two_processes_{name}"] = lambda name=name: [found[rank].get("value", found[rank]).get(name) for rank in (0, 1)]


# --- data ---


def fill() -> None:
    """Ten files whose names and contents are numbers, and a folder that is none of them."""
    (VOLUME / "folder").mkdir(parents=True)
    (VOLUME / "folder" / "10").write_text("10")
    for number in range(10):
        (VOLUME / str(number)).write_text(str(number))
    if hasattr(data, "fs_layer"):  # the original takes no other folders
        data.fs_layer.CachingUCFuseFSLayer._UC_FUSE_PREFIX = str(FOLDER)
        data.fs_layer.time = types.SimpleNamespace(sleep=lambda seconds: None)


def read(paths: Any) -> Any:
    return Path(paths).read_text() if isinstance(paths, str) else [Path(path).read_text() for path in paths]


def files() -> Any:
    return data.UCVolumeDataset(str(VOLUME))


def loader(**options: Any) -> Any:
    return data.DataLoader(files(), **{"batch_size": 2, "num_workers": 2, **options})


def alone(**options: Any) -> Any:
    """One that reads by itself."""
    return loader(num_workers=0, prefetch_factor=None, **options)


@use
def files_of_a_volume() -> Any:
    return read(files())


@use
def a_dataset_goes_on_and_then_from_the_start() -> Any:
    first, second = files(), files()
    begun = iter(first)
    some = [read(next(begun)) for _ in range(3)]
    state = first.state_dict()
    second.load_state_dict(state)
    return [some, state, second.state_dict(), read(second), second.state_dict(), read(second)]


@use
def a_dataset_goes_back() -> Any:
    dataset = files()
    state = dataset.state_dict()
    begun = iter(dataset)
    next(begun), next(begun)
    dataset.load_state_dict(state)
    return [dataset.state_dict(), read(dataset)]


STATE = {"version": 1, "delivered": 1, "rank": 0, "worker_id": 0}


def loads(**wrong: Any) -> tuple[str, Callable[[], Any]]:
    return f"a_wrong_state_of_a_dataset_{next(iter(wrong))}", lambda: files().load_state_dict({**STATE, **wrong})


def resumed(**options: Any) -> Any:
    """Batches taken before a state was made, the state, what another loader gives from there, and its next epoch."""
    first, second = loader(**options), loader(**options)
    batches = iter(first)
    taken = [read(next(batches)) for _ in range(3)]
    state = first.state_dict()
    second.load_state_dict(json.loads(json.dumps(state)))
    told = second.state_dict()
    rest = [read(batch) for batch in second]
    whole = [read(batch) for batch in second]
    iter(second)
    return {"taken": taken, "state": state, "told": told, "rest": rest, "whole": whole, "begun": second.state_dict()}


@use
def a_loader_of_plain_items() -> Any:
    plain = data.DataLoader(list(range(5)), 2, num_workers=1)
    return [plain.prefetch_factor, plain.persistent_workers, [batch.tolist() for batch in plain], [batch.tolist() for batch in plain]]


class Lines:
    """A dataset of somebody's own that makes several items of a file."""

    def __init__(self) -> None:
        self.inner = files()

    def __iter__(self) -> Iterator[str]:
        for path in self.inner:
            yield from (read(path), read(path).upper())

    def state_dict(self) -> Any:
        return self.inner.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self.inner.load_state_dict(state)


class LineDataset(Lines, torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    pass


@use
def a_dataset_around_another_goes_on() -> Any:
    first = data.DataLoader(LineDataset(), batch_size=4, num_workers=1)
    batches = iter(first)
    taken = [next(batches), next(batches)]
    second = data.DataLoader(LineDataset(), batch_size=4, num_workers=1)
    second.load_state_dict(first.state_dict())
    return [taken, first.state_dict(), list(second)]


def begin(number: int) -> None:
    os.environ["BEGUN"] = str(number)


@use
def what_is_said_at_the_start_of_workers_and_of_batches() -> Any:
    own = loader(worker_init_fn=begin, collate_fn=lambda paths: [os.environ["BEGUN"], *read(paths)])
    return list(own)


@use
def the_dataset_of_a_loader_is_the_given_one() -> Any:
    dataset = files()
    return data.DataLoader(dataset, num_workers=1).dataset is dataset


@use
def timings_go_to_mlflow() -> Any:
    import mlflow

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a database takes seconds to make
    mlflow.set_tracking_uri(f"file://{FOLDER}/mlruns")
    with mlflow.start_run() as run:
        twice, once = alone(), alone()
        for batches in (twice, twice, itertools.islice(once, 1)):
            list(batches)
            del batches
            mlflow.flush_async_logging()  # the store of files loses what comes side by side
    client = mlflow.MlflowClient()
    names = sorted(client.get_run(run.info.run_id).data.metrics)
    steps = {name: [point.step for point in client.get_metric_history(run.info.run_id, name)] for name in names}
    return [steps, all(value >= 0 for value in client.get_run(run.info.run_id).data.metrics.values())]


@use
def what_is_checkpointable() -> Any:
    return [isinstance(each, data.Checkpointable) for each in (files(), loader(), Lines(), [1], object())]


named(
    17,
    loads(version=2),
    loads(rank=1),
    loads(worker_id=3),
    loads(delivered=-1),
    ("a_dataset_of_no_folder", lambda: data.UCVolumeDataset(str(VOLUME / "0"))),
    ("a_dataset_outside_of_volumes", lambda: len(data.UCVolumeDataset(f"{os.path.dirname(__file__)}").state_dict())),
    ("batches_of_two_workers", lambda: [read(batch) for batch in loader()]),
    ("single_items", lambda: [read(item) for item in alone(batch_size=None)]),
    ("a_loader_goes_on", lambda: resumed()),
    ("a_loader_goes_on_with_single_items", lambda: resumed(batch_size=None, num_workers=1)),
    ("a_loader_that_reads_itself_goes_on", lambda: resumed(num_workers=0, prefetch_factor=None)),
    ("a_state_of_another_grid", lambda: loader(num_workers=1).load_state_dict({**loader().state_dict()})),
    ("a_state_of_another_version", lambda: loader().load_state_dict({**loader().state_dict(), "version": 9})),
    ("a_state_of_plain_items", lambda: data.DataLoader([1], num_workers=1).state_dict()),
    ("workers_by_default", lambda: data.DataLoader([1]).num_workers),
    ("workers_that_do_not_stay", lambda: loader(persistent_workers=False).persistent_workers),
    ("workers_that_are_not_forked", lambda: loader(multiprocessing_context="spawn").num_workers),
)


# --- checkpoints ---


def saved(save: Callable[..., Any], **options: Any) -> Any:
    from torch.distributed import checkpoint

    folder = VOLUME / f"step{len(os.listdir(VOLUME))}" / "model"
    writer = data.UCVolumeWriter(str(folder), **options)
    done = save({"weights": torch.arange(6.0), "step": 3}, storage_writer=writer, no_dist=True)
    if done is not None and hasattr(done, "result"):
        done.result()
    state = {"weights": torch.zeros(6), "step": 0}
    checkpoint.load(state, storage_reader=data.UCVolumeReader(str(folder)), no_dist=True)
    return [state["weights"].tolist(), state["step"], sorted(os.listdir(folder))]  # type: ignore[attr-defined]


@use
def checkpoints_are_saved_and_loaded() -> Any:
    from torch.distributed import checkpoint

    return [saved(checkpoint.save), saved(checkpoint.save, single_file_per_rank=False, thread_count=2)]


@use
def checkpoints_are_saved_meanwhile() -> Any:
    from torch.distributed import checkpoint

    return saved(checkpoint.async_save)


@use
def ids_of_checkpoints() -> Any:
    ids = ("/Volumes/catalog/schema/volume/step1", "s3://bucket/step1", "step1")
    return [[each.validate_checkpoint_id(text) for text in ids] for each in (data.UCVolumeWriter, data.UCVolumeReader)]


# --- functions ---


def train(rate: float, epochs: int = 1) -> float:
    return rate * epochs


def decorated(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return air.distributed(*arguments, **{"remote": True, **options})(train)


def wants(function: Any) -> list[Any]:
    kind = compute.GPUType(function.gpu_type).name
    return [function.num_accelerators, function.gpus, kind, function.accelerator_type.value, function.remote, function.timeout]


def changed(**options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = decorated(8, "GPU_8xH100", timeout=60)
        return [wants(function.with_overrides(**options)), wants(function)]


@use
def the_ways_to_say_what_a_function_wants() -> Any:
    ways = [
        decorated(num_accelerators=8, accelerator_type="GPU_8xH100", timeout=3600),
        decorated(16, "gpu_8xh100", timeout=None),
        decorated(1, compute.AcceleratorType.GPU_1xA10, timeout=1.5),
        decorated(8, "H100", timeout=None),
        decorated(8, compute.GPUType.B300, timeout=None),
        decorated(gpus=8, gpu_type="h100_80gb", timeout=None),
        decorated(gpus=1, gpu_type=compute.GPUType.A10, timeout=None),
        decorated(gpus=8, gpu_type="GPU_8xH100", timeout=None),
        decorated(1, gpu_type="A10", timeout=None),
    ]
    return [wants(way) for way in ways]


@use
def a_function_wants_something_else() -> Any:
    return [
        changed(num_accelerators=16),
        changed(num_accelerators=1, accelerator_type="GPU_1xH100"),
        changed(num_accelerators=4, accelerator_type="GPU_1xA10", timeout=None),
        changed(gpus=16, gpu_type="B300", timeout=5),
        changed(timeout=0.5),
    ]


@use
def the_function_itself() -> Any:
    function = decorated(8, "GPU_8xH100")
    return [function.func is train, function.func(2.0, epochs=3), function.with_overrides(16).func is train, "train" in repr(function)]


named(
    25,
    ("no_whole_number", lambda: decorated(1.5, "GPU_1xA10")),
    ("a_truth_as_a_number", lambda: decorated(True, "GPU_1xA10")),
    ("a_text_as_a_number", lambda: decorated("8", "GPU_8xH100")),
    ("no_gpus", lambda: decorated(0, "GPU_1xA10")),
    ("no_parentheses", lambda: air.distributed(train)),  # type: ignore[arg-type]
    ("fewer_than_no_gpus", lambda: decorated(gpus=-8, gpu_type="H100")),
    ("an_unknown_type", lambda: decorated(8, "H1000")),
    ("a_type_that_is_no_text", lambda: decorated(8, 100)),
    ("an_earlier_type_that_is_no_text", lambda: decorated(8, gpu_type=100)),
    ("an_earlier_type_that_is_unknown", lambda: bool(decorated(8, gpu_type="H1000"))),
    ("nodes_of_a_kind_that_is_not_offered", lambda: bool(decorated(4, "GPU_4xH100"))),
    ("a_part_of_a_node", lambda: bool(decorated(4, "GPU_8xH100"))),
    ("several_nodes_of_one_gpu", lambda: bool(decorated(2, "GPU_1xH100"))),
    ("a_number_is_left_out", lambda: bool(decorated(accelerator_type="GPU_8xH100"))),
    ("a_type_is_left_out", lambda: bool(decorated(8))),
    ("both_numbers", lambda: decorated(8, "GPU_8xH100", gpus=8)),
    ("both_types", lambda: decorated(8, "GPU_8xH100", gpu_type="H100")),
    ("no_time", lambda: decorated(8, "GPU_8xH100", timeout=0)),
    ("time_as_a_text", lambda: decorated(8, "GPU_8xH100", timeout="1h")),
    ("time_as_a_truth", lambda: decorated(8, "GPU_8xH100", timeout=True)),
    ("changed_to_no_gpus", lambda: changed(num_accelerators=0)),
    ("changed_to_no_time", lambda: changed(timeout=-1)),
    ("changed_by_both_numbers", lambda: changed(num_accelerators=8, gpus=8)),
    ("a_plain_call", lambda: decorated(8, "GPU_8xH100")(2.0)),
    ("arguments_that_it_does_not_take", lambda: decorated(8, "GPU_8xH100").distributed(1, 2, 3)),
)


@use
def what_is_seen_of_a_function() -> Any:
    return repr(decorated(8, "GPU_8xH100", timeout=60))


@use
def an_argument_that_cannot_be_pickled() -> Any:
    with mock.patch("torch.cuda.device_count", return_value=1), mock.patch("torch.cuda.get_device_name", return_value="NVIDIA A10G"):
        function = decorated(1, "GPU_1xA10", remote=False)
    with environment(DATABRICKS_HOST="nowhere", DATABRICKS_TOKEN="none"):  # so that the original does not look for them
        return function.distributed(threading.Lock())


@use
def names_that_can_be_imported() -> Any:
    import databricks.air.data.dcp_storage as storage
    from databricks.air.data.checkpoint import Checkpointable
    from databricks.air.data.dataloader import DataLoader
    from databricks.air.data.dcp_storage import UCVolumeReader, UCVolumeWriter
    from databricks.air.data.uc_volume_dataset import UCVolumeDataset
    from databricks.air.launcher import DistributedFunction

    same = [Checkpointable is data.Checkpointable, DataLoader is data.DataLoader, UCVolumeReader is data.UCVolumeReader]
    same += [UCVolumeDataset is data.UCVolumeDataset, storage.UCVolumeWriter is UCVolumeWriter]
    return [*same, isinstance(decorated(8, "GPU_8xH100"), DistributedFunction), isinstance(air.__version__, str)]


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    fill()
    two_processes()
    (FOLDER / "uses.json").write_text(json.dumps({name: came_of(function) for name, function in USES.items()}))
