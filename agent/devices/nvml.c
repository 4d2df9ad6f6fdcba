/* SPDX-License-Identifier: Apache-2.0 */
/* The binding to NVML. The library is loaded at run time, so that one binary serves nodes with and without
 * GPUs. The declarations are our own and cover only the used part. Every error has a text with a remedy. A
 * GPU that cannot be read never counts as empty. The binding changes nothing on a GPU. */
#include "agent/devices/nvml.h"

#include <dlfcn.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define NVML_SUCCESS       0
#define NVML_NOT_SUPPORTED 3
#define NVML_TOO_SMALL     7     /* NVML_ERROR_INSUFFICIENT_SIZE */
#define NVML_UNKNOWN       ~0ULL /* NVML_VALUE_NOT_AVAILABLE */
#define SENSOR_GPU         0     /* NVML_TEMPERATURE_GPU: of the chip */
#define PROCESSES_SHOWN    64    /* one is enough to make the GPU occupied */
#define P2P_NVLINK         2     /* NVML_P2P_CAPS_INDEX_NVLINK */
#define P2P_OK             0     /* NVML_P2P_STATUS_OK */
#define TOPOLOGY_NODE      40    /* NVML_TOPOLOGY_NODE: the same NUMA node, or nearer */
#define FABRIC_STARTING    1     /* NVML_GPU_FABRIC_STATE_NOT_STARTED; IN_PROGRESS is above it */
#define FABRIC_READY       3     /* NVML_GPU_FABRIC_STATE_COMPLETED */
#define MEMORY_VERSION     2
#define COMM_BYTES         64
#define FULL_PERCENT       100
#define MPS_NAME           "nvidia-cuda-mps" /* /proc/PID/comm cuts the name nvidia-cuda-mps-server */

/* nvmlMemory_v2_t. */
struct nvml_memory {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

/* nvmlMemory_t. */
struct nvml_old_memory {
    unsigned long long total, free, used;
};

/* nvmlProcessInfo_t since version 2 of the call. */
struct nvml_process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance;
};

/* nvmlGpuFabricInfo_t. */
struct nvml_fabric {
    unsigned char cluster[16];
    int status;
    unsigned int clique;
    unsigned char state;
};

/* nvmlUtilization_t: percent of the time since the last measurement of the driver, a second at most. */
struct nvml_utilization {
    unsigned int gpu, memory;
};

typedef int list_processes(void *handle, unsigned int *count, struct nvml_process *processes);

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned int *ret_count);
    int (*get_handle)(unsigned int index, void **ret_handle);
    int (*get_by_uuid)(const char *uuid, void **ret_handle);
    int (*get_name)(void *handle, char *name, unsigned int size);
    int (*get_uuid)(void *handle, char *uuid, unsigned int size);
    list_processes *get_processes;
    int (*get_memory)(void *handle, struct nvml_old_memory *ret_memory);
    /* Each of these may be NULL. */
    int (*get_memory_v2)(void *handle, struct nvml_memory *ret_memory);
    list_processes *get_graphics;
    const char *(*get_error)(int code);
    int (*get_minor)(void *handle, unsigned int *ret_minor);
    int (*get_mig)(void *handle, unsigned int *ret_current, unsigned int *ret_pending);
    int (*get_fabric)(void *handle, struct nvml_fabric *ret_fabric);
    int (*get_p2p)(void *handle, void *other, int capability, int *ret_status);
    int (*get_ancestor)(void *handle, void *other, int *ret_level);
    int (*get_utilization)(void *handle, struct nvml_utilization *ret_utilization);
    int (*get_power)(void *handle, unsigned int *ret_milliwatts);
    int (*get_temperature)(void *handle, int sensor, unsigned int *ret_celsius);
    int (*get_energy)(void *handle, unsigned long long *ret_millijoules); /* since the driver was loaded */
    int64_t started_ms;
    bool doubted; /* a GPU had an error, so the library's knowledge may be outdated */
};

/* --- errors --------------------------------------------------------------------------------------------- */

