# SPDX-License-Identifier: Apache-2.0
"""One run for all processes of an attempt at a tracking server other than the controller's.

The controller gives each attempt a run, and ranks use it. Another server knows nothing of attempts, so each process that logs would make a
run. With this module the first run that a process starts is the attempt's. The nodes of the gang agree on it by tags on that server
(`common`), and the processes of a node share it by a file beside $GPUCTL_SOCKET. So it does not matter which process started them: the
agent, torchrun (restarts included), or a rank. Later runs of a process are its own, as are those of processes that it starts from then on;
the controller's run works in the same way. If several processes create an experiment at the same time, all of them find it.
gpuctl_watch.py, in the same folder, calls this module after the import of MLflow.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TAG = "gpuctl.attempt"  # tag of the attempt's run
CANDIDATE = "gpuctl.candidate"  # tag of a run that may become it; its value is the attempt, too
NODE = "gpuctl.candidate_node"  # the node rank of the process that made the candidate
YIELDED = "gpuctl.candidate_yielded"  # the candidate will not become the attempt's run
FILE = "mlflow"
SETTLED = "GPUCTL_RUN_SETTLED"  # set once the first run has been started, or was named by the job
PATIENCE_S = 10.0  # to wait for the first node, which may log nothing
ELECTION_S = 60.0  # longest wait for another node between two of its requests; a slower one counts as dead
PAUSE_S = 0.1


def shared(fluent: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return start_run for the module mlflow.tracking.fluent, with the attempt's run as its first run."""
    import functools
    import inspect

    if "MLFLOW_RUN_ID" in os.environ and "GPUCTL_RUN_ID" not in os.environ:  # MLflow deletes MLFLOW_RUN_ID at the end of a run
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
                del os.environ["GPUCTL_RUN_ID"]  # the program has set another server, which does not have the controller's run
        if "GPUCTL_RUN_ID" not in os.environ:
            want_system_metrics()
        if asked.get("run_id") or not is_apart(fluent):
            return original(*args, **named)
        os.environ[SETTLED] = "1"  # so another thread that starts a run meanwhile gets its own
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
    """Return set_experiment for that module; it sets an experiment that another process creates at the same time, too."""
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
    """Return whether the next run of this process is the controller's."""
    return "GPUCTL_RUN_ID" in os.environ and os.environ.get("MLFLOW_RUN_ID") == os.environ["GPUCTL_RUN_ID"]


def is_apart(fluent: "Any") -> bool:
    """Return whether this process would make a run at a server that gives it none. MLFLOW_RUN_ID="" asks for separate runs of ranks."""
    import mlflow

    settled = any(name in os.environ for name in ("MLFLOW_RUN_ID", "GPUCTL_RUN_ID", SETTLED))
    return not settled and fluent.active_run() is None and mlflow.get_tracking_uri().startswith(("http:", "https:", "databricks"))


def run_of_attempt(fluent: "Any", original: "Callable[..., Any]", asked: "dict[str, Any]") -> "Any":
    """Start the run that another process of this node has recorded, else the common one of all nodes. One process of a node at a time."""
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
    """Return the experiment in which MLflow would make a run. If MLflow has to create it, another node may be faster: then try again."""
    from mlflow.exceptions import MlflowException

    try:
        return str(fluent._get_experiment_id())
    except MlflowException:
        return str(fluent._get_experiment_id())


def digest(experiment: str) -> bytes:
    """Return a hash that names an experiment of a server; the server's URI may contain a password."""
    import hashlib

    import mlflow

    return hashlib.sha256(f"{mlflow.get_tracking_uri()} {experiment}".encode()).hexdigest().encode()


def with_tags(asked: "dict[str, Any]", tags: "dict[str, str]") -> "dict[str, Any]":
    return {**asked, "tags": {**(asked.get("tags") or {}), **tags}}


def common(fluent: "Any", original: "Callable[..., Any]", asked: "dict[str, Any]", experiment: str, node: int) -> "Any":
    """Start the run on which all nodes agree.

    A node that finds no run of the attempt makes a candidate run, and only then looks for those of other nodes. So of two nodes that do
    this at the same time at least one sees the other. The losing node deletes its candidate.
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
    with contextlib.suppress(mlflow.exceptions.MlflowException):  # not every user may delete
        client.delete_run(run.info.run_id)
    return original(**{**asked, "run_id": found})


def find(client: "Any", experiment: str, patience: float) -> "str | None":
    """Return the run of the attempt once another node has made it; None if none does within `patience` seconds."""
    import time

    end = time.monotonic() + patience
    while True:
        runs = client.search_runs([experiment], f"tags.`{TAG}` = '{attempt()}'", max_results=1)
        if runs or time.monotonic() >= end:
            return str(runs[0].info.run_id) if runs else None
        time.sleep(PAUSE_S)


def elect(client: "Any", experiment: str, mine: str, node: int) -> str:
    """Return the candidate that is the attempt's run: the one with the tag, else that of the lowest node.

    A candidate that sees one of a lower node yields, for good. Any other becomes the run as soon as all candidates that it sees have
    yielded: a node that it does not see yet makes its candidate later, sees this one, and waits for it.
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
