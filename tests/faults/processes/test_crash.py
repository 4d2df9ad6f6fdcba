# SPDX-License-Identifier: Apache-2.0
"""The controller killed at the boundaries of its system calls, killed at random under load, and with a disk whose calls fail.

What was answered with yes has taken effect for good, what was answered with no has not, and what was not answered can be asked again.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller import CALLS, Controller, failing_at, killed_at, traced_here, tracing
from customer import Away, Customer, check_all
from harness import eventually

OPERATIONS = 200
FAILING_CALLS = ["pwrite64", "fdatasync", "fsync", "ftruncate", "renameat", "rename", "unlink", "pread64"]
Volume = Callable[[int, int], int]


@pytest.fixture
def new_controller(tmp_path: Path) -> Iterator[Callable[[], Controller]]:
    """Controllers that were never started; making one ends and removes the one before: thousands of folders would fill the disk."""
    made: list[Controller] = []

    def end_last() -> None:
        if made and made[-1].process is not None:
            made[-1].kill()

    def make() -> Controller:
        end_last()
        if made:
            shutil.rmtree(made[-1].folder, ignore_errors=True)
        made.append(Controller(tmp_path / f"life{len(made)}"))
        return made[-1]

    yield make
    end_last()


def run_script(customer: Customer, steps: int) -> Away | None:
    """Operations until there were so many, or the controller is away: then how."""
    try:
        for _ in range(steps):
            customer.step()
    except Away as away:
        return away
    return None


def converge(controller: Controller, customers: list[Customer]) -> None:
    """A new process without faults: it answers what was left open, and everything holds."""
    controller.must_start()
    for customer in customers:
        customer.settle()
    check_all(controller.api(), customers)


def boundaries(controller: Controller, calls: list[str]) -> list[tuple[str, int]]:
    """The calls of a whole script, in order: (name, how many of that name the same thread had made)."""
    trace = controller.folder / "trace"
    assert controller.start(tracing(calls, out=trace)), controller.said()
    run_script(Customer(controller.api, "first", 1), OPERATIONS)
    controller.kill()
    counts: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, int], None] = {}
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"(\d+) +(\w+)\(", line)
        if call:
            counts[call[1], call[2]] += 1
            found[call[2], counts[call[1], call[2]]] = None
    return list(found)


def spread(points: list[tuple[str, int]], count: int, seed: int) -> list[tuple[str, int]]:
    """So many of them: one by chance of each call, and of each stretch of equal length. All, where that is more."""
    if count >= len(points):
        return points
    chance = random.Random(seed)
    calls = [chance.choice([point for point in points if point[0] == call]) for call in sorted({call for call, _ in points})]
    left = max(0, count - len(calls))
    return calls + [points[int((i + chance.random()) * len(points) / left)] for i in range(left)]


def test_a_controller_killed_at_any_system_call_keeps_its_word(new_controller: Callable[[], Controller], volume: Volume) -> None:
    traced_here()
    points = boundaries(new_controller(), CALLS)
    assert len(points) > 5 * OPERATIONS, "the script does too little"
    chosen = spread(points, volume(20, len(points)), seed=1)
    killed = 0
    for call, number in chosen:
        controller = new_controller()
        customer = Customer(controller.api, "first", 1)
        if not controller.start(killed_at(call, number)) or run_script(customer, OPERATIONS) is not None:
            killed += 1
        controller.kill()
        print(f"{call} {number}: {customer.answered} answered")
        converge(controller, [customer])
        run_script(customer, 20)  # it goes on
        check_all(controller.api(), [customer])
        controller.kill()
    assert killed > 0.8 * len(chosen), "most lives ended before the call that was to kill them"


class Load:
    """Customers that ask side by side, through all lives of the controller."""

    def __init__(self, controller: Controller, count: int, seed: int):
        self.customers = [Customer(controller.api, f"customer{i}", seed + i) for i in range(count)]
        self.failures: list[BaseException] = []

    def act(self, customer: Customer) -> None:
        try:
            customer.settle()
            run_script(customer, 1_000_000)
        except Away:
            pass
        except BaseException as error:
            self.failures.append(error)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.act, args=(customer,)) for customer in self.customers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()
        if self.failures:
            raise self.failures[0]


def die_again_and_again(controller: Controller, lives: int, chance: random.Random) -> None:
    load = Load(controller, 4, chance.randrange(1_000_000))
    incarnation = 0
    for life in range(lives):
        controller.must_start()
        grown = controller.api().get("/version")["incarnation"]
        assert grown > incarnation
        incarnation = grown
        with load.on():
            threading.Event().wait(chance.uniform(0.02, 0.3))  # any instant is as good: nothing is waited for
            controller.kill()
        if life % 10 == 9 or life == lives - 1:
            converge(controller, load.customers)
            controller.kill()
    assert sum(customer.answered for customer in load.customers) > 5 * lives, "the load was hardly answered"


def test_a_controller_killed_at_random_under_load_keeps_its_word(new_controller: Callable[[], Controller], volume: Volume) -> None:
    chance = random.Random(2)
    left = volume(30, 2000)
    while left > 0:
        die_again_and_again(new_controller(), min(left, 100), chance)
        left -= 100


def test_a_large_blob_is_synced_under_its_name_before_its_row_and_that_before_the_answer(new_controller: Callable[[], Controller]) -> None:
    """What a loss of power would show, and kill -9 cannot: the order in which things reach the disk."""
    traced_here()
    controller = new_controller()
    trace = controller.folder / "trace"
    calls = ["fsync", "fdatasync", "renameat", "sendto", "sendmsg"]
    assert controller.start(tracing(calls, "-y", out=trace)), controller.said()
    data = bytes(range(256)) * 1024
    name = hashlib.sha256(data).hexdigest()
    eventually(lambda: controller.api().get("/v1/tokens")["tokens"][0]["last_used_at"], "the first use of the token to be stored")
    before = len(trace.read_text().splitlines())
    assert controller.api().raw("PUT", f"/v1/blobs/{name}", data, {"Content-Type": "application/octet-stream"})[0] == 201
    controller.kill()
    blobs = re.escape(str(controller.folder / "controller" / "blobs"))
    steps = [
        rf"fsync\(\d+<{blobs}/arriving/\w+>", rf"renameat\(\d+<{blobs}/arriving>.*{name}", rf"fsync\(\d+<{blobs}>",
        r"fdatasync\(\d+<.*gpuctl\.db-wal>", r"send(to|msg)\(.*HTTP/1\.1 201",
    ]  # fmt: skip
    seen = [line for line in trace.read_text(errors="replace").splitlines()[before:] if "resumed>" not in line]
    order = [next((i for i, line in enumerate(seen) if re.search(step, line)), -1) for step in steps]
    assert -1 not in order and order == sorted(order), (order, seen)


def expect_end(controller: Controller) -> None:
    """The process ends by itself, and says by its exit status that it did not go well; it does not crash."""
    assert 0 < controller.wait() < 128, controller.said()


def suffer(controller: Controller, customer: Customer, wrapper: list[str]) -> bool:
    """A life with a fault, whether it was felt: who is told that the outcome is not known is told so by a process that ends.

    One that says `disk_full` has refused, and may go on: it gives up its reserve file.
    """
    if not controller.start(wrapper):
        expect_end(controller)
        return True
    away = run_script(customer, OPERATIONS)
    if away is not None and (away.status == 0 or (away.code == "unknown_outcome" and customer.asked[-1].kind != "blob")):
        expect_end(controller)
    controller.kill()
    return away is not None


def test_calls_that_fail_never_make_it_say_what_is_not_so(new_controller: Callable[[], Controller], volume: Volume) -> None:
    traced_here()
    points = boundaries(new_controller(), FAILING_CALLS)
    faults = [("EIO", False), ("EIO", True), ("ENOSPC", False), ("ENOSPC", True)]
    chosen = spread(points, volume(16, len(points)), seed=3)
    felt = lives = 0
    for i, (call, number) in enumerate(chosen):
        for error, lasting in [faults[i % 4]] if len(chosen) < len(points) else faults:
            if call == "pread64" and error == "ENOSPC":
                error = "EIO"  # reading needs no room
            controller = new_controller()
            customer = Customer(controller.api, "first", 1)
            lives += 1
            felt += suffer(controller, customer, failing_at(call, number, error, lasting))
            print(f"{call} {number} {error}{' lasting' if lasting else ''}: {customer.answered} answered")
            converge(controller, [customer])
            controller.kill()
    assert felt > 0.6 * lives, "most faults were not felt"
