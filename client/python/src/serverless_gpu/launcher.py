# SPDX-License-Identifier: Apache-2.0
"""The decorator: keeps a function with its options, and does nothing else until `.distributed(...)` is called."""

from __future__ import annotations

import copy
import functools
import operator

from serverless_gpu.exceptions import GPUTypeError, GPUValidationError, RuntimeConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta
    from typing import Any, Callable, Generic, Literal, Protocol, TypeVar, Union, overload

    from typing_extensions import ParamSpec

    from serverless_gpu._internal.calls.call import DistributedFunctionCall
    from serverless_gpu._internal.calls.job import Job
    from serverless_gpu._internal.calls.mapping import MapCall
    from serverless_gpu.compute import AcceleratorType
    from serverless_gpu.planner import Plan

    P = ParamSpec("P")
    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)

    Requirements = Union[bool, None, str, "os.PathLike[str]", Sequence[str]]
    WorkingDir = Union[bool, None, str, "os.PathLike[str]"]
    Followed = Union[str, Job, tuple[Union[str, Job], str]]
    After = Union[None, Followed, list[Followed]]
    GpuType = Union[str, Sequence[str], None]
    Names = Union[str, Sequence[str], None]

    class _Typed(Generic[P, R]):
        pass

    class AsyncDistributedFunction(Protocol[P, R_co]):
        """A DistributedFunction made with run_async=True."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

        def distributed(self, *args: P.args, **kwargs: P.kwargs) -> DistributedFunctionCall: ...

        def submit(self, *args: P.args, **kwargs: P.kwargs) -> DistributedFunctionCall: ...

        def map(self, values: Iterable[Any], **options: Any) -> MapCall: ...

        def starmap(self, values: Iterable[Sequence[Any]], **options: Any) -> MapCall: ...

        def plan(self, *args: Any, **kwargs: Any) -> Plan: ...

else:

    class _Typed:
        def __class_getitem__(cls, parameters):
            return cls


_UNSET: Any = object()

#: Databricks' spellings -> the nodes' names of the same GPUs.
_DATABRICKS_TYPES = {"h100_80gb": "H100", "a10g": "A10G|A10"}


class Options:
    """The arguments of `distributed`, by their names. The controller checks values that only it can judge."""

    gpus: int | None  # None: as many as one node has; the call asks for the number
    gpu_type: str | None
    cpus: float | None
    memory: int | str | None
    remote: bool | None  # None: False with the user's own instance, else True
    run_async: bool
    name: str | None
    project: str | None
    pool: str | None
    constraints: Mapping[str, Any]
    avoid: list[str]
    exclude: list[str]
    placement: str | None
    nodes: int | None
    env: Mapping[str, str | None]  # None: not set, even if this process has it
    secrets: list[str]
    volumes: list[str]
    checkpoint_volume: str | None = None
    inputs: list[str]
    image: str | None = None
    worker_image: str | None = None
    image_secret: str | None = None
    inherit_env: bool
    requirements: Requirements
    working_dir: WorkingDir
    labels: Mapping[str, str]
    python: str | None
    retries: int
    infra_retries: int | None
    timeout_s: float | None
    keep_on_failure_s: float | None
    early_signal: dict[str, Any] | None
    priority: int | None
    launch_mode: str | None
    after: Sequence[Mapping[str, str]]
    hold: bool
    notify: list[str]
    quiet: bool
    #: The remedy in messages if this machine cannot run the job, in the terms of the called interface.
    elsewhere = "remote=False runs on one node of this host: use remote=True for any nodes"


class DistributedFunction(_Typed["P", "R"]):
    """A function that runs on GPUs by `.distributed(...)`, and in this process by a plain call."""

    __wrapped__: Callable[P, R]
    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[P, R], options: Options):
        functools.update_wrapper(self, function)
        self._options = options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function in this process."""
        return self.__wrapped__(*args, **kwargs)

    def distributed(self, *args: P.args, **kwargs: P.kwargs) -> list[R]:
        """Run one copy of the function per rank, all with these arguments, and return their values as a list by global rank.

        The output of the ranks appears as it is written. Raises JobFailed (a RuntimeError) if the job does not succeed; its cause is the
        exception of the first rank that failed. An interrupt (KeyboardInterrupt) cancels the job. Raises TypeError for arguments that the
        function does not take or that cannot be pickled, ValueError for options that cannot be served, and other errors of
        `serverless_gpu.errors`.

        With `run_async=True` it submits the job and returns a DistributedFunctionCall at once. Its `result()` waits, and returns or raises
        the same; `done()`, `status()`, `wait(timeout)`, `exception()`, `cancel()`, `logs()` and `metrics()` ask about it.
        """
        from serverless_gpu._internal.calls.call import DistributedFunctionCall

        call = DistributedFunctionCall.prepare(self.__wrapped__, self._options, args, kwargs)
        if self._options.run_async:  # then its type is AsyncDistributedFunction
            return call.start()  # type: ignore[return-value]
        return call.run()

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> DistributedFunctionCall:
        """Submit the call and return its handle at once, as `.distributed(...)` does with `run_async=True`.

        `await f.submit(...)` gives the values, and `asyncio.gather` waits for several. `f.remote` is the option of that name, as with
        Databricks' packages, so it cannot be called.
        """
        from serverless_gpu._internal.calls.call import DistributedFunctionCall

        options = copy.copy(self._options)
        options.quiet = options.quiet or not options.run_async
        return DistributedFunctionCall.prepare(self.__wrapped__, options, args, kwargs).start()

    def map(
        self, values: Iterable[Any], *, ordered: bool = True, return_exceptions: bool = False, max_concurrent: int | None = None
    ) -> MapCall:
        """Call the function once for each value, each call as a task of one array job, and return an iterator of what they return.

        The function and all values are sent once. The iterator gives values in the order of `values`, or with `ordered=False` as calls end.
        A call that failed raises JobFailed, which names its number and its argument, and the iterator goes on behind it; with
        `return_exceptions=True` the exception takes the place of the value. `max_concurrent`: so many calls run at a time; None: as many as
        fit. A call on several ranks gives the list of their values. `result()` returns all values, `dataframe()` a table. An interrupt does
        not cancel the job: `cancel()` does. Raises TypeError and ValueError for wrong arguments, before anything is sent.
        """
        return self._map(values, False, ordered, return_exceptions, max_concurrent)

    def starmap(
        self,
        values: Iterable[Sequence[Any]],
        *,
        ordered: bool = True,
        return_exceptions: bool = False,
        max_concurrent: int | None = None,
    ) -> MapCall:
        """Like `map`, for a function of several parameters: each item is a tuple of the arguments of one call."""
        return self._map(values, True, ordered, return_exceptions, max_concurrent)

    def _map(self, values: Any, several: bool, ordered: bool, return_exceptions: bool, max_concurrent: int | None) -> MapCall:
        from serverless_gpu._internal.calls.mapping import MapCall, calls_of

        _flag("ordered", ordered)
        _flag("return_exceptions", return_exceptions)
        calls = calls_of(values, several)
        return MapCall.prepare_all(self.__wrapped__, self._options, calls, ordered, return_exceptions, max_concurrent).start()

    @property
    def func(self) -> Callable[P, R]:
        """The function itself."""
        return self.__wrapped__

    @property
    def gpus(self) -> int:
        """The number of GPUs; 0: none, or as many as one node has where the decorator left that open."""
        return self._options.gpus or 0

    num_accelerators = gpus

    @property
    def gpu_type(self) -> str | None:
        """The type of the GPUs; None: any."""
        return self._options.gpu_type

    @property
    def accelerator_type(self) -> AcceleratorType | None:
        """The nodes that Databricks would take for these GPUs; None if Databricks has no such nodes."""
        from serverless_gpu.compute import AcceleratorType, GPUType

        try:
            return AcceleratorType.from_gpu_type(GPUType(self._options.gpu_type), self.gpus)
        except ValueError:
            return None

    @property
    def timeout(self) -> float | None:
        """The time limit of an attempt in seconds; None: no limit."""
        return self._options.timeout_s

    @property
    def remote(self) -> bool | None:
        """True: any nodes; False: this machine; None: this machine with the user's own instance, else any nodes."""
        return self._options.remote

    def with_overrides(
        self,
        num_accelerators: int | None = None,
        accelerator_type: Any = None,
        remote: bool | None = None,
        timeout: Any = _UNSET,
        *,
        gpus: int | None = None,
        gpu_type: Any = None,
    ) -> DistributedFunction[P, R]:
        """Return the same function with the given options replaced. accelerator_type is as in `serverless_gpu.air.distributed`."""
        from serverless_gpu import air

        options = copy.copy(self._options)
        wanted = air.wanted(num_accelerators, accelerator_type, gpus, gpu_type)
        options.gpus, options.gpu_type = wanted.gpus or options.gpus, wanted.gpu_type or options.gpu_type
        options.remote = options.remote if remote is None else _flag("remote", remote)
        options.timeout_s = options.timeout_s if timeout is _UNSET else _seconds(timeout)
        return DistributedFunction(self.__wrapped__, options)

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """Return when `.distributed(*args, **kwargs)` would start, or why it would not start now; see `serverless_gpu.planner.plan`.

        Arguments may be left out. If they are given, they are checked as a call does: TypeError for those that the function does not take
        or that cannot be pickled.
        """
        from serverless_gpu import planner

        return planner.ask(self._options, self.__wrapped__, (args, kwargs) if args or kwargs else None)

    def __get__(self, instance: Any, owner: Any = None) -> DistributedFunction[..., R]:
        """Return the method bound to its object, which is sent with it."""
        if instance is None:
            return self
        return DistributedFunction(functools.partial(self.__wrapped__, instance), self._options)

    def __repr__(self) -> str:
        gpus = "a node's" if self._options.gpus is None else self._options.gpus
        return f"<distributed {getattr(self.__wrapped__, '__qualname__', self.__wrapped__)} on {gpus} GPUs>"


