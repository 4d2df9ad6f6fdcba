/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ballast: a file beside the database whose space is given back when the disk is full, so that what
 * is under way can still be committed. It promises that the space is really allocated where the file system
 * can do that, that making and releasing may meet from two threads, and that a ballast which cannot be made
 * is no failure. When it is released is pages.c's business, when it is made anew the HTTP thread's. */
#include "daemon/store/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

enum ballast_state { BALLAST_MISSING, BALLAST_WHOLE, BALLAST_RELEASED };

struct ballast {
    char *path;
    pthread_mutex_t making; /* held while the file changes */
    _Atomic(enum ballast_state) state;
    int64_t bytes;
};

static bool disk_state(const struct ballast *ballast, struct statvfs *ret_state)
{
    autofree char *folder = xstrdup(ballast->path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    return statvfs(slash != NULL ? folder : ".", ret_state) == 0;
}

/* Of a small file system a sixteenth. */
static int64_t fitting_bytes(const struct ballast *ballast)
{
    struct statvfs state;
    if (!disk_state(ballast, &state)) {
        return BALLAST_BYTES;
    }
    int64_t part = (int64_t)state.f_blocks * (int64_t)state.f_frsize / 16;
    return part < BALLAST_BYTES ? part : BALLAST_BYTES;
}

static bool is_allocated(const struct ballast *ballast)
{
    struct stat status;
    return stat(ballast->path, &status) == 0 && (int64_t)status.st_blocks * 512 >= ballast->bytes;
}

struct ballast *ballast_open(const char *path)
{
    struct ballast *ballast = xzalloc(sizeof *ballast);
    ballast->path = xprintf("%s.ballast", path);
    pthread_mutex_init(&ballast->making, NULL);
    ballast->bytes = fitting_bytes(ballast);
    atomic_init(&ballast->state, is_allocated(ballast) ? BALLAST_WHOLE : BALLAST_MISSING);
    return ballast;
}

void ballast_close(struct ballast *ballast)
{
    if (ballast == NULL) {
        return;
    }
    unlink(ballast->path);
    pthread_mutex_destroy(&ballast->making);
    free(ballast->path);
    free(ballast);
}

static bool has_room(const struct ballast *ballast, int64_t margin_bytes)
{
    struct statvfs state;
    return disk_state(ballast, &state) &&
           (int64_t)state.f_bavail * (int64_t)state.f_frsize - ballast->bytes >= margin_bytes;
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
        ssize_t written = write(fd, piece, bytes - done < MIB ? (size_t)(bytes - done) : (size_t)MIB);
        if (written <= 0) {
            return false;
        }
        done += written;
    }
    return fsync(fd) == 0;
}

static bool allocate(const struct ballast *ballast)
{
    autoclose int fd = open(ballast->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    if (fallocate(fd, 0, 0, ballast->bytes) == 0) {
        return true;
    }
    return errno == EOPNOTSUPP && fill(fd, ballast->bytes);
}

bool ballast_make(struct ballast *ballast, int64_t margin_bytes)
{
    pthread_mutex_lock(&ballast->making);
    bool whole = ballast_is_whole(ballast);
    if (!whole && has_room(ballast, margin_bytes)) {
        whole = allocate(ballast);
        if (whole) {
            atomic_store(&ballast->state, BALLAST_WHOLE);
        } else {
            unlink(ballast->path);
        }
    }
    pthread_mutex_unlock(&ballast->making);
    return whole;
}

/* Some file systems hand out what was freed only after their journal is on disk; the sync waits for that. */
static void give_back(const char *path)
{
    autoclose int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
    }
    unlink(path);
}

bool ballast_release(struct ballast *ballast)
{
    if (!ballast_is_whole(ballast)) {
        return false;
    }
    pthread_mutex_lock(&ballast->making);
    bool whole = ballast_is_whole(ballast);
    if (whole) {
        atomic_store(&ballast->state, BALLAST_RELEASED);
        give_back(ballast->path);
    }
    pthread_mutex_unlock(&ballast->making);
    return whole;
}

bool ballast_is_whole(const struct ballast *ballast)
{
    return atomic_load(&ballast->state) == BALLAST_WHOLE;
}

bool ballast_is_released(const struct ballast *ballast)
{
    return atomic_load(&ballast->state) == BALLAST_RELEASED;
}

int64_t ballast_bytes(const struct ballast *ballast)
{
    return ballast->bytes;
}
