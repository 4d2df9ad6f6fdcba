/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the exit record, the one thing that must outlive the shim: it writes a new file, fsyncs it, renames
 * it and fsyncs the folder. The disk space is reserved before the ranks start, so ranks that fill the disk
 * cannot prevent the record. shim_attempt.c decides the cause. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_LINE    160 /* a rank's line: two words and seven numbers of at most 20 digits */
#define RECORD_TRAILER (LIMIT_SHIM_TEXT + (3 + LIMIT_MARKS) * RECORD_LINE) /* cause, end, moments, marks */

static size_t record_room(const struct shim *shim)
{
    return shim->launch.rank_count * RECORD_LINE + RECORD_TRAILER;
}

static bool new_path(const struct shim *shim, const char *name, char path[PATH_MAX], struct why *why)
{
    if (snprintf(path, PATH_MAX, "%s/%s", shim->launch.logs, name) >= PATH_MAX) {
        return why_set(why, "the path of the log folder is too long");
    }
    return true;
}

static bool failed_at(struct why *why, const char *path)
{
    return why_set(why, "exit record %s: %s", path, strerror(errno));
}

/* Moves anything at the record's path aside. A rank put it there, because its folder is below this one. */
static void obstacle_move(const struct shim *shim, const char *path)
{
    char aside[PATH_MAX];
    struct stat info;
    if (lstat(path, &info) == 0 && snprintf(aside, sizeof aside, "%s/stray.%lld.%lld", shim->launch.logs,
                                            (long long)info.st_ino, (long long)shim_boot_ms()) < PATH_MAX) {
        rename(path, aside);
    }
}

static bool is_at(int fd, const char *path)
{
    struct stat own, there;
    return fstat(fd, &own) == 0 && lstat(path, &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

/* Opens the record again if a rank has removed the folder or replaced the file. */
static bool record_open_anew(struct shim *shim, const char *path, struct why *why)
{
    if (shim->record >= 0 && is_at(shim->record, path)) {
        return true;
    }
    if (shim->record >= 0) {
        close(shim->record);
    }
    mkdir(shim->launch.logs, 0700);
    obstacle_move(shim, path);
    shim->record = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return shim->record >= 0 || failed_at(why, path);
}

bool record_reserve(struct shim *shim, struct why *why)
{
    char path[PATH_MAX];
    if (!new_path(shim, SHIM_EXIT_NEW_FILE, path, why)) {
        return false;
    }
    shim->record = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (shim->record < 0) {
        return failed_at(why, path);
    }
    if (fallocate(shim->record, 0, 0, (off_t)record_room(shim)) != 0 && errno != EOPNOTSUPP) {
        return failed_at(why, SHIM_EXIT_NEW_FILE);
    }
    return true;
}

void record_cancel(struct shim *shim)
{
    char path[PATH_MAX];
    struct why ignored;
    if (shim->record >= 0 && new_path(shim, SHIM_EXIT_NEW_FILE, path, &ignored)) {
        close(shim->record);
        shim->record = -1;
        unlink(path);
    }
}

/* These lines follow `end`, so an agent that does not know them can still read the record. */
static size_t moments_text(const struct shim *shim, char *text, size_t room)
{
    const int64_t *at = shim->moments;
    size_t length =
        (size_t)snprintf(text, room, "moments %lld %lld %lld %lld %lld\n", (long long)at[MOMENT_PREPARED],
                         (long long)at[MOMENT_BEGUN], (long long)at[MOMENT_RUNNING],
                         (long long)at[MOMENT_OUTPUT], (long long)at[MOMENT_GONE]);
    for (size_t i = 0; i < shim->mark_count; i++) {
        const struct mark *mark = &shim->marks[i];
        length += (size_t)snprintf(text + length, room - length, "mark %d %lld %s\n", mark->rank,
                                   (long long)mark->at_us, mark->name);
    }
    return length;
}

static size_t record_text(const struct shim *shim, char *text, size_t room)
{
    size_t length = 0;
    const struct rank *rank;
    for (size_t place = 1; (rank = reap_at(shim, place)) != NULL; place++) {
        length += (size_t)snprintf(text + length, room - length, "rank %d %d %d %lld %lld %lld %d\n",
                                   shim->launch.ranks[rank - shim->ranks].number, rank->code, rank->signal,
                                   (long long)rank->wall_ms, (long long)rank->streams[0].stored,
                                   (long long)rank->streams[1].stored, rank->by_us ? 1 : 0);
    }
    if (shim->checkpoint_ms != 0) {
        length += (size_t)snprintf(text + length, room - length, "checkpoint %lld\n",
                                   (long long)shim->checkpoint_ms);
    }
    const char *gap = shim->cause_text.text[0] != '\0' ? " " : "";
    length += (size_t)snprintf(text + length, room - length, "cause %s%s%s\nend\n", shim->cause, gap,
                               shim->cause_text.text);
    return length + moments_text(shim, text + length, room - length);
}

static bool text_store(int fd, const char *text, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t written = pwrite(fd, text + done, length - done, (off_t)done);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return ftruncate(fd, (off_t)length) == 0 && fsync(fd) == 0;
}

static bool folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool synced = fsync(fd) == 0;
    close(fd);
    return synced;
}

bool record_write(struct shim *shim, struct why *why)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (!new_path(shim, SHIM_EXIT_NEW_FILE, from, why) || !new_path(shim, SHIM_EXIT_FILE, to, why) ||
        !record_open_anew(shim, from, why)) {
        return false;
    }
    obstacle_move(shim, to);
    size_t room = record_room(shim);
    char *text = shim_resize(NULL, room, 1);
    bool stored = text_store(shim->record, text, record_text(shim, text, room));
    int error = errno;
    free(text);
    errno = error;
    if (!stored || rename(from, to) != 0 || !folder_sync(shim->launch.logs)) {
        failed_at(why, to);
        close(shim->record); /* after a failed fsync only a new file can be trusted */
        shim->record = -1;
        return false;
    }
    close(shim->record);
    shim->record = -1;
    return true;
}
