/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the exit record, the one thing that must outlive the shim: it writes a new file and renames it, so
 * that it outlives a kill, and syncs both a moment later, so that it outlives a loss of power. By then the
 * controller usually has the exit on its own disk, and the sync is not needed. The record names its attempt,
 * because after a loss of power a file that was not synced may have the old content of its blocks. The disk
 * space is reserved before the ranks start, so ranks that fill the disk cannot prevent the record.
 * shim_attempt.c decides the cause. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

static char *path_of(const struct shim *shim, const char *name)
{
    return xprintf("%s/%s", shim->launch.logs, name);
}

static bool failed_at(struct why *why, const char *path)
{
    return why_set(why, "exit record %s: %s", path, strerror(errno));
}

/* Moves anything at the record's path aside. A rank put it there, because its folder is below this one. */
static void obstacle_move(const struct shim *shim, const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0) {
        autofree char *aside = xprintf("%s/stray.%lld.%lld", shim->launch.logs, (long long)info.st_ino,
                                       (long long)clock_boot_ms());
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
    cleanup_close(&shim->record);
    mkdir(shim->launch.logs, 0700);
    obstacle_move(shim, path);
    shim->record = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return shim->record >= 0 || failed_at(why, path);
}

/* The file may have the record of an earlier attempt, of a sector at most. That is overwritten and not cut
 * off: a disk that discards what is freed would have to be waited for. */
static bool record_blank(int fd)
{
    static const char blank[SHIM_RECORD_SECTOR];
    return pwrite(fd, blank, sizeof blank, 0) == (ssize_t)sizeof blank;
}

/* The room for the record may have been made before the disk became full. What ranks print needs some, too.
 */
static bool disk_has_room(const struct shim *shim)
{
    struct statvfs disk;
    if (fstatvfs(shim->record, &disk) != 0) {
        return false;
    }
    errno = ENOSPC;
    return disk.f_blocks == 0 || /* it does not say */
           (off_t)(disk.f_bavail * disk.f_frsize) >= SHIM_RECORD_BYTES(shim->launch.rank_count);
}

/* The agent has made the file with room for one rank, where it could; then the disk has nothing to do here.
 */
bool record_reserve(struct shim *shim, struct why *why)
{
    autofree char *path = path_of(shim, SHIM_EXIT_NEW_FILE);
    shim->record = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (shim->record < 0) {
        return failed_at(why, path);
    }
    if (fallocate(shim->record, 0, 0, SHIM_RECORD_BYTES(shim->launch.rank_count)) != 0 &&
        errno != EOPNOTSUPP) {
        return failed_at(why, SHIM_EXIT_NEW_FILE);
    }
    return (disk_has_room(shim) && record_blank(shim->record)) || failed_at(why, SHIM_EXIT_NEW_FILE);
}

void record_cancel(struct shim *shim)
{
    autofree char *path = shim->record >= 0 ? path_of(shim, SHIM_EXIT_NEW_FILE) : NULL;
    if (path != NULL) {
        close(give_fd(&shim->record));
        unlink(path);
    }
}

/* These lines follow `end`, so an agent that does not know them can still read the record. */
static void add_moments(const struct shim *shim, struct text *text)
{
    text_printf(text, "epoch %s\n", shim->launch.attempt_id);
    text_append(text, "moments");
    for (size_t i = 0; i < MOMENT_COUNT; i++) {
        text_printf(text, " %lld", (long long)shim->moments[i]);
    }
    text_append(text, "\n");
    for (size_t i = 0; i < shim->mark_count; i++) {
        const struct mark *mark = &shim->marks[i];
        text_printf(text, "mark %d %lld %s\n", mark->rank, (long long)mark->at_us, mark->name);
    }
}

static void write_text(const struct shim *shim, struct text *text)
{
    const struct rank *rank;
    for (size_t place = 1; (rank = reap_at(shim, place)) != NULL; place++) {
        text_printf(text, "rank %d %d %d %lld %lld %lld %d\n", shim->launch.ranks[rank - shim->ranks].number,
                    rank->code, rank->signal, (long long)rank->wall_ms, (long long)rank->streams[0].stored,
                    (long long)rank->streams[1].stored, rank->by_us ? 1 : 0);
    }
    if (shim->checkpoint_ms != 0) {
        text_printf(text, "checkpoint %lld\n", (long long)shim->checkpoint_ms);
    }
    const char *gap = shim->cause_text.text[0] != '\0' ? " " : "";
    text_printf(text, "cause %s%s%s\nend\n", shim->cause, gap, shim->cause_text.text);
    add_moments(shim, text);
}

static bool text_store(int fd, const struct text *text)
{
    for (size_t done = 0; done < text->length;) {
        ssize_t written = pwrite(fd, text->bytes + done, text->length - done, (off_t)done);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return ftruncate(fd, (off_t)text->length) == 0;
}

/* Replaces a file, but a folder is in the way. */
static bool put_in_place(const struct shim *shim, const char *from, const char *to)
{
    if (rename(from, to) == 0) {
        return true;
    }
    obstacle_move(shim, to);
    return rename(from, to) == 0;
}

static bool folder_sync(const char *path)
{
    autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0;
}

bool record_write(struct shim *shim, struct why *why)
{
    autofree char *from = path_of(shim, SHIM_EXIT_NEW_FILE);
    autofree char *to = path_of(shim, SHIM_EXIT_FILE);
    autotext struct text text = {0};
    if (!record_open_anew(shim, from, why)) {
        return false;
    }
    write_text(shim, &text);
    bool stored = (text_store(shim->record, &text) && put_in_place(shim, from, to)) || failed_at(why, to);
    if (!stored) {
        close(give_fd(&shim->record));
    }
    return stored;
}

bool record_sync(struct shim *shim, struct why *why)
{
    autofree char *path = path_of(shim, SHIM_EXIT_FILE);
    bool synced = (fsync(shim->record) == 0 && folder_sync(shim->launch.logs)) || failed_at(why, path);
    close(give_fd(&shim->record)); /* also after a failed fsync: then only a new file can be trusted */
    return synced;
}
