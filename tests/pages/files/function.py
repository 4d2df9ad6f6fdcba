# SPDX-License-Identifier: Apache-2.0
"""Submits a function that logs metrics and returns a value, and prints the job's id when it has ended."""

from serverless_gpu import distributed, runtime


@distributed(gpus=2, remote=True, run_async=True, working_dir=False)
def learn() -> dict[str, int]:
    for step in range(3):
        runtime.log_metric("loss", 1 / (step + 1), step=step)
    return {"rank": runtime.get_global_rank()}


call = learn.distributed()
call.result()
print(call.job_id)