if TYPE_CHECKING:

    @overload
    def distributed(
        gpus: int, gpu_type: GpuType = None, remote: bool = False, *, run_async: Literal[True], **options: Any
    ) -> Callable[[Callable[P, R]], AsyncDistributedFunction[P, R]]: ...

    @overload
    def distributed(
        gpus: int,
        gpu_type: GpuType = None,
        remote: bool = False,
        run_async: Literal[False] = False,
        *,
        name: str | None = None,
        project: str | None = None,
        pool: str | None = None,
        env: Mapping[str, str | None] | None = None,
        secrets: Names = None,
        volumes: Names = None,
        checkpoint_volume: str | None = None,
        image: str | None = None,
        worker_image: str | None = None,
        image_secret: str | None = None,
        inputs: Names = None,
        inherit_env: bool = True,
        requirements: Requirements = True,
        working_dir: WorkingDir = True,
        labels: Mapping[str, str] | None = None,
        python: str | None = None,
        retries: int = 0,
        infra_retries: int | None = None,
        timeout: float | timedelta | None = None,
        keep_on_failure: float | timedelta | None = None,
        early_signal: str | None = None,
        priority: int | None = None,
        launch_mode: str | None = None,
        after: After = None,
        hold: bool = False,
        notify: Names = None,
        quiet: bool | None = None,
        constraints: Mapping[str, Any] | None = None,
        avoid: Names = None,
        exclude: Names = None,
        placement: str | None = None,
        nodes: int | None = None,
        cpus: float | None = None,
        memory: int | str | None = None,
    ) -> Callable[[Callable[P, R]], DistributedFunction[P, R]]: ...


