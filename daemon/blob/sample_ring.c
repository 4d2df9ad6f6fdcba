/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what nodes used. A record's place in the file follows from its time, so there is no beginning to be
 * kept, a gap leaves old records that their times tell apart, and a clock that jumps harms only the records
 * that it writes over. A checksum tells a torn record. The bytes are in this machine's order: a file of
 * another machine is started anew, as one that is none of ours. */
#include "daemon/blob/sample_ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define MAGIC         "gpusamp1" /* with the version of the format */
#define PERCENT_PARTS 100        /* a percentage in hundredths */
#define UNKNOWN_PARTS UINT16_MAX

/* The first bytes of the file. */
struct header {
    char magic[8];
    uint32_t gpu_count, record_bytes, slots, reserved;
};

/* The first bytes of a record; its GPUs follow. */
struct stored {
    int64_t at_ms; /* 0: there was none yet */
    int64_t memory_bytes;
    uint16_t cpu_parts, reserved;
    uint32_t sum; /* of the record, with 0 here */
};

static_assert(sizeof(struct header) == 24 && sizeof(struct stored) == 24 && sizeof(struct ring_gpu) == 8,
              "the format has no gaps");

/* --- the format ----------------------------------------------------------------------------------------- */

static size_t record_size(size_t gpu_count)
{
    return sizeof(struct stored) + gpu_count * sizeof(struct ring_gpu);
}

static size_t file_size(size_t gpu_count)
{
    return sizeof(struct header) + SAMPLE_RING_SLOTS * record_size(gpu_count);
}

static struct header header_of(size_t gpu_count)
{
    struct header header = {.gpu_count = (uint32_t)gpu_count,
                            .record_bytes = (uint32_t)record_size(gpu_count),
                            .slots = SAMPLE_RING_SLOTS};
    memcpy(header.magic, MAGIC, sizeof header.magic);
    return header;
}

static size_t slot_offset(int64_t window, size_t gpu_count)
{
    return sizeof(struct header) + (size_t)(window % SAMPLE_RING_SLOTS) * record_size(gpu_count);
}

/* FNV-1a. */
static uint32_t sum_of(const uint8_t *bytes, size_t length)
{
    uint32_t sum = UINT32_C(2166136261);
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    }
    return sum;
}

static void pack(const struct ring_record *record, const struct ring_gpu *gpus, size_t gpu_count,
                 uint8_t *out)
{
    struct stored stored = {.at_ms = record->at_ms,
                            .memory_bytes = record->memory_bytes,
                            .cpu_parts = record->cpu_percent < 0
                                             ? UNKNOWN_PARTS
                                             : (uint16_t)(record->cpu_percent * PERCENT_PARTS + 0.5)};
    memcpy(out, &stored, sizeof stored);
    if (gpu_count > 0) {
        memcpy(out + sizeof stored, gpus, gpu_count * sizeof *gpus);
    }
    stored.sum = sum_of(out, record_size(gpu_count));
    memcpy(out, &stored, sizeof stored);
}

