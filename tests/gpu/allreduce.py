# SPDX-License-Identifier: Apache-2.0
"""The job of the GPU check: an all-reduce over all ranks, measured and checked, by NCCL on GPUs and by gloo on CPU slots.

It runs in two ways. As a command each rank prints `ALLREDUCE {facts}`. With --as-function N it is the client's side: it sends the same
function through `serverless_gpu.distributed` and prints `ALLREDUCE` for each value that came back. A file of its own, with nothing imported
from beside it, because it travels to the node.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any


def describe() -> dict[str, Any]:
    """What this rank was told: its rank, the number of ranks, and the devices that it may see."""
    return {
        "rank": int(os.environ["RANK"]),
        "world": int(os.environ["WORLD_SIZE"]),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "order": os.environ.get("CUDA_DEVICE_ORDER"),
    }


def device_facts(local_rank: int) -> dict[str, Any]:
    """Name, UUID ("" where this torch does not tell) and versions of the rank's GPU."""
    import torch

    nccl: Any = torch.cuda.nccl
    return {
        "backend": "nccl",
        "gpu": torch.cuda.get_device_name(local_rank),
        "uuid": str(getattr(torch.cuda.get_device_properties(local_rank), "uuid", "")),
        "seen": torch.cuda.device_count(),
        "cuda": str(torch.version.cuda),
        "nccl": ".".join(map(str, nccl.version())),
    }


def measure(mebibytes: int, rounds: int) -> dict[str, Any]:
    """Sum `mebibytes` MiB of float32 over all ranks `rounds` times.

    Returns describe(), the device's facts, `bytes` of the tensor, `seconds` of one all-reduce (mean of the rounds), `gigabytes_per_s`
    (bytes / seconds / 1e9), `wrong`, the number of elements that are not the sum, and `gathered`, whether each rank's own number came
    back from every rank. Raises what torch raises.
    """
    import time

    import torch
    import torch.distributed as dist

    facts = describe()
    local_rank = int(os.environ["LOCAL_RANK"])
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    facts.update(device_facts(local_rank) if on_gpu else {"backend": "gloo"})
    dist.init_process_group(facts["backend"])
    try:
        rank, world = facts["rank"], facts["world"]
        values = torch.full((mebibytes * 2**20 // 4,), float(rank + 1), device=device)
        dist.all_reduce(values)
        facts["wrong"] = int((values != world * (world + 1) / 2).sum().item())

        # Out of place, so that one rank, whose sum in place moves nothing, has something to move, too.
        own = torch.full((2**18,), float(rank + 1), device=device)
        parts = [torch.zeros_like(own) for _ in range(world)]
        dist.all_gather(parts, own)
        facts["gathered"] = all(bool((part == other + 1).all().item()) for other, part in enumerate(parts))

        values.zero_()
        dist.all_reduce(values)
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(rounds):
            dist.all_reduce(values)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - begin) / rounds
    finally:
        dist.destroy_process_group()
    size = values.numel() * values.element_size()
    facts.update(torch=torch.__version__, bytes=size, seconds=seconds, gigabytes_per_s=size / seconds / 1e9)
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--without-torch", action="store_true", help="only say which rank this is")
    parser.add_argument("--as-function", type=int, metavar="N", help="submit the function for N ranks instead of being one")
    parser.add_argument("--gpu-type", metavar="NAME", help="of the GPUs of a function")
    options = parser.parse_args()

    function, arguments = (describe, ()) if options.without_torch else (measure, (options.mebibytes, options.rounds))
    if options.as_function is None:
        results = [function(*arguments)]
    else:
        from serverless_gpu import distributed

        settings: dict[str, Any] = {"gpu_type": options.gpu_type, "name": "gpu-check-function", "timeout": 300, "quiet": True}
        results = distributed(gpus=options.as_function, remote=True, **settings)(function).distributed(*arguments)
    for result in results:
        print("ALLREDUCE " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
