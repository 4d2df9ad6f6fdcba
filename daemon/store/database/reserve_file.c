/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the reserve file: a file beside the database whose space is given back when the disk is full, so
 * that work in progress can still be committed. The space is really allocated where the file system can do
 * that. Two threads may make and release it at once. A reserve file that cannot be made is no failure.
 * pages.c releases it; the HTTP thread makes it again. */
#include "daemon/store/database/reserve_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

enum reserve_file_state { RESERVE_FILE_MISSING, RESERVE_FILE_WHOLE, RESERVE_FILE_RELEASED };

struct reserve_file {
    char *path;
    pthread_mutex_t making; /* held while the file changes */
    _Atomic(enum reserve_file_state) state;
    int64_t bytes;
};

static bool disk_of(const struct reserve_file *reserve_file, struct file_disk *ret_disk)
{
    autofree char *folder = file_folder_of(reserve_file->path);
    return file_disk(folder, ret_disk);
}

/* Of a small file system a sixteenth. */
static int64_t fitting_bytes(const struct reserve_file *reserve_file)
{
    struct file_disk disk;
    bool small = disk_of(reserve_file, &disk) && disk.bytes / 16 < RESERVE_FILE_BYTES;
    return small ? disk.bytes / 16 : RESERVE_FILE_BYTES;
}

static bool is_allocated(const struct reserve_file *reserve_file)
{
    struct stat status;
    return stat(reserve_file->path, &status) == 0 && (int64_t)status.st_blocks * 512 >= reserve_file->bytes;
}

struct reserve_file *reserve_file_open(const char *path)
{
    struct reserve_file *reserve_file = xzalloc(sizeof *reserve_file);
    reserve_file->path = xprintf("%s.reserve", path);
    pthread_mutex_init(&reserve_file->making, NULL);
    reserve_file->bytes = fitting_bytes(reserve_file);
    atomic_init(&reserve_file->state, is_allocated(reserve_file) ? RESERVE_FILE_WHOLE : RESERVE_FILE_MISSING);
    return reserve_file;
}

void reserve_file_close(struct reserve_file *reserve_file)
{
    if (reserve_file == NULL) {
        return;
    }
    unlink(reserve_file->path);
    pthread_mutex_destroy(&reserve_file->making);
    free(reserve_file->path);
    free(reserve_file);
}

static bool has_room(const struct reserve_file *reserve_file, int64_t margin_bytes)
{
    struct file_disk disk;
    return disk_of(reserve_file, &disk) && disk.free_bytes - reserve_file->bytes >= margin_bytes;
}

/* Not zeros: a file system that compresses would keep nothing of them. */
static bool fill(int fd, int64_t bytes)
{
    autofree char *piece = xalloc(MIB);
    uint64_t state = 88172645463325252U;
    for (size_t i = 0; i + sizeof state <= MIB; i += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(piece + i, &state, sizeof state);
    }
    for (int64_t done = 0; done < bytes;) {
        int64_t length = bytes - done < MIB ? bytes - done : MIB;
        if (!file_write_all(fd, piece, (size_t)length)) {
            return false;
        }
        done += length;
    }
    return fsync(fd) == 0;
}

static bool allocate(const struct reserve_file *reserve_file)
{
    autoclose int fd = open(reserve_file->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    if (fallocate(fd, 0, 0, reserve_file->bytes) == 0) {
        return true;
    }
    return errno == EOPNOTSUPP && fill(fd, reserve_file->bytes);
}

bool reserve_file_make(struct reserve_file *reserve_file, int64_t margin_bytes)
{
    pthread_mutex_lock(&reserve_file->making);
    bool whole = reserve_file_is_whole(reserve_file);
    if (!whole && has_room(reserve_file, margin_bytes)) {
        whole = allocate(reserve_file);
        if (whole) {
            atomic_store(&reserve_file->state, RESERVE_FILE_WHOLE);
        } else {
            unlink(reserve_file->path);
        }
    }
    pthread_mutex_unlock(&reserve_file->making);
    return whole;
}

/* Some file systems hand out freed space only after their journal is on disk; the sync waits for that. */
static void give_back(const char *path)
{
    autoclose int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
    }
    unlink(path);
}

bool reserve_file_release(struct reserve_file *reserve_file)
{
    if (!reserve_file_is_whole(reserve_file)) {
        return false;
    }
    pthread_mutex_lock(&reserve_file->making);
    bool whole = reserve_file_is_whole(reserve_file);
    if (whole) {
        atomic_store(&reserve_file->state, RESERVE_FILE_RELEASED);
        give_back(reserve_file->path);
    }
    pthread_mutex_unlock(&reserve_file->making);
    return whole;
}

bool reserve_file_is_whole(const struct reserve_file *reserve_file)
{
    return atomic_load(&reserve_file->state) == RESERVE_FILE_WHOLE;
}

bool reserve_file_is_released(const struct reserve_file *reserve_file)
{
    return atomic_load(&reserve_file->state) == RESERVE_FILE_RELEASED;
}

int64_t reserve_file_bytes(const struct reserve_file *reserve_file)
{
    return reserve_file->bytes;
}