def distributed(  # type: ignore[misc]  # what overloads pass on as options is listed here
    gpus: int,
    gpu_type: GpuType = None,
    remote: bool = False,
    run_async: bool = False,
    *,
    name: str | None = None,
    project: str | None = None,
    pool: str | None = None,
    env: Mapping[str, str | None] | None = None,
    secrets: Names = None,
    volumes: Names = None,
    checkpoint_volume: str | None = None,
    image: str | None = None,
    worker_image: str | None = None,
    image_secret: str | None = None,
    inputs: Names = None,
    inherit_env: bool = True,
    requirements: Requirements = True,
    working_dir: WorkingDir = True,
    labels: Mapping[str, str] | None = None,
    python: str | None = None,
    retries: int = 0,
    infra_retries: int | None = None,
    timeout: float | timedelta | None = None,
    keep_on_failure: float | timedelta | None = None,
    early_signal: str | None = None,
    priority: int | None = None,
    launch_mode: str | None = None,
    after: After = None,
    hold: bool = False,
    notify: Names = None,
    quiet: bool | None = None,
    constraints: Mapping[str, Any] | None = None,
    avoid: Names = None,
    exclude: Names = None,
    placement: str | None = None,
    nodes: int | None = None,
    cpus: float | None = None,
    memory: int | str | None = None,
) -> Callable[[Callable[P, R]], Any]:
    """Make a function that runs once per GPU: `@distributed(gpus=8, gpu_type="H100", remote=True)`.

    gpus           how many GPUs, the total over all nodes; one rank runs for each. 0: one rank without a GPU
    gpu_type       of all of them, such as "H100"; letter case does not matter; ["H100", "A100"] or "H100|A100" takes the first that fits;
                   None takes any one type
    remote         True: any nodes; False: the GPUs of this machine, with its Python and working folder
    run_async      True: `.distributed(...)` submits and returns a handle at once, for several calls side by side
    name, project, labels    to find the job by; the default name is the function's
    pool           of the nodes; None takes $DATABRICKS_REMOTE_GPU_POOL_ID, or any
    env            variables of the ranks, beside rank, world and rendezvous; a value of None keeps the variable from the ranks
    secrets        names of secrets (`gpuctl secret set HF_TOKEN`): "HF_TOKEN" is a variable of the ranks of that name, "HF_TOKEN=TOKEN" one
                   of another name; with ":file" behind it the value is in a file, and the variable HF_TOKEN_FILE, or TOKEN, has its path
    volumes        folders that the nodes have under these names: "data:/data" is found at /data, "data" where the node has it, which
                   $GPUCTL_VOLUME_DATA tells; with ":ro" behind it ranks cannot write
    checkpoint_volume  of these the one on which $GPUCTL_CHECKPOINT_DIR is: for checkpoints that are too large to be sent; nodes share it
    image          container image whose files the ranks see, with a Python of this version: "registry/name:tag", or "name@sha256:..." with
                   its digest. Packages are those of the image, and no requirements are sent
    worker_image   the same for all nodes but that of rank 0, where they need another one
    image_secret   name of the secret with which nodes pull them: the credentials of a registry, as `docker login` writes them
    inputs         data that nodes fetch once, and that ranks read: "train=https://example.org/train.csv" is found at the path in
                   $GPUCTL_INPUT_TRAIN; also "s3://bucket/prefix/#secret=NAME" and "volume:data/set"; ":/data" behind it is a folder for it
    inherit_env    True: with remote=True, variables that this notebook has set are sent, too, and variables that frameworks read (HF_,
                   WANDB_, NCCL_, ...); False: only `env` is sent
    requirements   True: with remote=True, the nodes install the packages of this Python, in its versions; None or False: none; the path
                   of a requirements.txt or pyproject.toml, or a list of lines such as "numpy==2.1.0": they install those packages
    working_dir    True: with remote=True, the working folder is sent, unless it is the home folder or /; None or False: no folder is sent;
                   a path: that folder is sent. It is the working folder of the ranks and on their Python path. Files in .gitignore or
                   .gpuctlignore are not sent. At most 256 MiB and 20,000 files are sent
    python         path of the Python of the ranks; None takes the node's own, and with remote=False this one
    retries        further attempts after the function failed
    infra_retries  further attempts after a node failed; None takes the controller's default
    timeout        time limit of an attempt, seconds or a timedelta; None, the default, sets no limit
    keep_on_failure  seconds or a timedelta, at most a day: so long nodes and folders of an attempt stay as they are after a rank failed, to
                   look at with `gpuctl exec`; the call waits that long. None: they do not
    early_signal   "USR1@60": this signal comes 60 seconds before `timeout` ends, and first of all if the job has to give way to another;
                   without a number, 60 seconds before. The function saves its work on the signal (`signal.signal`), and reports that
                   with `runtime.checkpointed()`. USR1, USR2, TERM, INT, HUP, CONT or URG; None: none
    priority       higher goes first
    launch_mode    "process" (the default): one rank per GPU; "node": one per node
    after          jobs that this one follows, by their ids or handles: it waits until each has succeeded, or ends if one did not; with
                   (job, "after") until it has started, with (job, "afterany") until it has ended
    hold           True: the job is kept back until a person releases it
    notify         ids or names of your webhooks that are told of the job (`gpuctl webhooks create --of named`)
    constraints    labels that the nodes must have: {"zone": "a"}, {"zone": ["a", "b"]} for either, {"disk": {"not": "hdd"}} for any other;
                   every node has node, pool, gpu_type and host
    avoid, exclude names of nodes that are taken only if no others fit, or never
    placement      "pack" (the default): on as few nodes as possible; "spread": on as many as possible, with equal shares
    nodes          exactly this many, with equal numbers of GPUs; None: as placement says
    cpus           how many CPUs, the total over all nodes, 8 or 0.5; None: those that belong to its GPUs
    memory         how much memory, likewise: bytes, or "64G"; None: what belongs to its GPUs
    quiet          True: show neither the ranks' output nor why the job waits; None: True with run_async only

    Raises TypeError for wrong types and ValueError for wrong values; errors about gpus, gpu_type and timeout are both.
    """
    if callable(gpus):
        raise TypeError("distributed takes options: write @distributed(gpus=1) over the function")
    options = Options()
    options.gpus = _gpus(gpus)
    options.gpu_type = _types(gpu_type)
    options.remote = _flag("remote", remote)
    options.name, options.project, options.pool = _text("name", name), _text("project", project), _text("pool", pool)
    options.env, options.labels = _variables(env), _texts("labels", labels)
    options.secrets = _names("secrets", secrets, "texts such as HF_TOKEN or KEY:file")
    options.volumes = _names("volumes", volumes, "texts such as data:/data or data:/data:ro")
    options.checkpoint_volume = _text("checkpoint_volume", checkpoint_volume)
    options.image, options.worker_image = _text("image", image), _text("worker_image", worker_image)
    options.image_secret = _text("image_secret", image_secret)
    options.inputs = _names("inputs", inputs, "texts such as train=https://example.org/train.csv")
    options.inherit_env = _flag("inherit_env", inherit_env)
    options.requirements = _requirements(requirements)
    options.working_dir = _working_dir(working_dir)
    options.python = _text("python", python)
    options.retries = _count("retries", retries)
    options.infra_retries = None if infra_retries is None else _count("infra_retries", infra_retries)
    options.timeout_s = _seconds(timeout)
    options.keep_on_failure_s = _seconds(keep_on_failure, "keep_on_failure")
    options.early_signal = _early_signal(early_signal)
    options.priority = None if priority is None else _whole("priority", priority)
    options.launch_mode = _text("launch_mode", launch_mode)
    options.after, options.hold = _after(after), _flag("hold", hold)
    options.notify = _names("notify", notify)
    options.constraints = _constraints(constraints)
    options.avoid, options.exclude = _names("avoid", avoid), _names("exclude", exclude)
    options.placement = _text("placement", placement)
    options.nodes = None if nodes is None else _whole("nodes", nodes)
    options.cpus, options.memory = _cpus(cpus), _memory(memory)
    options.run_async = _flag("run_async", run_async)
    options.quiet = options.run_async if quiet is None else _flag("quiet", quiet)

    def decorate(function: Callable[P, R]) -> DistributedFunction[P, R]:
        if isinstance(function, DistributedFunction):
            raise TypeError(f"{function!r} is distributed already: decorate it once")
        if not callable(function):
            raise TypeError(f"distributed decorates a function, and {function!r} is none")
        return DistributedFunction(function, options)

    return decorate


