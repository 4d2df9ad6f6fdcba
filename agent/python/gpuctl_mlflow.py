# SPDX-License-Identifier: Apache-2.0
"""One run for all processes of an attempt at a tracking server that is not the controller's.

The controller gives each attempt a run of its own, and ranks take it. Another server knows nothing of attempts, so each process that logs
would make a run. Here the first run that a process starts is the attempt's. The nodes of the gang agree on it by tags of that server
(`common`), and the processes of a node tell each other by a file beside $GPUCTL_SOCKET, so it does not matter who started them: the agent,
torchrun, also anew, or a rank. The later runs of a process are its own, and so are those of processes that it starts from then on, as with
the controller's run. An experiment that several processes make at the same time is found by all of them. gpuctl_watch.py, beside which
this file lies, calls it once MLflow is imported.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TAG = "gpuctl.attempt"  # of the run of the attempt
CANDIDATE = "gpuctl.candidate"  # of a run that may become it: the attempt, too
NODE = "gpuctl.candidate_node"  # the node rank of who made that
YIELDED = "gpuctl.candidate_yielded"  # it will not become the run of the attempt
FILE = "mlflow"
SETTLED = "GPUCTL_RUN_SETTLED"  # there once the first run has been started, or was named by the job
PATIENCE_S = 10.0  # for the first node, which may log nothing
ELECTION_S = 60.0  # for another node between two of its requests; one that takes longer has died
PAUSE_S = 0.1


def shared(fluent: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """start_run of the module mlflow.tracking.fluent, whose first run is the attempt's."""
    import functools
    import inspect

    if "MLFLOW_RUN_ID" in os.environ and "GPUCTL_RUN_ID" not in os.environ:  # MLflow deletes the first at the end of a run
        os.environ[SETTLED] = "1"

    @functools.wraps(original)
    def start_run(*args: "Any", **named: "Any") -> "Any":
        asked = dict(inspect.signature(original).bind(*args, **named).arguments)
        if is_ours() and not asked.get("run_id"):
            try:
                return original(*args, **named)
            except Exception as fault:  # an MlflowException
                if getattr(fault, "error_code", None) != "RESOURCE_DOES_NOT_EXIST":
                    raise
                del os.environ["GPUCTL_RUN_ID"]  # the program has set another server, where the controller's run is not
        if "GPUCTL_RUN_ID" not in os.environ:
            want_system_metrics()
        if asked.get("run_id") or not is_apart(fluent):
            return original(*args, **named)
        os.environ[SETTLED] = "1"  # a thread that starts a run meanwhile has its own
        try:
            return run_of_attempt(fluent, original, asked)
        except BaseException:
            os.environ.pop(SETTLED, None)
            raise

    return start_run


def want_system_metrics() -> None:
    """Has MLflow's client log what it measures of the node, unless the job says itself whether it shall: into the controller's run goes
    what the agent measures, into other runs nothing does. Only where there is psutil: without it the client raises.
    """
    name = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
    if os.environ.pop("GPUCTL_SYSTEM_METRICS", "") and name not in os.environ:
        from importlib.machinery import PathFinder

        if PathFinder.find_spec("psutil") is not None:
            os.environ[name] = "true"