static const struct {
    int code;
    const char *text, *remedy;
} problems[] = {
    {4, "no permission", "let the user of gpuagent open /dev/nvidia*"},
    {6, "the GPU is not there any more", "see dmesg for Xid messages, and reboot the node"},
    {9, "the NVIDIA driver is not loaded", "load it with modprobe nvidia, or install it"},
    {10, "the GPU did not answer in time", "see dmesg for Xid messages, and reboot the node"},
    {14, "the GPU's infoROM is damaged", "reset the GPU; if that does not help, have it replaced"},
    {15, "GPU is lost: it fell off the bus, or cannot be reached", "reboot the node"},
    {16, "the GPU must be reset", "reset it with nvidia-smi --gpu-reset, or reboot the node"},
    {17, "the system refused a call of the driver", "see dmesg"},
    {18, "the NVIDIA driver and its library are of different versions",
     "reboot the node or reload the driver"},
    {27, "the system is not ready", "start nvidia-fabricmanager, in the version of the driver"},
};

/* "GPU is lost (NVML error 15): reboot the node" */
static void say_problem(const struct nvml *nvml, int code, char *text, size_t size)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (problems[i].code == code) {
            snprintf(text, size, "%s (NVML error %d): %s", problems[i].text, code, problems[i].remedy);
            return;
        }
    }
    snprintf(text, size, "%s (NVML error %d): see dmesg for Xid messages",
             nvml->get_error != NULL ? nvml->get_error(code) : "the NVIDIA driver reports an error", code);
}

/* --- loading -------------------------------------------------------------------------------------------- */

