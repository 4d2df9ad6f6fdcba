# SPDX-License-Identifier: Apache-2.0
"""One call of a distributed function: it is prepared, submitted and followed, and its values are fetched, in separate steps.

The same object is the handle of an asynchronous call: job.py has the methods that any job has.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import copy
import html
import inspect
import threading
import uuid
from collections.abc import Generator, Mapping
from typing import Any, Callable

from serverless_gpu._internal.api import trace
from serverless_gpu._internal.api.controller import RETRY_S, Blob, Controller, connect
from serverless_gpu._internal.calls import defaults, failure, readable, results, seal_keys, spec
from serverless_gpu._internal.calls.job import Job
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack import modules, packaging, payload
from serverless_gpu._internal.show import display
from serverless_gpu.errors import GpuctlError, InvalidJob, JobFailed
from serverless_gpu.launcher import Options

WAITERS = 8  # threads for all calls that are awaited
FIRST_LOOK_S = 0.05  # from the start of an await to the second look at its job; each further pause is half as long again ...
LAST_LOOK_S = 1.0  # ... up to this
HURRY_S = 5.0  # how long an interrupted call tries to reach the controller


def named_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of the parameters. Raises TypeError if the function does not accept them."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin without a signature
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


_pool: concurrent.futures.ThreadPoolExecutor | None = None


def _waiters() -> concurrent.futures.ThreadPoolExecutor:
    """Return the threads that ask for all calls that are awaited."""
    global _pool
    if _pool is None:
        _pool = concurrent.futures.ThreadPoolExecutor(WAITERS, "gpuctl-await")
    return _pool


class DistributedFunctionCall(Job):
    """A call under way.

    As a handle, for any thread: `result`, `exception`, `wait`, `done`, `status`, `cancel`, `logs`, `metrics`, and the attributes `job_id`
    and `state`. The steps of a call are `submit`, waiting, then `results`; `run` does them all.
    """

    def __init__(
        self,
        controller: Controller,
        options: Options,
        job: dict[str, Any],
        function: payload.Payload,
        messages: Messages,
        uploads: Mapping[str, Blob] | None = None,
    ):
        super().__init__(controller.context, messages)
        self._controller = controller
        self._options = options
        self._job = job
        self._function = function
        self._seal_key = function.seal_key
        self._key = uuid.uuid4().hex
        self._uploads = dict(uploads or {})  # blobs that the job names and the controller may lack, by field
        self._absent: dict[str, Blob] = {}
        self._asked = False
        self._display: display.Display | None = None
        self._fetching = threading.Lock()
        self._outcome: tuple[list[Any], JobFailed | None] | None = None

    @classmethod
    def prepare(
        cls, function: Callable[..., Any], options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> DistributedFunctionCall:
        """Check and pickle the call, then find the controller and the files that belong to the call. Nothing is submitted yet."""
        packed = payload.pack(function, args, kwargs, named_arguments(function, args, kwargs))
        messages = Messages(options.quiet)
        controller = connect(messages)
        options = defaults.resolve(controller, options)
        job = spec.build(options, function, own_host=controller.context.embedded)
        uploads = packaging.pack(job, options, controller.context, messages)
        return cls(controller, options, job, packed, messages, uploads)

    # --- the steps ---

    def submit(self, patience_s: float = RETRY_S) -> str:
        """Create the job and return its id. A call creates one job only, however often it is submitted."""
        self._asked = True
        job = {**self._job, **self._what()}
        absent = dict(self._absent)
        while True:
            try:
                receipt = self._controller.post("/v1/jobs", job, self._key, headers=trace.headers(), patience_s=patience_s)
                self.job_id = str(receipt["id"])
                if self._seal_key:
                    seal_keys.remember(self._context.state, self.job_id, self._seal_key)
                return self.job_id
            except InvalidJob as error:
                missing = absent.pop(error.field or "", None)
                if missing is None:
                    raise self._explained(error) from None
                self._controller.put_blob(missing, f"{error.field}")

    def results(self) -> list[Any]:
        """Return the values of all ranks of an ended job, by rank. Raises JobFailed."""
        assert self.job_id is not None and self.state is not None, "waiting comes first"
        controller = self._asking()
        if self.state != "SUCCEEDED":
            raise failure.of(controller, self.job_id, self._seal_key)
        rows = [row for row in results.rows(controller, self.job_id) if row["kind"] == "value"]
        wanted = len(rows) if self._options.launch_mode == "node" else self._options.gpus or 1
        missing = sorted(set(range(wanted)) - {row["rank"] for row in rows})
        if missing or not rows:
            raise JobFailed(f"job {self.job_id} succeeded, but the result of rank {(missing or [0])[0]} is not stored", job_id=self.job_id)
        return [results.value(controller, self.job_id, row, self._seal_key) for row in rows]

    def run(self) -> list[Any]:
        """Do all steps. An interrupt cancels the job and waits for its end; a second one leaves at once."""
        try:
            self.submit()
            self._wait_showing()
        except KeyboardInterrupt as interrupt:
            self._interrupted()
            readable.shorten(interrupt)
            raise
        return self.results()

    def _what(self) -> dict[str, Any]:
        """Return the members of the job that say what runs. Notes blobs that the controller may lack, by the field that names them."""
        zipped = modules.modules()
        function: dict[str, Any] = {"modules": zipped.sha256}
        self._absent = {**self._uploads, "function.modules": zipped}
        if self._function.size <= payload.INLINE_BYTES:
            function["inline"] = base64.b64encode(self._function.joined()).decode()
        else:
            self._controller.put_blob(self._function, "the function, with its arguments and the variables that it refers to")
            function["blob"] = self._function.sha256
            self._absent["function.blob"] = self._function
        return {"function": function}

    # --- as a handle ---

    def _repr_html_(self) -> str:
        text = f"<code>{html.escape(repr(self))}</code>"
        return text if self.job_id is None else f'{text}<br>in another process: <code>serverless_gpu.attach("{self.job_id}")</code>'

    def start(self) -> DistributedFunctionCall:
        """Submit the call and return at once. A thread shows its output only if `quiet=False` was given."""
        try:
            self.submit()
        except KeyboardInterrupt as interrupt:
            self._interrupted()
            readable.shorten(interrupt)
            raise
        self._function = payload.Payload()  # handles may be many, and kept for long
        self._uploads.clear()
        self._absent.clear()
        if not self._options.quiet:
            self._controller = Controller(self._controller.context, self._messages)
            threading.Thread(target=self._show_from_afar, name=f"gpuctl-output-{self.job_id}", daemon=True).start()
        return self

    def result(self, timeout: float | None = None, *, logs: bool = False) -> list[Any]:
        """Wait for the end and return the values of all ranks, by rank. With `logs`, show the ranks' output as a waiting call does.

        Raises the exceptions of a waiting call: JobFailed, caused by the rank's exception, also for a canceled job. Raises TimeoutError
        after `timeout` seconds; the job runs on. An interrupt does not cancel the job either.
        """
        if logs and self._options.quiet:
            self._show_now(timeout)
        values, failed = self._end(timeout)
        if failed is not None:
            raise failed
        return list(values)

    get = result

    def exception(self, timeout: float | None = None) -> JobFailed | None:
        """Wait for the end and return the exception that `result` would raise about the job; None if it succeeded."""
        return self._end(timeout)[1]

    def __await__(self) -> Generator[Any, None, list[Any]]:
        """Wait for `result()` without blocking the event loop. A cancelled await leaves the job alone."""
        return self._awaited().__await__()

    async def _awaited(self) -> list[Any]:
        loop = asyncio.get_running_loop()
        pause = FIRST_LOOK_S
        while not await loop.run_in_executor(_waiters(), self.done):
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LAST_LOOK_S)
        return await loop.run_in_executor(_waiters(), self.result)

    def _end(self, timeout: float | None) -> tuple[list[Any], JobFailed | None]:
        """Return the outcome of the job, fetched once."""
        self.wait(timeout)
        with self._fetching:
            if self._outcome is None:
                try:
                    self._outcome = self.results(), None
                except JobFailed as failed:
                    self._outcome = [], failed
            return self._outcome

    def _show_now(self, timeout: float | None) -> None:
        """Show the output of a quiet call until its end, in this thread."""
        if timeout is not None:
            raise ValueError("logs=True shows the output to its end: leave timeout out")
        self._options = copy.copy(self._options)
        self._options.quiet = False
        self._controller = Controller(self._controller.context, self._messages)
        self._wait_showing()

    def _show_from_afar(self) -> None:
        try:
            self._wait_showing()
        except GpuctlError as error:
            self._messages.say(f"the output of job {self.job_id} is shown no more: {error}")

    # --- waiting ---

    def _wait_showing(self) -> str:
        """Wait until the job has ended, showing its output unless the call is quiet; return its state."""
        assert self.job_id is not None, "submit comes first"
        if self._options.quiet:
            return self.wait()
        if self._display is None:
            self._display = display.of(self._controller, self.job_id, self._messages, self._count_ranks)
        self.state = self._display.run()
        return self.state

    def _count_ranks(self) -> int:
        """Return the number of ranks; with one rank a node, the job must have been placed."""
        ranks = self._options.gpus or 1
        if self._options.launch_mode != "node" or ranks == 1:
            return ranks
        return len(self._controller.get(f"/v1/jobs/{self.job_id}")["nodes"])

    # --- interrupts and errors ---

    def _interrupted(self) -> None:
        """Cancel the job, if there is or may be one, and wait for its end."""
        if not self._asked:
            return
        try:
            if self.job_id is None:  # interrupted before the answer: the repeated request returns the id
                self.submit(HURRY_S)
            self._messages.say(f"canceling job {self.job_id}; another interrupt leaves at once")
            self.cancel(HURRY_S)
            self._wait_showing()
            self._messages.say(f"job {self.job_id} is {self.state}")
        except KeyboardInterrupt:
            self._messages.say(f"left job {self.job_id or '(its id is not known yet)'}; `gpuctl cancel {self.job_id or 'JOB'}` cancels it")
        except GpuctlError as error:
            self._messages.say(f"job {self.job_id or ''} may still run: {error}; `gpuctl cancel {self.job_id or 'JOB'}` cancels it")

    def _explained(self, error: InvalidJob) -> InvalidJob:
        """Explain the error in terms of the decorator if its default is the reason."""
        if self._options.remote or error.code not in ("no_local_node", "not_enough_gpus"):
            return error
        text = f"{error.detail}; {self._options.elsewhere}"
        return InvalidJob(text, detail=error.detail, status=error.status, code=error.code, field=error.field, hint=error.hint)