# --- options ---


def _whole(name: str, value: Any, wrong: type[Exception] = TypeError) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong(f"{name} must be a whole number, not {value!r}")
    return operator.index(value)


def _gpus(value: Any) -> int:
    gpus = _whole("gpus", value, GPUValidationError)
    if gpus < 0:
        raise GPUValidationError(
            f"gpus must be at least 0, it is {gpus}; give the total over all nodes, one rank runs for each, and one for 0"
        )
    return gpus


def _cpus(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"cpus must be a number, not {value!r}")
    return value


def _memory(value: Any) -> int | str | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, str))):
        raise TypeError(f"memory must be a number of bytes or a text such as '64G', not {value!r}")
    return value


def _count(name: str, value: Any) -> int:
    count = _whole(name, value)
    if count < 0:
        raise ValueError(f"{name} must be 0 or more, it is {count}")
    return count


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return value


def _text(name: str, value: Any, wrong: type[Exception] = TypeError) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise wrong(f"{name} must be a text, not {value!r}")
    return value


def _followed(value: Any) -> dict[str, str]:
    job, when = value if isinstance(value, tuple) and len(value) == 2 else (value, "afterok")
    name = getattr(job, "job_id", job)
    if not isinstance(name, str) or not isinstance(when, str):
        raise TypeError(f"after takes ids, jobs that were submitted, or (job, when), not {value!r}")
    return {"job": name, "when": when}


