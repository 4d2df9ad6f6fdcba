/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the output of ranks in files, and keeps track of how much of each file is on disk. A stored stream
 * is a prefix of the rank's output: bytes are only appended, by offset. Bytes acknowledged as received
 * survive kill -9; bytes acknowledged as durable survive a power loss. log_reader.c reads in the order of
 * arrival. */
#include "daemon/blob/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/log_index.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/files/files.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_controller.h"

enum sync_state { SYNC_IDLE, SYNC_QUEUED };

/* How much of one stream is on disk, as far as this process knows. */
struct sync_entry {
    struct task task; /* first member: a task pointer is also its entry's */
    char *path;       /* of the stream; the hash key */
    char *index;      /* NULL: it has none */
    char *folder;
    int64_t durable;
    int64_t aim; /* the size when the sync was queued */
    int64_t size;
    enum sync_state state;
    bool failed; /* the sync in progress failed */
    bool sound;  /* the index promises no more of the stream than is stored */
    struct logs *logs;
    UT_hash_handle hh;
};

struct logs {
    char *folder, *kept;
    int64_t limit; /* bytes per stream of output */
    struct worker *worker;
    struct sync_entry *entries;
    pthread_mutex_t mutex; /* held while bytes are appended, and while a job's folder is replaced */
};

const char *log_root(const struct logs *logs)
{
    return logs->folder;
}

char *log_folder_path(const struct logs *logs, const char *job_id)
{
    return xprintf("%s/%.2s/%s", logs->folder, job_id, job_id);
}

char *log_kept_path(const struct logs *logs, const char *job_id)
{
    return xprintf("%s/%.2s/%s", logs->kept, job_id, job_id);
}

static bool is_indexed(const struct log_name *name)
{
    return name->stream != STREAM_FILES;
}

static char *folder_of(const struct logs *logs, const struct log_name *name)
{
    return is_indexed(name) ? log_folder_path(logs, name->job_id) : log_kept_path(logs, name->job_id);
}

char *log_stream_path(const struct logs *logs, const struct log_name *name)
{
    return xprintf("%s/%.2s/%s/%lld.%lld.%s", is_indexed(name) ? logs->folder : logs->kept, name->job_id,
                   name->job_id, (long long)name->attempt, (long long)name->rank, stream_text(name->stream));
}

char *log_index_path(const struct logs *logs, const char *job_id, int64_t attempt)
{
    return xprintf("%s/%.2s/%s/%lld.index", logs->folder, job_id, job_id, (long long)attempt);
}

struct logs *logs_open(const char *folder, const char *kept_folder, int64_t limit, struct worker *worker,
                       struct err *err)
{
    if (!file_make_directories(folder, 0700, err) || !file_make_directories(kept_folder, 0700, err)) {
        return NULL;
    }
    struct logs *logs = xzalloc(sizeof *logs);
    logs->folder = xstrdup(folder);
    logs->kept = xstrdup(kept_folder);
    logs->limit = limit;
    logs->worker = worker;
    pthread_mutex_init(&logs->mutex, NULL);
    return logs;
}

static void entry_destroy(struct sync_entry *entry)
{
    free(entry->path);
    free(entry->index);
    free(entry->folder);
    free(entry);
}

void logs_close(struct logs *logs)
{
    if (logs == NULL) {
        return;
    }
    struct sync_entry *entry, *next;
    HASH_ITER (hh, logs->entries, entry, next) {
        HASH_DEL(logs->entries, entry);
        entry_destroy(entry);
    }
    pthread_mutex_destroy(&logs->mutex);
    free(logs->folder);
    free(logs->kept);
    free(logs);
}

/* --- syncing -------------------------------------------------------------------------------------------- */

static bool sync_path(const char *path, int flags)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    return fd >= 0 && fsync(fd) == 0;
}

