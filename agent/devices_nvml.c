/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the GPUs of a node as NVML shows them. The library is loaded at run time, so that one binary serves
 * nodes with and without GPUs; the declarations are our own and hold only what is used. It promises that a
 * GPU that cannot be asked counts as not in use, with a line in the log. It changes nothing on a GPU. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define NVML_SUCCESS    0
#define NVML_TOO_SMALL  7 /* NVML_ERROR_INSUFFICIENT_SIZE */
#define NVML_TEXT       96
#define PROCESSES_SHOWN 64 /* one is enough to say no */
#define P2P_NVLINK      2  /* NVML_P2P_CAPS_INDEX_NVLINK */
#define P2P_OK          0  /* NVML_P2P_STATUS_OK */
#define TOPOLOGY_NODE   40 /* NVML_TOPOLOGY_NODE: the same NUMA node, or nearer */

struct nvml_memory {
    unsigned long long total, free, used;
};

/* nvmlProcessInfo_t since version 2 of the call. */
struct nvml_process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance;
};

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*get_count)(unsigned int *ret_count);
    int (*get_handle)(unsigned int index, void **ret_handle);
    int (*get_name)(void *handle, char *name, unsigned int size);
    int (*get_uuid)(void *handle, char *uuid, unsigned int size);
    int (*get_memory)(void *handle, struct nvml_memory *ret_memory);
    int (*get_processes)(void *handle, unsigned int *count, struct nvml_process *processes);
    int (*get_p2p)(void *handle, void *other, int capability, int *ret_status); /* or NULL */
    int (*get_ancestor)(void *handle, void *other, int *ret_level);             /* or NULL */
    unsigned int count;
};