def _after(value: Any) -> list[dict[str, str]]:
    if value is None:
        return []
    several = isinstance(value, (list, set, frozenset))
    return [_followed(item) for item in (value if several else [value])]


def _types(value: Any) -> str | None:
    """Return one type, or several in order of preference, as one text."""
    if isinstance(value, (list, tuple)):
        types = [_text("gpu_type", getattr(item, "value", item), GPUTypeError) for item in value]
        if not types or None in types:
            raise GPUTypeError(f"gpu_type must be a text or a list of texts, not {value!r}")
        return "|".join(_DATABRICKS_TYPES.get(str(item).lower(), str(item)) for item in types)
    text = _text("gpu_type", getattr(value, "value", value), GPUTypeError)
    return None if text is None else _DATABRICKS_TYPES.get(text.lower(), text)


def _names(name: str, value: Any, what: str = "names of nodes") -> list[str]:
    names = [] if value is None else [value] if isinstance(value, str) else list(value)
    for item in names:
        if not isinstance(item, str) or not item:
            raise TypeError(f"{name} must be {what}, not {item!r}")
    return names


def _constraints(value: Any) -> dict[str, Any]:
    """Return the constraints as a dictionary; the controller checks their content."""
    if value is not None and not hasattr(value, "keys"):
        raise TypeError(f"constraints must be a dictionary by label, not {value!r}")
    return {} if value is None else dict(value)


