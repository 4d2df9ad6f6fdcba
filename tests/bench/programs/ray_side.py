# SPDX-License-Identifier: Apache-2.0
"""Ray's side of the row `ray`: for each line on stdin it runs one, and prints a line `result MILLISECONDS`.

ray_side.py train ADDRESS          two workers of a TorchTrainer, from before fit() to the later end of their first all-reduce
ray_side.py jobs URL STAMP FIFO    a Ray job, from before submit_job() until its program stamps the clock into the fifo
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import time
from pathlib import Path


def now_ms() -> float:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e6


def first_step(config: dict[str, str]) -> None:
    import torch
    from torch import distributed

    distributed.all_reduce(torch.ones(1))
    Path(config["folder"], f"end.{distributed.get_rank()}").write_text(str(now_ms()))


def train(address: str) -> None:
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    ray.init(address=address, log_to_driver=False)
    for _ in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            trainer = TorchTrainer(
                first_step,
                train_loop_config={"folder": folder},
                torch_config=TorchConfig(backend="gloo"),
                scaling_config=ScalingConfig(num_workers=2),
                run_config=RunConfig(storage_path=folder),
            )
            begin = now_ms()
            trainer.fit()
            ends = [float(path.read_text()) for path in Path(folder).glob("end.*")]
            assert len(ends) == 2, ends
            print("result", max(ends) - begin, flush=True)


def jobs(url: str, stamp: str, fifo: str) -> None:
    from ray.job_submission import JobSubmissionClient

    client = JobSubmissionClient(url)
    reader = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
    for _ in sys.stdin:
        begin = now_ms()
        job = client.submit_job(entrypoint=f"{stamp} {fifo}")
        (stamp_us,) = struct.unpack("=q", os.read(reader, 8))
        print("result", stamp_us / 1000 - begin, flush=True)
        while not client.get_job_status(job).is_terminal():
            time.sleep(0.05)  # Ray has no call that waits for the end of a job


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(sys.argv[2])
    else:
        jobs(*sys.argv[2:5])