/* false: the record is torn. */
static bool unpack(uint8_t *bytes, size_t gpu_count, struct ring_record *ret_record)
{
    struct stored stored;
    memcpy(&stored, bytes, sizeof stored);
    uint32_t sum = stored.sum;
    stored.sum = 0;
    memcpy(bytes, &stored, sizeof stored);
    *ret_record = (struct ring_record){
        .at_ms = stored.at_ms,
        .memory_bytes = stored.memory_bytes,
        .cpu_percent = stored.cpu_parts == UNKNOWN_PARTS ? -1 : (double)stored.cpu_parts / PERCENT_PARTS};
    return sum == sum_of(bytes, record_size(gpu_count));
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* A node's name is checked when it registers; this looks again, because it becomes part of a path. The caller
 * frees it. */
static char *path_of(const char *folder, const char *node)
{
    assert(text_is_name(node, LIMIT_NAME_BYTES));
    return xprintf("%s/%s", folder, node);
}

/* Whether the file is whole and ours, and of how many GPUs. */
static bool is_ring(int file, size_t *ret_gpu_count)
{
    struct header header;
    struct stat status;
    if (pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header || fstat(file, &status) != 0 ||
        header.gpu_count > LIMIT_SAMPLE_GPUS) {
        return false;
    }
    struct header right = header_of(header.gpu_count);
    *ret_gpu_count = header.gpu_count;
    return memcmp(&header, &right, sizeof header) == 0 &&
           status.st_size == (off_t)file_size(header.gpu_count);
}

/* Its records are holes, which take no room and read as zeros. */
static bool start_anew(int file, size_t gpu_count)
{
    struct header header = header_of(gpu_count);
    return ftruncate(file, 0) == 0 && ftruncate(file, (off_t)file_size(gpu_count)) == 0 &&
           pwrite(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
}

bool sample_ring_put(const char *folder, const char *node, const struct ring_record *record,
                     const struct ring_gpu *gpus, size_t gpu_count, bool *ret_anew, struct err *err)
{
    assert(gpu_count <= LIMIT_SAMPLE_GPUS && record->at_ms > 0);
    struct stat status;
    size_t had, size = record_size(gpu_count);
    autofree char *path = path_of(folder, node);
    autofree uint8_t *bytes = xalloc(size);
    *ret_anew = false;
    autoclose int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0 || fstat(file, &status) != 0) {
        return err_errno(err, "cannot open %s", path);
    }
    if (!is_ring(file, &had) || had != gpu_count) {
        *ret_anew = status.st_size > 0;
        if (!start_anew(file, gpu_count)) {
            return err_errno(err, "cannot begin %s", path);
        }
    }
    pack(record, gpus, gpu_count, bytes);
    off_t offset = (off_t)slot_offset(record->at_ms / SAMPLE_RING_STEP_MS, gpu_count);
    return pwrite(file, bytes, size, offset) == (ssize_t)size || err_errno(err, "cannot write %s", path);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void collect(uint8_t *bytes, int64_t since_ms, int64_t until_ms, struct ring_span *span)
{
    int64_t last = until_ms / SAMPLE_RING_STEP_MS, window = since_ms / SAMPLE_RING_STEP_MS;
    if (last - window >= SAMPLE_RING_SLOTS) {
        window = last - SAMPLE_RING_SLOTS + 1;
    }
    for (; window <= last; window++) {
        uint8_t *at = bytes + slot_offset(window, span->gpu_count);
        struct ring_record *record = &span->records[span->count];
        if (unpack(at, span->gpu_count, record) && record->at_ms / SAMPLE_RING_STEP_MS == window &&
            record->at_ms >= since_ms && record->at_ms <= until_ms) {
            memcpy(span->gpus + span->count * span->gpu_count, at + sizeof(struct stored),
                   span->gpu_count * sizeof *span->gpus);
            span->count++;
        }
    }
}

bool sample_ring_read(const char *folder, const char *node, int64_t since_ms, int64_t until_ms,
                      struct ring_span *ret_span, struct err *err)
{
    *ret_span = (struct ring_span){0};
    autofree char *path = path_of(folder, node);
    autoclose int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return errno == ENOENT || err_errno(err, "cannot open %s", path);
    }
    if (!is_ring(file, &ret_span->gpu_count)) {
        ret_span->gpu_count = 0;
        return true;
    }
    size_t size = file_size(ret_span->gpu_count);
    autofree uint8_t *bytes = xalloc(size);
    if (pread(file, bytes, size, 0) != (ssize_t)size) {
        return err_errno(err, "cannot read %s", path);
    }
    ret_span->records = xalloc(SAMPLE_RING_SLOTS * sizeof *ret_span->records);
    ret_span->gpus = xzalloc((SAMPLE_RING_SLOTS * ret_span->gpu_count + 1) * sizeof *ret_span->gpus);
    collect(bytes, since_ms, until_ms, ret_span);
    return true;
}

void ring_span_finish(struct ring_span *span)
{
    free(span->records);
    free(span->gpus);
    *span = (struct ring_span){0};
}

/* --- removal -------------------------------------------------------------------------------------------- */

bool sample_ring_remove(const char *folder, const char *node, struct err *err)
{
    autofree char *path = path_of(folder, node);
    return unlink(path) == 0 || errno == ENOENT || err_errno(err, "cannot remove %s", path);
}

static bool is_old(const char *path, int64_t wall_ms)
{
    struct stat status;
    return lstat(path, &status) == 0 &&
           wall_ms - status.st_mtim.tv_sec * 1000 > SAMPLE_RING_SLOTS * SAMPLE_RING_STEP_MS;
}

bool sample_ring_sweep(const char *folder, int64_t wall_ms, struct err *err)
{
    struct file_names names;
    bool ok = true;
    if (access(folder, F_OK) != 0) {
        return true;
    }
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count && ok; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        ok = !is_old(path, wall_ms) || unlink(path) == 0 || errno == ENOENT ||
             err_errno(err, "cannot remove %s", path);
    }
    file_names_finish(&names);
    return ok;
}
