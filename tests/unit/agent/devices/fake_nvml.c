/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NVIDIA's library: three GPUs, the second in use by process 99999999, which is more than a
 * kernel can have. FAKE_NVLINK=1 in the environment joins the first and the last by NVLink; by PCIe the first
 * two are of one NUMA node.
 *
 * FAKE_NVML_STATE names a file that is read at each call, so that a test can change the GPUs of a process
 * that runs. One line each; INDEX is that of a GPU, or -1 for all and for calls that have none:
 *   hang CALL INDEX          the call never returns
 *   error CALL INDEX CODE    the call fails
 *   process INDEX PID        a process computes there (PID 0: nobody does)
 *   memory INDEX MIB         so much is in use
 *   screen INDEX PID MIB     a process draws there
 *   busy INDEX PERCENT       so much of the time it computes
 *   power INDEX MILLIWATTS   it takes so much; a GPU without a line does not tell
 *   temperature INDEX CELSIUS
 *   energy INDEX MILLIJOULES in all; a GPU without a line does not tell this or its temperature
 *   minor INDEX NUMBER       of its device file; the GPUs have 2, 1 and 0 without a line; -1: none
 *   mig INDEX 1              MIG is enabled
 *   fabric INDEX STATE       of NVSwitch
 *   name INDEX NAME          of the product, without blanks: '_' stands for one */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle);
int nvmlDeviceGetName(void *handle, char *name, unsigned int size);
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size);
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *total_free_used);
int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *gpu_memory);
int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts);
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *celsius);
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules);
int nvmlDeviceGetMinorNumber(void *handle, unsigned int *minor);
int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending);
int nvmlDeviceGetGpuFabricInfo(void *handle, unsigned char *fabric);
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, void *processes);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *count, void *processes);
int nvmlDeviceGetP2PStatus(void *one, void *other, int capability, int *status);
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level);

static const struct gpu {
    const char *name;
    int index;
    unsigned int user;
} gpus[] = {{"NVIDIA H100 80GB HBM3", 0, 0},
            {"NVIDIA H100 80GB HBM3", 1, 99999999},
            {"NVIDIA GeForce RTX 4090", 2, 0}};

/* What the state says of a GPU: the words of the last line that begins with this one and names it. */
struct words {
    char first[64], second[64];
};

