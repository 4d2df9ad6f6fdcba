/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's library: three GPUs, the second in use by process 4242. FAKE_NVLINK=1 in the
 * environment joins the first and the last by NVLink; by PCIe the first two are of one NUMA node. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle);
int nvmlDeviceGetName(void *handle, char *name, unsigned int size);
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size);
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *total_free_used);
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, unsigned int *processes);
int nvmlDeviceGetP2PStatus(void *one, void *other, int capability, int *status);
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level);

static const struct gpu {
    const char *name;
    unsigned int index;
    unsigned int user;
} gpus[] = {
    {"NVIDIA H100 80GB HBM3", 0, 0}, {"NVIDIA H100 80GB HBM3", 1, 4242}, {"NVIDIA GeForce RTX 4090", 2, 0}};

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = sizeof gpus / sizeof gpus[0];
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle)
{
    *handle = (void *)(unsigned long)&gpus[index];
    return 0;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int size)
{
    snprintf(name, size, "%s", ((const struct gpu *)handle)->name);
    return 0;
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size)
{
    snprintf(uuid, size, "GPU-%u", ((const struct gpu *)handle)->index);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *total_free_used)
{
    total_free_used[0] = 80ULL << 30;
    total_free_used[1] = 80ULL << 30;
    total_free_used[2] = 0;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, unsigned int *processes)
{
    const struct gpu *gpu = handle;
    *count = gpu->user != 0 ? 1 : 0;
    if (gpu->user != 0) {
        processes[0] = gpu->user;
    }
    return 0;
}

int nvmlDeviceGetP2PStatus(void *one, void *other, int capability, int *status)
{
    const struct gpu *left = one, *right = other;
    bool linked = getenv("FAKE_NVLINK") != NULL && left->index + right->index == 2;
    *status = capability == 2 && linked ? 0 : 1;
    return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level)
{
    const struct gpu *left = one, *right = other;
    *level = left->index + right->index == 1 ? 30 : 50;
    return 0;
}