/* Runs on the helper thread. */
static void sync_work(struct task *task)
{
    struct sync_entry *entry = (struct sync_entry *)task;
    entry->failed = !sync_path(entry->path, 0) || (entry->index != NULL && !sync_path(entry->index, 0)) ||
                    !sync_path(entry->folder, O_DIRECTORY);
}

static void sync_queue(struct sync_entry *entry)
{
    entry->state = SYNC_QUEUED;
    entry->aim = entry->size;
    worker_give(entry->logs->worker, &entry->task);
}

static void sync_done(struct task *task)
{
    struct sync_entry *entry = (struct sync_entry *)task;
    entry->state = SYNC_IDLE;
    if (entry->failed) {
        return; /* durable stays; the next request tries again */
    }
    entry->durable = entry->aim;
    if (entry->size > entry->durable) {
        sync_queue(entry);
    }
}

static void forget_idle_entries(struct logs *logs)
{
    struct sync_entry *entry, *next;
    HASH_ITER (hh, logs->entries, entry, next) {
        if (entry->state == SYNC_IDLE) {
            HASH_DEL(logs->entries, entry);
            entry_destroy(entry);
        }
    }
}

static struct sync_entry *entry_of(struct logs *logs, const struct log_name *name, const char *path)
{
    struct sync_entry *entry;
    HASH_FIND_STR(logs->entries, path, entry);
    if (entry != NULL) {
        return entry;
    }
    if (HASH_COUNT(logs->entries) >= LIMIT_LOG_SYNC_ENTRIES) {
        forget_idle_entries(logs);
    }
    entry = xzalloc(sizeof *entry);
    entry->task.work = sync_work;
    entry->task.done = sync_done;
    entry->path = xstrdup(path);
    entry->index = is_indexed(name) ? log_index_path(logs, name->job_id, name->attempt) : NULL;
    entry->folder = folder_of(logs, name);
    entry->logs = logs;
    HASH_ADD_KEYPTR(hh, logs->entries, entry->path, strlen(entry->path), entry);
    return entry;
}

static int64_t note_size(struct logs *logs, const struct log_name *name, const char *path, int64_t size)
{
    if (size == 0) {
        return 0;
    }
    struct sync_entry *entry = entry_of(logs, name, path);
    entry->size = size;
    if (entry->state == SYNC_IDLE && entry->durable < size) {
        sync_queue(entry);
    }
    return entry->durable;
}

/* --- adding --------------------------------------------------------------------------------------------- */

static bool write_at(int fd, const char *bytes, size_t length, int64_t offset, struct err *err)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, bytes, length, offset);
        if (written < 0 && errno != EINTR) {
            return err_errno(err, "cannot store output");
        }
        if (written > 0) {
            bytes += written;
            offset += written;
            length -= (size_t)written;
        }
    }
    return true;
}

static bool add_record(const struct logs *logs, const struct log_name *name, int64_t offset, size_t length,
                       struct err *err)
{
    const struct log_record record = {.channel = log_channel(name->rank, name->stream),
                                      .offset = offset,
                                      .length = (int64_t)length,
                                      .at_ms = clock_wall_ms()};
    autofree char *path = log_index_path(logs, name->job_id, name->attempt);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        return err_errno(err, "cannot open the index %s", path);
    }
    int64_t end = status.st_size - status.st_size % (int64_t)sizeof record; /* a torn record is overwritten */
    return write_at(fd, (const char *)&record, sizeof record, end, err);
}

/* Runs before the first append to a stream since the start or since a failed write, because the index may
 * promise bytes that were never stored. */
static bool repair_index(const struct logs *logs, const struct log_name *name, int64_t size, struct err *err)
{
    autofree char *path = log_index_path(logs, name->job_id, name->attempt);
    return log_index_repair(path, log_channel(name->rank, name->stream), size, err);
}