def _texts(name: str, value: Any) -> dict[str, str]:
    texts = {} if value is None else dict(value)
    for key, item in texts.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise TypeError(f"{name}[{key!r}] must be a text, not {item!r}: write it in quotes")
    return texts


def _variables(value: Any) -> dict[str, str | None]:
    """Return the checked environment variables. No message has their values: they may be secrets."""
    variables = {} if value is None else dict(value)
    for key, item in variables.items():
        if not isinstance(key, str) or not (item is None or isinstance(item, str)):
            raise TypeError(f"env[{key!r}] must be a text, not a value of type {type(item).__name__}: write it in quotes")
    return variables


def _requirements(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    from serverless_gpu._internal.pack.requirements import check_form

    return check_form(value)


def _working_dir(value: Any) -> Any:
    if value is None or isinstance(value, bool) or hasattr(value, "__fspath__") or (isinstance(value, str) and value):
        return value
    raise TypeError(f"working_dir must be True, False, None or the path of a folder, not {value!r}")


def _seconds(value: Any, name: str = "timeout") -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise RuntimeConfigurationError(f"{name} must be seconds, a timedelta or None, not {value!r}")
    if not seconds > 0:
        raise RuntimeConfigurationError(f"{name} must be more than 0 seconds, it is {value!r}; None: none")
    return seconds


def _early_signal(value: Any) -> dict[str, Any] | None:
    """Return the short form as the controller takes it; the controller checks the names of the signals."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f'early_signal must be a text such as "USR1@60", not {value!r}')
    name, at, before = value.partition("@")
    if not at:
        return {"signal": name}
    try:
        return {"signal": name, "before_s": _seconds(float(before))}
    except ValueError:
        raise ValueError(f'early_signal must be a signal and seconds, "USR1@60" for instance, not {value!r}') from None