static bool find(const char *word, const char *call, int index, struct words *ret_words)
{
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    char line[256];
    bool found = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char start[128];
        int length = snprintf(start, sizeof start, "%s %s%s%d ", word, call, *call != '\0' ? " " : "", index);
        line[strcspn(line, "\n")] = ' ';
        if (strncmp(line, start, (size_t)length) == 0) {
            struct words words = {"", ""};
            found = true;
            if (sscanf(line + length, "%63s %63s", words.first, words.second) >= 0) {
                *ret_words = words;
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* 0, an error, or no return. */
static int fault(const char *call, int index)
{
    struct words words;
    while (find("hang", call, index, &words) || find("hang", call, -1, &words)) {
        usleep(10000);
    }
    return find("error", call, index, &words) || find("error", call, -1, &words) ? atoi(words.first) : 0;
}

#define FAULT(handle) fault(__func__, (handle) != NULL ? ((const struct gpu *)(handle))->index : -1)

int nvmlInit_v2(void)
{
    return FAULT(NULL);
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 999 ? "Unknown Error" : "of another kind";
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = sizeof gpus / sizeof gpus[0];
    return FAULT(NULL);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle)
{
    *handle = (void *)(unsigned long)&gpus[index];
    return FAULT(*handle);
}

/* Agents lock the GPUs of their host by UUID, so tests that run side by side have UUIDs of their own. */
static const char *uuid_prefix(void)
{
    const char *prefix = getenv("FAKE_NVML_UUID");
    return prefix != NULL ? prefix : "GPU-";
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    size_t length = strlen(uuid_prefix());
    int index = strncmp(uuid, uuid_prefix(), length) == 0 ? atoi(uuid + length) : -1;
    if (index < 0 || index >= 3) {
        return 6;
    }
    *handle = (void *)(unsigned long)&gpus[index];
    return FAULT(*handle);
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int size)
{
    const struct gpu *gpu = handle;
    struct words words;
    snprintf(name, size, "%s", find("name", "", gpu->index, &words) ? words.first : gpu->name);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    return FAULT(handle);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size)
{
    snprintf(uuid, size, "%s%d", uuid_prefix(), ((const struct gpu *)handle)->index);
    return FAULT(handle);
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *total_free_used)
{
    struct words words;
    total_free_used[0] = 80ULL << 30;
    total_free_used[1] = 80ULL << 30;
    total_free_used[2] = 0;
    if (find("memory", "", ((const struct gpu *)handle)->index, &words)) {
        total_free_used[2] = strtoull(words.first, NULL, 10) << 20;
    }
    return FAULT(handle);
}

int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *gpu_memory)
{
    struct words words;
    bool told = find("busy", "", ((const struct gpu *)handle)->index, &words);
    gpu_memory[0] = told ? (unsigned int)atoi(words.first) : 0;
    gpu_memory[1] = 0;
    return FAULT(handle);
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts)
{
    struct words words;
    if (!find("power", "", ((const struct gpu *)handle)->index, &words)) {
        return 3;
    }
    *milliwatts = (unsigned int)atoi(words.first);
    return FAULT(handle);
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *celsius)
{
    struct words words;
    if (sensor != 0 || !find("temperature", "", ((const struct gpu *)handle)->index, &words)) {
        return 3;
    }
    *celsius = (unsigned int)atoi(words.first);
    return FAULT(handle);
}

int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules)
{
    struct words words;
    if (!find("energy", "", ((const struct gpu *)handle)->index, &words)) {
        return 3;
    }
    *millijoules = strtoull(words.first, NULL, 10);
    return FAULT(handle);
}

/* As on real machines, it is not the index. */
int nvmlDeviceGetMinorNumber(void *handle, unsigned int *minor)
{
    int index = ((const struct gpu *)handle)->index;
    struct words words;
    int number = find("minor", "", index, &words) ? atoi(words.first) : 2 - index;
    *minor = (unsigned int)number;
    return number < 0 ? 3 : FAULT(handle);
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending)
{
    struct words words;
    *current = *pending = find("mig", "", ((const struct gpu *)handle)->index, &words) ? 1 : 0;
    return FAULT(handle);
}

/* The state is the last member of nvmlGpuFabricInfo_t. */
int nvmlDeviceGetGpuFabricInfo(void *handle, unsigned char *fabric)
{
    struct words words;
    if (!find("fabric", "", ((const struct gpu *)handle)->index, &words)) {
        return 3;
    }
    fabric[24] = (unsigned char)atoi(words.first);
    return 0;
}

/* One process of nvmlProcessInfo_t: its number, its memory, and two of MIG. */
static void put_process(void *processes, unsigned int pid, unsigned long long bytes)
{
    memcpy(processes, &pid, sizeof pid);
    memcpy((char *)processes + 8, &bytes, sizeof bytes);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, void *processes)
{
    const struct gpu *gpu = handle;
    struct words words;
    unsigned int user = gpu->user;
    if (find("process", "", gpu->index, &words)) {
        user = (unsigned int)atoi(words.first);
    }
    *count = user != 0 ? 1 : 0;
    if (user != 0) {
        put_process(processes, user, 1ULL << 20);
    }
    return FAULT(handle);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *count, void *processes)
{
    struct words words;
    *count = 0;
    if (find("screen", "", ((const struct gpu *)handle)->index, &words)) {
        *count = 1;
        put_process(processes, (unsigned int)atoi(words.first), strtoull(words.second, NULL, 10) << 20);
    }
    return FAULT(handle);
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
