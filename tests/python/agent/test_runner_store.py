# SPDX-License-Identifier: Apache-2.0
"""How the runner hosts the store of torch.distributed on the socket that it is given: real processes, real torch and gloo."""

import errno
import socket
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from runner_rig import Rank, eventually, payload_of


@pytest.fixture
def listener():
    """A socket as the shim holds it: dual stack, SO_REUSEADDR, listening."""
    with socket.socket(socket.AF_INET6) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        held.bind(("::", 0))
        held.listen(512)
        yield held


def member(folder: Path, payload: bytes, rank: int, listener: socket.socket, **named: Any) -> Rank:
    """A rank of a gang of two."""
    port = str(listener.getsockname()[1])
    env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"}
    if rank == 0:
        env["GPUCTL_STORE_FD"] = str(listener.fileno())
        named["fds"] = (listener.fileno(),)
    return Rank(folder, payload, rank=rank, **{**env, **named})


def connections_to(port: int) -> int:
    """How many clients are connected to a port of this host."""
    rows = [row.split() for path in ("/proc/net/tcp", "/proc/net/tcp6") for row in Path(path).read_text().splitlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_early_ranks_wait_in_the_backlog_and_groups_can_follow_each_other(tmp_path, listener):
    source = """
    import io, os
    def call():
        import torch, torch.distributed as dist
        groups = []
        for round in range(2):
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            torch.manual_seed(rank)
            model = Net(4, 1)
            model(torch.ones(1, 4)).sum().mul(rank + 1).backward()
            dist.all_reduce(model.weight.grad)
            groups.append((model.weight.grad / dist.get_world_size()).tolist())
            dist.destroy_process_group()
            if rank == 0:
                open(f"left-{round}", "w").close()
            while not os.path.exists(f"left-{round}"):
                pass  # to come earlier is to meet the old store, with any launcher
        torch.save(model, io.BytesIO())
        return groups
    import torch
    class Net(torch.nn.Linear):
        pass
    """
    payload = payload_of(source)
    port = listener.getsockname()[1]
    second = member(tmp_path, payload, 1, listener)
    eventually(lambda: connections_to(port) == 1, "rank 1 waits in the backlog")
    first = member(tmp_path, payload, 0, listener)
    first.wait()
    second.wait()
    assert first.value() == second.value() == [[[1.5] * 4]] * 2
    assert "retrying" not in second.err and "TCPStore" not in first.err


def test_users_own_port_works_and_the_store_outlives_the_function_that_hosts_it(tmp_path, listener):
    source = """
    import os, time
    def call(port):
        import torch.distributed as dist
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port)
        dist.init_process_group("gloo")
        store = dist.distributed_c10d._get_default_store()
        store.set(f"pid {dist.get_rank()}", str(os.getpid()))
        pid = store.get("pid 0").decode()
        if dist.get_rank() == 0:
            return "returned first"
        end = time.monotonic() + 20
        while not os.path.exists("results/0.pickle") and time.monotonic() < end:
            time.sleep(0.01)
        end = time.monotonic() + 0.5
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
            time.sleep(0.01)
        store.set("late", "still there")
        return store.get("late").decode()
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own = probe.getsockname()[1]
    ranks = [member(tmp_path, payload_of(source, own), rank, listener) for rank in (0, 1)]
    ranks[1].wait()
    ended = time.monotonic()
    ranks[0].wait()
    assert time.monotonic() - ended < 20, "rank 0 ends with the last connection"
    assert [rank.value() for rank in ranks] == ["returned first", "still there"]


def test_torch_is_not_imported_for_a_function_that_does_not(tmp_path, listener):
    rank = member(
        tmp_path, payload_of("def call():\n  import sys, os\n  return 'torch' in sys.modules, 'GPUCTL_STORE_FD' in os.environ"), 0, listener
    )
    rank.wait()
    assert rank.value() == (False, False)


FAKE_TORCH = '''
import socket
class TCPStore:
    def __init__(self, host_name, port, world_size=None, is_master=False, LISTEN=None, LIBUV=True):
        """__init__(host_name, port, world_size, is_master, LISTEN, LIBUV)"""
        self.port, self.asked = port, (LISTEN, LIBUV)
        self.socket = socket.socket() if LISTEN is None else socket.socket(fileno=LISTEN)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if LISTEN is None:
            self.socket.bind(("", port))
        self.socket.listen()
'''


def fake_torch(folder: Path, version: str, *, takes_sockets: bool) -> None:
    """A torch of another age beside the function."""
    (folder / "torch" / "distributed").mkdir(parents=True)
    (folder / "torch" / "_C").mkdir()
    (folder / "torch" / "__init__.py").write_text(f"__version__ = '{version}'\n")
    text = FAKE_TORCH
    if takes_sockets:
        text = text.replace("LISTEN", "master_listen_fd").replace("LIBUV", "use_libuv")
        (folder / "torch" / "_C" / "_distributed_c10d.pyi").write_text("master_listen_fd")
    (folder / "torch" / "distributed" / "__init__.py").write_text(text)


STORE = """
    import os
    def call():
        import socket
        import torch.distributed
        port = int(os.environ["MASTER_PORT"])
        store = torch.distributed.TCPStore("localhost", port, is_master=True)
        socket.create_connection(("localhost", port)).close()
        return store.asked[0] is None, store.asked[1], store.socket.accept()[0] is not None
"""


def test_a_torch_that_takes_no_sockets_binds_the_port_itself(tmp_path, listener):
    fake_torch(tmp_path, "1.12.1+cu102", takes_sockets=False)
    rank = member(tmp_path, payload_of(STORE), 0, listener)
    rank.wait()
    assert rank.value() == (True, True, True)


def test_a_torch_whose_libuv_takes_no_sockets_gets_the_older_store(tmp_path, listener):
    fake_torch(tmp_path, "2.7.1+cu126", takes_sockets=True)
    rank = member(tmp_path, payload_of(STORE), 0, listener)
    rank.wait()
    assert rank.value() == (False, False, True)


def test_a_second_server_on_the_port_is_refused_while_the_first_lives(tmp_path, listener):
    fake_torch(tmp_path, "2.13.0", takes_sockets=True)
    source = """
    import os
    def call():
        from torch.distributed import TCPStore
        port = int(os.environ["MASTER_PORT"])
        first = TCPStore("localhost", port, is_master=True)
        try:
            TCPStore("localhost", port, is_master=True)
        except OSError as fault:
            second = fault.errno
        first.socket.close()
        third = TCPStore("localhost", port, is_master=True)
        return first.asked, second, third.asked[0] is not None, TCPStore("localhost", 0, is_master=True).asked
    """
    rank = member(tmp_path, payload_of(source), 0, listener)
    rank.wait()
    (fd, libuv), second, third, other = rank.value()
    assert fd is not None and libuv is True
    assert second == errno.EADDRINUSE
    assert third
    assert other == (None, True)


def test_without_torch_the_port_can_be_bound_by_whoever_wants_it(tmp_path, listener, bare_python):
    source = """
    def call():
        import os, socket
        mine = socket.socket()
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("", int(os.environ["MASTER_PORT"])))
        mine.listen()
        return mine.getsockname()[1]
    """
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "cloudpickle").symlink_to(Path(cloudpickle.__file__).parent)
    rank = member(tmp_path, payload_of(source), 0, listener, python=bare_python, GPUCTL_MODULES=str(tmp_path / "modules"))
    rank.wait()
    assert rank.value() == listener.getsockname()[1]