static bool find_symbol(struct nvml *nvml, const char *name, void *ret_function)
{
    void *symbol = dlsym(nvml->library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void find_optional(struct nvml *nvml)
{
    if (!find_symbol(nvml, "nvmlDeviceGetGraphicsRunningProcesses_v3", &nvml->get_graphics)) {
        find_symbol(nvml, "nvmlDeviceGetGraphicsRunningProcesses_v2", &nvml->get_graphics);
    }
    find_symbol(nvml, "nvmlDeviceGetMemoryInfo_v2", &nvml->get_memory_v2);
    find_symbol(nvml, "nvmlErrorString", &nvml->get_error);
    find_symbol(nvml, "nvmlDeviceGetMinorNumber", &nvml->get_minor);
    find_symbol(nvml, "nvmlDeviceGetMigMode", &nvml->get_mig);
    find_symbol(nvml, "nvmlDeviceGetGpuFabricInfo", &nvml->get_fabric);
    find_symbol(nvml, "nvmlDeviceGetP2PStatus", &nvml->get_p2p);
    find_symbol(nvml, "nvmlDeviceGetTopologyCommonAncestor", &nvml->get_ancestor);
    find_symbol(nvml, "nvmlDeviceGetUtilizationRates", &nvml->get_utilization);
    find_symbol(nvml, "nvmlDeviceGetPowerUsage", &nvml->get_power);
    find_symbol(nvml, "nvmlDeviceGetTemperature", &nvml->get_temperature);
    find_symbol(nvml, "nvmlDeviceGetTotalEnergyConsumption", &nvml->get_energy);
}

static bool find_symbols(struct nvml *nvml, struct err *err)
{
    find_optional(nvml);
    if (!find_symbol(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes)) {
        find_symbol(nvml, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes);
    }
    if (!find_symbol(nvml, "nvmlInit_v2", &nvml->init) ||
        !find_symbol(nvml, "nvmlShutdown", &nvml->shutdown) ||
        !find_symbol(nvml, "nvmlDeviceGetCount_v2", &nvml->get_count) ||
        !find_symbol(nvml, "nvmlDeviceGetHandleByIndex_v2", &nvml->get_handle) ||
        !find_symbol(nvml, "nvmlDeviceGetHandleByUUID", &nvml->get_by_uuid) ||
        !find_symbol(nvml, "nvmlDeviceGetName", &nvml->get_name) ||
        !find_symbol(nvml, "nvmlDeviceGetUUID", &nvml->get_uuid) ||
        !find_symbol(nvml, "nvmlDeviceGetMemoryInfo", &nvml->get_memory) || nvml->get_processes == NULL) {
        return err_set(err, ERR_IO, "the NVIDIA driver's library is too old: %s", dlerror());
    }
    return true;
}

static bool fail(const struct nvml *nvml, int code, struct err *err)
{
    char text[LIMIT_DEVICE_REASON + 1];
    say_problem(nvml, code, text, sizeof text);
    return err_set(err, ERR_IO, "%s", text);
}

struct nvml *nvml_open(const char *library, struct err *err)
{
    struct nvml nvml = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (nvml.library == NULL) {
        err_set(err, ERR_IO, "no NVIDIA driver was found: %s", dlerror());
        return NULL;
    }
    int result = find_symbols(&nvml, err) ? nvml.init() : -1;
    if (result != NVML_SUCCESS) {
        if (result > 0) {
            fail(&nvml, result, err);
        }
        dlclose(nvml.library);
        return NULL;
    }
    nvml.started_ms = clock_boot_ms();
    struct nvml *opened = xalloc(sizeof *opened);
    *opened = nvml;
    return opened;
}

void nvml_close(struct nvml *nvml)
{
    if (nvml != NULL) {
        nvml->shutdown();
        dlclose(nvml->library);
        free(nvml);
    }
}

/* --- looks ---------------------------------------------------------------------------------------------- */

static void find(struct device_sight *sight, enum device_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void find(struct device_sight *sight, enum device_state state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sight->state = state;
    vsnprintf(sight->reason, sizeof sight->reason, format, arguments);
    va_end(arguments);
}

static void find_error(struct nvml *nvml, int code, struct device_sight *sight)
{
    sight->state = DEVICE_BROKEN;
    say_problem(nvml, code, sight->reason, sizeof sight->reason);
    nvml->doubted = true;
}

/* Reads only comm: reads of other files of a process may wait for its memory. */
static bool read_name(unsigned int pid, char name[COMM_BYTES])
{
    autofree char *path = xprintf("/proc/%u/comm", pid);
    autofree char *comm = NULL;
    if (!file_read(path, COMM_BYTES - 1, &comm, NULL, NULL)) {
        return false;
    }
    snprintf(name, COMM_BYTES, "%.*s", (int)strcspn(comm, "\n"), comm);
    return true;
}

static void find_process(unsigned int pid, struct device_sight *sight)
{
    char name[COMM_BYTES];
    struct stat status;
    autofree char *path = xprintf("/proc/%u", pid);
    if (!read_name(pid, name) || stat(path, &status) != 0) {
        find(sight, DEVICE_OCCUPIED, "in use by process %u, which cannot be seen from here", pid);
        return;
    }
    const struct passwd *user = getpwuid(status.st_uid);
    if (user != NULL) {
        find(sight, DEVICE_OCCUPIED, "memory held by process %u (%s) of user %s", pid, name, user->pw_name);
    } else {
        find(sight, DEVICE_OCCUPIED, "memory held by process %u (%s) of user %u", pid, name,
             (unsigned int)status.st_uid);
    }
}

/* MPS servers do not count: NVML lists their clients, too. */
static bool is_mps(unsigned int pid)
{
    char name[COMM_BYTES];
    return read_name(pid, name) && strncmp(name, MPS_NAME, strlen(MPS_NAME)) == 0;
}

/* Adds the memory of a process that does not count; false: it is not known. */
static bool add_known(const struct nvml_process *process, unsigned long long *known)
{
    *known += process->used_bytes != NVML_UNKNOWN ? process->used_bytes : 0;
    return process->used_bytes != NVML_UNKNOWN;
}

static int list(list_processes *call, void *handle, struct nvml_process *processes, unsigned int *count)
{
    *count = PROCESSES_SHOWN;
    int result = call(handle, count, processes);
    if (result == NVML_TOO_SMALL) {
        *count = PROCESSES_SHOWN;
        return NVML_SUCCESS;
    }
    return result;
}

static int read_memory(const struct nvml *nvml, void *handle, unsigned long long *ret_used,
                       unsigned long long *ret_total)
{
    struct nvml_memory memory = {.version = sizeof memory | (MEMORY_VERSION << 24)};
    struct nvml_old_memory old = {0};
    int result = nvml->get_memory_v2 != NULL ? nvml->get_memory_v2(handle, &memory) : NVML_NOT_SUPPORTED;
    if (result == NVML_SUCCESS) {
        *ret_used = memory.used;
        *ret_total = memory.total;
        return result;
    }
    result = nvml->get_memory(handle, &old);
    *ret_used = old.used;
    *ret_total = old.total;
    return result;
}

/* NVML lists no processes of other containers, but counts their memory. Memory for a screen is in a separate
 * list. */
static void look_at_memory(struct nvml *nvml, void *handle, unsigned long long known, bool all_known,
                           struct device_sight *sight)
{
    struct nvml_process processes[PROCESSES_SHOWN];
    unsigned int count = 0;
    unsigned long long used, total;
    int result = read_memory(nvml, handle, &used, &total);
    if (result != NVML_SUCCESS) {
        find_error(nvml, result, sight);
        return;
    }
    if (nvml->get_graphics != NULL && list(nvml->get_graphics, handle, processes, &count) != NVML_SUCCESS) {
        count = 0;
    }
    for (unsigned int i = 0; i < count; i++) {
        all_known = add_known(&processes[i], &known) && all_known;
    }
    if (all_known && used > known && used - known > GPU_IDLE_BYTES) {
        find(sight, DEVICE_OCCUPIED,
             "%llu MiB of its memory held by processes that cannot be seen from here, as in a container",
             (used - known) / (unsigned long long)MIB);
    }
}

static void look_at_processes(struct nvml *nvml, void *handle, struct device_sight *sight)
{
    struct nvml_process processes[PROCESSES_SHOWN];
    unsigned int count;
    unsigned long long known = 0;
    bool all_known = true;
    int result = list(nvml->get_processes, handle, processes, &count);
    if (result != NVML_SUCCESS) {
        find_error(nvml, result, sight);
        return;
    }
    for (unsigned int i = 0; i < count; i++) {
        if (!is_mps(processes[i].pid)) {
            find_process(processes[i].pid, sight);
            return;
        }
        all_known = add_known(&processes[i], &known) && all_known;
    }
    look_at_memory(nvml, handle, known, all_known, sight);
}

/* Finds conditions that make a GPU useless to every job although the calls that read it succeed. */
static bool is_unfit(const struct nvml *nvml, void *handle, struct device_sight *sight)
{
    unsigned int current = 0, pending;
    struct nvml_fabric fabric = {0};
    if (nvml->get_mig != NULL && nvml->get_mig(handle, &current, &pending) == NVML_SUCCESS && current != 0) {
        find(sight, DEVICE_BROKEN,
             "MIG is enabled, and parts of a GPU are not supported: disable it with nvidia-smi -mig 0");
        return true;
    }
    if (nvml->get_fabric != NULL && nvml->get_fabric(handle, &fabric) == NVML_SUCCESS &&
        fabric.state >= FABRIC_STARTING && fabric.state < FABRIC_READY) {
        find(sight, DEVICE_BROKEN,
             "the NVSwitch fabric is not ready (CUDA error 802): start nvidia-fabricmanager");
        return true;
    }
    return false;
}

/* What cannot be read says nothing against the GPU. */
static void measure(const struct nvml *nvml, void *handle, struct gpu_sample *use)
{
    struct nvml_utilization utilization;
    unsigned long long used, total, millijoules;
    unsigned int milliwatts, celsius;
    *use = GPU_SAMPLE_UNKNOWN;
    if (nvml->get_utilization != NULL && nvml->get_utilization(handle, &utilization) == NVML_SUCCESS) {
        use->busy_percent = utilization.gpu <= FULL_PERCENT ? utilization.gpu : FULL_PERCENT;
    }
    if (read_memory(nvml, handle, &used, &total) == NVML_SUCCESS) {
        use->memory_bytes = (int64_t)used;
        use->memory_total_bytes = (int64_t)total;
    }
    if (nvml->get_power != NULL && nvml->get_power(handle, &milliwatts) == NVML_SUCCESS) {
        use->power_mw = milliwatts;
    }
    if (nvml->get_temperature != NULL &&
        nvml->get_temperature(handle, SENSOR_GPU, &celsius) == NVML_SUCCESS && celsius <= UINT8_MAX) {
        use->temperature_c = celsius;
    }
    if (nvml->get_energy != NULL && nvml->get_energy(handle, &millijoules) == NVML_SUCCESS &&
        millijoules <= INT64_MAX) {
        use->energy_mj = (int64_t)millijoules;
    }
}

/* Under WSL GPUs have no files of their own. */
static bool read_minor(struct nvml *nvml, void *handle, struct device_sight *sight)
{
    unsigned int minor;
    int result = nvml->get_minor != NULL ? nvml->get_minor(handle, &minor) : NVML_NOT_SUPPORTED;
    sight->minor = result == NVML_SUCCESS ? (int64_t)minor : -1;
    if (result != NVML_SUCCESS && result != NVML_NOT_SUPPORTED) {
        find_error(nvml, result, sight);
        return false;
    }
    return true;
}

static void look(struct nvml *nvml, void *handle, struct device_sight *sight)
{
    *sight = (struct device_sight){.state = DEVICE_EMPTY};
    if (read_minor(nvml, handle, sight) && !is_unfit(nvml, handle, sight)) {
        look_at_processes(nvml, handle, sight);
    }
    if (sight->state != DEVICE_BROKEN) {
        measure(nvml, handle, &sight->use);
    }
}

static void start_anew(struct nvml *nvml)
{
    nvml->doubted = false;
    nvml->started_ms = clock_boot_ms();
    nvml->shutdown();
    nvml->init(); /* the next call reports any error */
}

void nvml_look(struct nvml *nvml, const char *uuid, struct device_sight *ret_sight)
{
    void *handle;
    *ret_sight = (struct device_sight){0};
    if (nvml->doubted && clock_boot_ms() - nvml->started_ms > GPU_RESTART_MS) {
        start_anew(nvml);
    }
    int result = nvml->get_by_uuid(uuid, &handle);
    if (result != NVML_SUCCESS) {
        find_error(nvml, result, ret_sight);
    } else {
        look(nvml, handle, ret_sight);
    }
}

/* --- groups --------------------------------------------------------------------------------------------- */

/* Whether two GPUs are joined by NVLink, directly or through switches. */
static bool are_linked(const struct nvml *nvml, void *one, void *other)
{
    int status;
    return nvml->get_p2p != NULL && nvml->get_p2p(one, other, P2P_NVLINK, &status) == NVML_SUCCESS &&
           status == P2P_OK;
}

static bool are_near(const struct nvml *nvml, void *one, void *other)
{
    int level;
    return nvml->get_ancestor != NULL && nvml->get_ancestor(one, other, &level) == NVML_SUCCESS &&
           level <= TOPOLOGY_NODE;
}

/* Merges the groups of two GPUs into that of the first. */
static void join(struct nvml_gpu *gpus, size_t count, size_t one, size_t other)
{
    int64_t from = gpus[other].group, to = gpus[one].group;
    for (size_t i = 0; i < count; i++) {
        if (gpus[i].group == from) {
            gpus[i].group = to;
        }
    }
}

/* Joins the pairs for which the test holds; true: there were some. */
static bool join_pairs(const struct nvml *nvml, struct nvml_gpu *gpus, size_t count, void *const *handles,
                       bool (*test)(const struct nvml *nvml, void *one, void *other))
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (handles[i] != NULL && handles[j] != NULL && test(nvml, handles[i], handles[j])) {
                join(gpus, count, i, j);
                any = true;
            }
        }
    }
    return any;
}