def surely(fluent: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """set_experiment of that module, which does not set an experiment that another process makes at the same time."""
    import functools

    @functools.wraps(original)
    def set_experiment(*args: "Any", **named: "Any") -> "Any":
        found = original(*args, **named)
        if found is not None and getattr(fluent, "_active_experiment_id", found.experiment_id) != found.experiment_id:
            return original(*args, **named)
        return found

    return set_experiment


def attempt() -> str:
    return f"{os.environ['GPUCTL_JOB_ID']}/{os.environ['GPUCTL_ATTEMPT']}"


def is_ours() -> bool:
    """Whether the next run of this process is to be that of the controller."""
    return "GPUCTL_RUN_ID" in os.environ and os.environ.get("MLFLOW_RUN_ID") == os.environ["GPUCTL_RUN_ID"]


def is_apart(fluent: "Any") -> bool:
    """Whether this process would make a run at a server that gives it none. MLFLOW_RUN_ID="" asks for runs of the ranks' own."""
    import mlflow

    settled = any(name in os.environ for name in ("MLFLOW_RUN_ID", "GPUCTL_RUN_ID", SETTLED))
    return not settled and fluent.active_run() is None and mlflow.get_tracking_uri().startswith(("http:", "https:", "databricks"))


def run_of_attempt(fluent: "Any", original: "Callable[..., Any]", asked: "dict[str, Any]") -> "Any":
    """Starts the run that a process of this node has told of, else the common one of all nodes. One process of a node at a time."""
    import fcntl

    with open(os.path.join(os.path.dirname(os.environ["GPUCTL_SOCKET"]), FILE), "a+b", 0) as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        experiment = asked.get("experiment_id") or experiment_of(fluent)
        place = digest(experiment)
        file.seek(0)
        told = dict(line.split() for line in file)
        found = told.get(place, b"").decode()
        if found:
            run = original(**{**asked, "run_id": found})
        elif os.environ["GPUCTL_NODES"] == "1":
            run = original(**with_tags(asked, {TAG: attempt()}))
        else:
            run = common(fluent, original, asked, experiment, int(os.environ["GPUCTL_NODE_RANK"]))
        if place not in told:
            file.write(b"%b %b\n" % (place, run.info.run_id.encode()))
    return run


def experiment_of(fluent: "Any") -> str:
    """The experiment in which MLflow would make a run. Where it makes the experiment first, another node may have come before."""
    from mlflow.exceptions import MlflowException

    try:
        return str(fluent._get_experiment_id())
    except MlflowException:
        return str(fluent._get_experiment_id())


def digest(experiment: str) -> bytes:
    """Names an experiment of a server, in whose URI there may be a password."""
    import hashlib

    import mlflow

    return hashlib.sha256(f"{mlflow.get_tracking_uri()} {experiment}".encode()).hexdigest().encode()


def with_tags(asked: "dict[str, Any]", tags: "dict[str, str]") -> "dict[str, Any]":
    return {**asked, "tags": {**(asked.get("tags") or {}), **tags}}


def common(fluent: "Any", original: "Callable[..., Any]", asked: "dict[str, Any]", experiment: str, node: int) -> "Any":
    """Starts the run on which all nodes agree.

    A node that finds no run of the attempt makes one, a candidate, and only then looks for those of other nodes: so of two that do this at
    the same time at least one sees the other. Who loses deletes its own.
    """
    import contextlib

    import mlflow

    client = mlflow.MlflowClient()
    found = find(client, experiment, PATIENCE_S if node else 0.0)
    if found:
        return original(**{**asked, "run_id": found})
    run = original(**with_tags(asked, {CANDIDATE: attempt(), NODE: str(node)}))
    found = elect(client, experiment, run.info.run_id, node)
    if found == run.info.run_id:
        return run
    fluent.end_run()
    with contextlib.suppress(mlflow.exceptions.MlflowException):  # not everybody may delete
        client.delete_run(run.info.run_id)
    return original(**{**asked, "run_id": found})


def find(client: "Any", experiment: str, patience: float) -> "str | None":
    """The run of the attempt, once another node has made it; None where none does in time."""
    import time

    end = time.monotonic() + patience
    while True:
        runs = client.search_runs([experiment], f"tags.`{TAG}` = '{attempt()}'", max_results=1)
        if runs or time.monotonic() >= end:
            return str(runs[0].info.run_id) if runs else None
        time.sleep(PAUSE_S)


def elect(client: "Any", experiment: str, mine: str, node: int) -> str:
    """Which candidate is the run of the attempt: the one that says so, else that of the lowest node.

    A candidate that sees one of a lower node yields, for good. Another becomes the run as soon as all that it sees have yielded: a node
    that it does not see yet makes its candidate later, sees this one, and waits for it.
    """
    import time

    end = time.monotonic() + ELECTION_S
    yielded = False
    while True:
        runs = client.search_runs([experiment], f"tags.`{CANDIDATE}` = '{attempt()}'")
        chosen = [run.info.run_id for run in runs if TAG in run.data.tags]
        if chosen:
            return str(chosen[0])
        others = [run.data.tags for run in runs if run.info.run_id != mine]
        late = time.monotonic() >= end
        if not yielded and any(int(tags[NODE]) < node for tags in others):
            client.set_tag(mine, YIELDED, "true")
            yielded = True
        elif late or all(YIELDED in tags for tags in others):
            client.set_tag(mine, TAG, attempt())
            return mine
        time.sleep(PAUSE_S)