static bool find_symbol(struct nvml *nvml, const char *name, void *ret_function)
{
    void *symbol = dlsym(nvml->library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_symbols(struct nvml *nvml, struct err *err)
{
    if (!find_symbol(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->get_processes)) {
        find_symbol(nvml, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->get_processes);
    }
    find_symbol(nvml, "nvmlDeviceGetP2PStatus", &nvml->get_p2p);
    find_symbol(nvml, "nvmlDeviceGetTopologyCommonAncestor", &nvml->get_ancestor);
    if (!find_symbol(nvml, "nvmlInit_v2", &nvml->init) ||
        !find_symbol(nvml, "nvmlShutdown", &nvml->shutdown) ||
        !find_symbol(nvml, "nvmlDeviceGetCount_v2", &nvml->get_count) ||
        !find_symbol(nvml, "nvmlDeviceGetHandleByIndex_v2", &nvml->get_handle) ||
        !find_symbol(nvml, "nvmlDeviceGetName", &nvml->get_name) ||
        !find_symbol(nvml, "nvmlDeviceGetUUID", &nvml->get_uuid) ||
        !find_symbol(nvml, "nvmlDeviceGetMemoryInfo", &nvml->get_memory) || nvml->get_processes == NULL) {
        return err_set(err, ERR_IO, "the NVIDIA driver's library is too old: %s", dlerror());
    }
    return true;
}

static void close_nvml(void *state)
{
    struct nvml *nvml = state;
    nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

static bool in_use(void *state, int64_t index, int64_t *ret_pid)
{
    struct nvml *nvml = state;
    struct nvml_process processes[PROCESSES_SHOWN];
    unsigned int count = PROCESSES_SHOWN;
    void *handle;
    int result = nvml->get_handle((unsigned int)index, &handle);
    if (result == NVML_SUCCESS) {
        result = nvml->get_processes(handle, &count, processes);
    }
    if (result != NVML_SUCCESS && result != NVML_TOO_SMALL) {
        log_warning("gpu unreadable", "index=%lld nvml_error=%d", (long long)index, result);
        return false;
    }
    *ret_pid = count > 0 ? (int64_t)processes[0].pid : 0;
    return count > 0;
}

static const struct device_driver driver = {.name = "nvml", .in_use = in_use, .close = close_nvml};

static struct nvml *load(const char *library, struct err *err)
{
    struct nvml nvml = {.library = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (nvml.library == NULL) {
        err_set(err, ERR_IO, "no NVIDIA driver was found: %s", dlerror());
        return NULL;
    }
    if (!find_symbols(&nvml, err)) {
        dlclose(nvml.library);
        return NULL;
    }
    int result = nvml.init();
    if (result != NVML_SUCCESS || nvml.get_count(&nvml.count) != NVML_SUCCESS) {
        err_set(err, ERR_IO, "the NVIDIA driver does not answer (NVML error %d)", result);
        dlclose(nvml.library);
        return NULL;
    }
    struct nvml *loaded = xalloc(sizeof *loaded);
    *loaded = nvml;
    return loaded;
}

/* Whether the list names this GPU, by index or UUID. Counts the words that it used up. */
static bool is_listed(const char *list, unsigned int index, const char *uuid, size_t *matched)
{
    if (strcmp(list, "all") == 0) {
        return true;
    }
    autofree char *copy = xstrdup(list);
    char *rest = copy;
    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        int64_t number;
        bool by_index = text_to_int(word, 0, LIMIT_NODE_DEVICES, &number) && number == (int64_t)index;
        if (by_index || strcmp(word, uuid) == 0) {
            *matched += 1;
            return true;
        }
    }
    return false;
}

static bool add_gpu(struct nvml *nvml, unsigned int index, const char *list, const char *type,
                    struct devices *devices, size_t *matched)
{
    void *handle;
    char name[NVML_TEXT], uuid[NVML_TEXT];
    struct nvml_memory memory = {0};
    if (nvml->get_handle(index, &handle) != NVML_SUCCESS ||
        nvml->get_name(handle, name, sizeof name) != NVML_SUCCESS ||
        nvml->get_uuid(handle, uuid, sizeof uuid) != NVML_SUCCESS) {
        return false;
    }
    if (!is_listed(list, index, uuid, matched)) {
        return true;
    }
    nvml->get_memory(handle, &memory);
    devices->no_peer_access = devices->no_peer_access || strstr(name, "RTX 40") != NULL;
    devices->items = xrealloc(devices->items, (devices->count + 1) * sizeof *devices->items);
    devices->items[devices->count++] = (struct device){
        .index = index,
        .uuid = xstrdup(uuid),
        .type = type != NULL ? xstrdup(type) : devices_short_name(name),
        .memory_bytes = (int64_t)memory.total,
        .group = -1,
    };
    return true;
}

/* --- groups --- */

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

/* Puts two devices, and all that are with them, into one group: the one that came first. */
static void join(struct devices *devices, size_t one, size_t other)
{
    int64_t from = devices->items[other].group, to = devices->items[one].group;
    for (size_t i = 0; i < devices->count; i++) {
        if (devices->items[i].group == from) {
            devices->items[i].group = to;
        }
    }
}

/* Joins what a test says belongs together; true: some does. */
static bool join_pairs(const struct nvml *nvml, struct devices *devices, void *const *handles,
                       bool (*test)(const struct nvml *nvml, void *one, void *other))
{
    bool any = false;
    for (size_t i = 0; i < devices->count; i++) {
        for (size_t j = i + 1; j < devices->count; j++) {
            if (test(nvml, handles[i], handles[j])) {
                join(devices, i, j);
                any = true;
            }
        }
    }
    return any;
}

static void number_groups(struct devices *devices)
{
    int64_t next = 0;
    for (size_t i = 0; i < devices->count; i++) {
        int64_t group = devices->items[i].group;
        bool first = group == (int64_t)i;
        for (size_t j = i; first && j < devices->count; j++) {
            if (devices->items[j].group == group) {
                devices->items[j].group = next;
            }
        }
        next += first;
    }
}

/* Devices joined by NVLink are one group; where none are, those of one NUMA node. */
static void find_groups(const struct nvml *nvml, struct devices *devices)
{
    void *handles[LIMIT_NODE_DEVICES];
    if (nvml->get_p2p == NULL && nvml->get_ancestor == NULL) {
        return;
    }
    for (size_t i = 0; i < devices->count; i++) {
        if (nvml->get_handle((unsigned int)devices->items[i].index, &handles[i]) != NVML_SUCCESS) {
            return;
        }
    }
    for (size_t i = 0; i < devices->count; i++) {
        devices->items[i].group = (int64_t)i;
    }
    if (!join_pairs(nvml, devices, handles, are_linked)) {
        join_pairs(nvml, devices, handles, are_near);
    }
    number_groups(devices);
}

static size_t count_words(const char *list)
{
    size_t words = 1;
    for (const char *at = list; *at != '\0'; at++) {
        words += *at == ',';
    }
    return words;
}

bool devices_open_nvml(const char *library, const char *list, const char *type, struct devices *ret_devices,
                       struct err *err)
{
    struct nvml *nvml = load(library, err);
    if (nvml == NULL) {
        return false;
    }
    struct devices devices = {.driver = &driver, .state = nvml};
    size_t matched = 0;
    for (unsigned int i = 0; i < nvml->count && i < LIMIT_NODE_DEVICES; i++) {
        if (!add_gpu(nvml, i, list, type, &devices, &matched)) {
            log_warning("gpu skipped", "index=%u", i);
        }
    }
    if (strcmp(list, "all") != 0 && matched != count_words(list)) {
        devices_close(&devices);
        return err_field(err, ERR_IO, "--devices", "name GPUs by index or UUID, as nvidia-smi -L shows them",
                         "--devices %s names a GPU that is not here, or one twice", list);
    }
    if (devices.count == 0) {
        devices_close(&devices);
        return err_set(err, ERR_IO, "the NVIDIA driver shows no GPU");
    }
    find_groups(nvml, &devices);
    *ret_devices = devices;
    return true;
}