/* Opens the stream for appending; makes the folder for the first stream of a job. */
static int open_for_adding(const struct logs *logs, const struct log_name *name, const char *path,
                           struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT) {
        autofree char *folder = folder_of(logs, name);
        if (!file_make_directories(folder, 0700, err)) {
            return -1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    }
    if (fd < 0) {
        err_errno(err, "cannot open %s", path);
    }
    return fd;
}

/* Appends bytes; the stream has `size` bytes so far. */
static bool add(struct logs *logs, const struct log_name *name, const char *path, int64_t size,
                const char *bytes, size_t length, struct err *err)
{
    autoclose int fd = open_for_adding(logs, name, path, err);
    struct sync_entry *entry = entry_of(logs, name, path);
    bool indexed = is_indexed(name);
    if (fd < 0 || (indexed && !entry->sound && !repair_index(logs, name, size, err))) {
        return false;
    }
    entry->sound = false;
    if ((indexed && !add_record(logs, name, size, length, err)) || !write_at(fd, bytes, length, size, err)) {
        return false;
    }
    entry->sound = true;
    return true;
}

static int64_t stored_size(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

static bool append(struct logs *logs, const struct log_name *name, int64_t offset, const void *bytes,
                   size_t length, int64_t *ret_received, int64_t *ret_durable, struct err *err)
{
    autofree char *path = log_stream_path(logs, name);
    int64_t size = stored_size(path);
    int64_t end = offset + (int64_t)length;
    bool fits = !is_indexed(name) || /* earlier agents add a line beyond the limit */
                end <= logs->limit + STREAM_MARKS_BYTES;
    if (offset <= size && end > size && fits) {
        const char *fresh = (const char *)bytes + (size - offset);
        if (!add(logs, name, path, size, fresh, (size_t)(end - size), err)) {
            return false;
        }
        size = end;
    }
    *ret_received = size;
    *ret_durable = note_size(logs, name, path, size);
    if (offset > size) {
        return err_field(err, ERR_CONFLICT, "offset", "go on from what was received",
                         "the stream is stored up to %lld, not up to %lld", (long long)size,
                         (long long)offset);
    }
    return end <= size || err_field(err, ERR_TOO_LARGE, NULL, "see gpuctld --log-limit",
                                    "a stream has at most %lld MiB", (long long)(logs->limit / MIB));
}

bool logs_append(struct logs *logs, const struct log_name *name, int64_t offset, const void *bytes,
                 size_t length, int64_t *ret_received, int64_t *ret_durable, struct err *err)
{
    pthread_mutex_lock(&logs->mutex);
    bool ok = append(logs, name, offset, bytes, length, ret_received, ret_durable, err);
    pthread_mutex_unlock(&logs->mutex);
    return ok;
}

char *logs_job_folder(const struct logs *logs, const char *job_id, bool kept)
{
    return kept ? log_kept_path(logs, job_id) : log_folder_path(logs, job_id);
}

const char *logs_top_folder(const struct logs *logs, bool kept)
{
    return kept ? logs->kept : logs->folder;
}

bool logs_replace(struct logs *logs, const char *job_id, bool kept, const char *to,
                  const struct job_folder_extent *extent, struct err *err)
{
    autofree char *folder = logs_job_folder(logs, job_id, kept);
    return job_folder_replace(&logs->mutex, folder, to, extent, err);
}

int logs_open_stream(const struct logs *logs, const struct log_name *name, int64_t *ret_size, struct err *err)
{
    autofree char *path = log_stream_path(logs, name);
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *ret_size = 0;
        err->code = ERR_NONE;
        return -1;
    }
    if (fd < 0 || fstat(fd, &status) != 0) {
        err_errno(err, "cannot open %s", path);
        return -1;
    }
    *ret_size = status.st_size;
    return fd;
}

bool logs_has(const struct logs *logs, const char *job_id)
{
    autofree char *folder = log_folder_path(logs, job_id);
    return access(folder, F_OK) == 0 || errno != ENOENT;
}