/* GPUs joined by NVLink form a group; without NVLink, the GPUs of a NUMA node do. */
static void find_groups(const struct nvml *nvml, struct nvml_gpu *gpus, size_t count, void *const *handles)
{
    if (nvml->get_p2p == NULL && nvml->get_ancestor == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        gpus[i].group = (int64_t)i;
    }
    if (!join_pairs(nvml, gpus, count, handles, are_linked)) {
        join_pairs(nvml, gpus, count, handles, are_near);
    }
}

/* --- the list ------------------------------------------------------------------------------------------- */

/* Lists a GPU that cannot be read, too, so that people see why it is missing. */
static void describe(struct nvml *nvml, unsigned int index, struct nvml_gpu *gpu, void **ret_handle)
{
    struct nvml_old_memory memory = {0};
    *gpu = (struct nvml_gpu){.index = index, .group = -1};
    int result = nvml->get_handle(index, ret_handle);
    result = result == NVML_SUCCESS ? nvml->get_name(*ret_handle, gpu->name, NVML_TEXT_BYTES) : result;
    result = result == NVML_SUCCESS ? nvml->get_uuid(*ret_handle, gpu->uuid, NVML_TEXT_BYTES) : result;
    if (result != NVML_SUCCESS) {
        *ret_handle = NULL;
        gpu->name[0] = '\0';
        snprintf(gpu->uuid, sizeof gpu->uuid, NVML_UNREADABLE "%u", index);
        find_error(nvml, result, &gpu->problem);
        return;
    }
    nvml->get_memory(*ret_handle, &memory);
    gpu->memory_bytes = (int64_t)memory.total;
}

struct nvml_gpu *nvml_list(struct nvml *nvml, size_t *ret_count, struct err *err)
{
    unsigned int count;
    int result = nvml->get_count(&count);
    if (result != NVML_SUCCESS) {
        fail(nvml, result, err);
        return NULL;
    }
    count = count < LIMIT_NODE_DEVICES ? count : LIMIT_NODE_DEVICES;
    struct nvml_gpu *gpus = xzalloc(count * sizeof *gpus);
    autofree void **handles = xzalloc(count * sizeof *handles);
    for (unsigned int i = 0; i < count; i++) {
        describe(nvml, i, &gpus[i], &handles[i]);
    }
    find_groups(nvml, gpus, count, handles);
    *ret_count = count;
    return gpus;
}
