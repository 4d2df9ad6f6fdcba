# SPDX-License-Identifier: Apache-2.0
"""One call of a distributed function: it is prepared, submitted, followed, and its values are fetched, each in a step of its own."""

from __future__ import annotations

import base64
import inspect
import uuid
from typing import Any, Callable

from serverless_gpu import failure, modules, payload, results, spec
from serverless_gpu.controller import RETRY_S, Controller, connect
from serverless_gpu.errors import ControllerError, GpuctlError, InvalidJob, JobFailed
from serverless_gpu.follow import Follow
from serverless_gpu.launcher import Options
from serverless_gpu.notes import Notes
from serverless_gpu.watch import IDLE_S, TERMINAL, Watch

HURRY_S = 5.0  # of patience with a controller that is away, for a person who has interrupted


def _named_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the parameters. Raises TypeError where the function does not take them."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin that does not tell
        return {**{f"{index}": value for index, value in enumerate(args)}, **kwargs}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{getattr(function, '__name__', 'the function')}() {error}") from None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"{name}[{index}]": item for index, item in enumerate(value)})
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


class DistributedFunctionCall:
    """A call under way. Its steps are `submit`, `wait`, `results`, in this order; `run` does them all."""

    def __init__(self, controller: Controller, options: Options, job: dict[str, Any], function: payload.Payload, notes: Notes):
        self.job_id: str | None = None
        self.state: str | None = None
        self._controller = controller
        self._options = options
        self._job = job
        self._function = function
        self._notes = notes
        self._key = uuid.uuid4().hex
        self._asked = False
        self._follow: Follow | None = None

    @classmethod
    def prepare(
        cls, function: Callable[..., Any], options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> DistributedFunctionCall:
        """Check and pickle the call, then find the controller; nothing is sent that changes anything."""
        packed = payload.pack(function, args, kwargs, _named_arguments(function, args, kwargs))
        notes = Notes(options.quiet)
        controller = connect(notes)
        job = spec.build(options, function, own_host=controller.context.embedded)
        return cls(controller, options, job, packed, notes)

    # --- the steps ---

    def submit(self, patience_s: float = RETRY_S) -> str:
        """Make the job and return its id. The same call makes one job only, however often it is submitted."""
        self._asked = True
        zipped = modules.modules()
        function: dict[str, Any] = {"modules": zipped.sha256}
        absent = {"function.modules": zipped}
        if self._function.size <= payload.INLINE_BYTES:
            function["inline"] = base64.b64encode(self._function.joined()).decode()
        else:
            self._controller.put_blob(self._function)
            function["blob"] = self._function.sha256
            absent["function.blob"] = self._function
        while True:
            try:
                receipt = self._controller.post("/v1/jobs", {**self._job, "function": function}, self._key, patience_s=patience_s)
                self.job_id = str(receipt["id"])
                return self.job_id
            except InvalidJob as error:
                missing = absent.pop(error.field or "", None)
                if missing is None:
                    raise self._explained(error) from None
                self._controller.put_blob(missing)

    def wait(self) -> str:
        """Wait until the job has ended, showing its output; return its state."""
        assert self.job_id is not None, "submit comes first"
        self.state = self._wait_quietly() if self._options.quiet else self._wait_showing()
        return self.state

    def results(self) -> list[Any]:
        """The values of all ranks, by rank. Raises JobFailed."""
        assert self.job_id is not None and self.state is not None, "wait comes first"
        if self.state != "SUCCEEDED":
            raise failure.of(self._controller, self.job_id)
        rows = [row for row in results.rows(self._controller, self.job_id) if row["kind"] == "value"]
        wanted = len(rows) if self._options.launch_mode == "node" else self._options.gpus
        missing = sorted(set(range(wanted)) - {row["rank"] for row in rows})
        if missing or not rows:
            raise JobFailed(f"job {self.job_id} succeeded, but the result of rank {(missing or [0])[0]} is not stored", job_id=self.job_id)
        return [results.value(self._controller, self.job_id, row) for row in rows]

    def cancel(self, patience_s: float = RETRY_S) -> None:
        """Ask for the end of the job. One that has just ended otherwise stays as it is."""
        assert self.job_id is not None, "submit comes first"
        try:
            self._controller.post(f"/v1/jobs/{self.job_id}/cancel", {}, uuid.uuid4().hex, patience_s=patience_s)
        except ControllerError as error:
            if error.status != 409:
                raise

    def run(self) -> list[Any]:
        """All of it. An interrupt cancels the job and waits for its end; a second one leaves at once."""
        try:
            self.submit()
            self.wait()
        except KeyboardInterrupt:
            self._interrupted()
            raise
        return self.results()

    # --- waiting ---

    def _wait_quietly(self) -> str:
        query = ""
        while True:
            view = self._controller.get(f"/v1/jobs/{self.job_id}{query}", patience_s=float("inf"), reply_s=IDLE_S + 30.0)
            if view["state"] in TERMINAL:
                return str(view["state"])
            query = f"?wait={IDLE_S}"

    def _wait_showing(self) -> str:
        assert self.job_id is not None
        if self._follow is None:
            self._follow = Follow(self._controller, self.job_id, self._many_ranks)
        watch = Watch(self._controller.context, self.job_id, self._notes)
        try:
            return self._follow.run()
        finally:
            watch.stop()

    def _many_ranks(self) -> bool:
        if self._options.launch_mode != "node" or self._options.gpus == 1:
            return self._options.gpus > 1
        return len(self._controller.get(f"/v1/jobs/{self.job_id}")["nodes"]) > 1

    # --- interrupts and errors ---

    def _interrupted(self) -> None:
        """Cancel the job, if there is one or may be one, and wait for its end."""
        if not self._asked:
            return
        try:
            if self.job_id is None:  # interrupted before the answer: asking again tells which job it was
                self.submit(HURRY_S)
            self._notes.say(f"canceling job {self.job_id}; another interrupt leaves at once")
            self.cancel(HURRY_S)
            self.wait()
            self._notes.say(f"job {self.job_id} is {self.state}")
        except KeyboardInterrupt:
            self._notes.say(f"left job {self.job_id or '(its id is not known yet)'}; `gpuctl cancel {self.job_id or 'JOB'}` cancels it")
        except GpuctlError as error:
            self._notes.say(f"job {self.job_id or ''} may still run: {error}; `gpuctl cancel {self.job_id or 'JOB'}` cancels it")

    def _explained(self, error: InvalidJob) -> InvalidJob:
        """In the words of the decorator, where its default is the reason."""
        if self._options.remote or error.code not in ("no_local_node", "not_enough_gpus"):
            return error
        text = f"{error.detail}; remote=False runs on one node of this host: use remote=True for any nodes"
        return InvalidJob(text, detail=error.detail, status=error.status, code=error.code, field=error.field, hint=error.hint)
