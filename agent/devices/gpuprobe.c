/* SPDX-License-Identifier: Apache-2.0 */
/* gpuprobe: tests CUDA and NCCL on this machine. It lists the GPUs, moves a buffer through each, and sums it
 * over all of them with NCCL. It is a separate program, because gpuagent must run where neither is installed.
 * It prints one JSON object; its exit code is 0 when all parts work. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_GPUS   64
#define PROBE_FLOATS (1 << 20) /* 4 MiB a GPU */

/* One GPU's part of the sum. */
struct probe {
    int device;
    float *buffer;
    cudaStream_t stream;
    ncclComm_t communicator;
};

static bool cuda_ok(cudaError_t code, const char *what)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "gpuprobe: %s: %s\n", what, cudaGetErrorString(code));
    }
    return code == cudaSuccess;
}

static bool nccl_ok(ncclResult_t code, const char *what)
{
    if (code != ncclSuccess) {
        fprintf(stderr, "gpuprobe: %s: %s\n", what, ncclGetErrorString(code));
    }
    return code == ncclSuccess;
}

static bool print_devices(int count)
{
    printf(", \"gpus\": [");
    for (int device = 0; device < count; device++) {
        struct cudaDeviceProp properties;
        if (!cuda_ok(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties")) {
            return false;
        }
        printf("%s{\"index\": %d, \"name\": \"%s\", \"memory_bytes\": %zu, \"compute\": \"%d.%d\"}",
               device > 0 ? ", " : "", device, properties.name, properties.totalGlobalMem, properties.major,
               properties.minor);
    }
    printf("]");
    return true;
}

/* Fills the buffer with this GPU's number plus one. */
static bool probe_open(struct probe *probe, int device, float *host)
{
    for (int i = 0; i < PROBE_FLOATS; i++) {
        host[i] = (float)(device + 1);
    }
    probe->device = device;
    return cuda_ok(cudaSetDevice(device), "cudaSetDevice") &&
           cuda_ok(cudaStreamCreate(&probe->stream), "cudaStreamCreate") &&
           cuda_ok(cudaMalloc((void **)&probe->buffer, PROBE_FLOATS * sizeof *host), "cudaMalloc") &&
           cuda_ok(cudaMemcpy(probe->buffer, host, PROBE_FLOATS * sizeof *host, cudaMemcpyHostToDevice),
                   "cudaMemcpy");
}

static bool sum_over_all(struct probe *probes, int count)
{
    ncclComm_t communicators[PROBE_GPUS];
    if (!nccl_ok(ncclCommInitAll(communicators, count, NULL), "ncclCommInitAll") ||
        !nccl_ok(ncclGroupStart(), "ncclGroupStart")) {
        return false;
    }
    bool ok = true;
    for (int i = 0; i < count; i++) {
        probes[i].communicator = communicators[i];
        ok = nccl_ok(ncclAllReduce(probes[i].buffer, probes[i].buffer, PROBE_FLOATS, ncclFloat, ncclSum,
                                   communicators[i], probes[i].stream),
                     "ncclAllReduce") &&
             ok;
    }
    return nccl_ok(ncclGroupEnd(), "ncclGroupEnd") && ok;
}

/* Every element must be 1 + 2 + ... + count, on every GPU. */
static bool probe_check(const struct probe *probe, int count, float *host)
{
    const float want = (float)count * (float)(count + 1) / 2;
    if (!cuda_ok(cudaSetDevice(probe->device), "cudaSetDevice") ||
        !cuda_ok(cudaStreamSynchronize(probe->stream), "cudaStreamSynchronize") ||
        !cuda_ok(cudaMemcpy(host, probe->buffer, PROBE_FLOATS * sizeof *host, cudaMemcpyDeviceToHost),
                 "cudaMemcpy")) {
        return false;
    }
    for (int i = 0; i < PROBE_FLOATS; i++) {
        if (host[i] < want || host[i] > want) {
            fprintf(stderr, "gpuprobe: GPU %d: element %d of the sum is %g, not %g\n", probe->device, i,
                    (double)host[i], (double)want);
            return false;
        }
    }
    return true;
}

static void probe_close(struct probe *probe)
{
    cudaSetDevice(probe->device);
    if (probe->communicator != NULL) {
        ncclCommDestroy(probe->communicator);
    }
    cudaFree(probe->buffer);
    if (probe->stream != NULL) {
        cudaStreamDestroy(probe->stream);
    }
}

static bool all_reduce(int count)
{
    struct probe probes[PROBE_GPUS];
    float *host = malloc(PROBE_FLOATS * sizeof *host);
    memset(probes, 0, sizeof probes);
    bool ok = host != NULL;
    for (int device = 0; ok && device < count; device++) {
        ok = probe_open(&probes[device], device, host);
    }
    ok = ok && sum_over_all(probes, count);
    for (int device = 0; ok && device < count; device++) {
        ok = probe_check(&probes[device], count, host);
    }
    for (int device = 0; device < count; device++) {
        probe_close(&probes[device]);
    }
    free(host);
    return ok;
}

int main(void)
{
    int driver = 0, runtime = 0, nccl = 0, count = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    ncclGetVersion(&nccl);
    if (!cuda_ok(cudaGetDeviceCount(&count), "cudaGetDeviceCount")) {
        count = 0;
    }
    count = count < PROBE_GPUS ? count : PROBE_GPUS;
    printf("{\"cuda_driver\": %d, \"cuda_runtime\": %d, \"nccl\": %d", driver, runtime, nccl);
    bool ok = print_devices(count) && count > 0 && all_reduce(count);
    printf(", \"all_reduce\": \"%s\"}\n", count == 0 ? "no gpu" : ok ? "ok" : "failed");
    return ok ? 0 : 1;
}
