/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Python programs to STATE/runner/<hash of the files>. A process that runs one finds complete
 * files, and ranks of an older agent still find theirs. Before each use the kernel is asked whether a file
 * was changed since it was compared with the one in the agent, which is done again then: on its content,
 * because hashes of both would cost more. */
#include "agent/launch/runner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"

#define VERSION_CHARS      16
#define PIECE_BYTES        32768
#define RUNNER_MODE        0644 /* no secret is in them */
#define RUNNER_FOLDER_MODE 0755

/* Ranks may run as any user. A folder of an earlier agent may have been made for root alone. */
static bool make_passable(const char *folder, const char *version, const char *watch, struct err *err)
{
    return file_make_directories(watch, RUNNER_FOLDER_MODE, err) &&
           ((chmod(folder, RUNNER_FOLDER_MODE) == 0 && chmod(version, RUNNER_FOLDER_MODE) == 0 &&
             chmod(watch, RUNNER_FOLDER_MODE) == 0) ||
            err_errno(err, "cannot open %s to the users of jobs", version));
}

static const struct program {
    const char *file;
    const unsigned char *source;
    const size_t *length;
} programs[] = {
#define RUNNER_ROW(name, file) {file, name##_source, &name##_source_length},
    RUNNER_PROGRAMS(RUNNER_ROW)
#undef RUNNER_ROW
};

#define PROGRAMS (sizeof programs / sizeof programs[0])

/* Of each, the file that was compared last. */
static struct stat compared[PROGRAMS];

/* Nobody can change a file, its owner or its mode without a new time of change. */
static bool is_compared(int folder, const char *file, const struct stat *before)
{
    struct stat status;
    return before->st_ino != 0 && fstatat(folder, file, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_dev == before->st_dev && status.st_ino == before->st_ino &&
           status.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           status.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Whether a later change will have another time: the clock of files ticks some hundred times a second. */
static bool is_over(const struct timespec *change)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec > change->tv_sec || (now.tv_sec == change->tv_sec && now.tv_nsec > change->tv_nsec);
}

/* Whether the file holds the program; *ret_status is the file as it was before it was read. */
static bool is_there(const char *path, const struct program *program, struct stat *ret_status)
{
    unsigned char piece[PIECE_BYTES];
    const size_t length = *program->length;
    autoclose int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, ret_status) != 0 || ret_status->st_uid != geteuid() ||
        ret_status->st_mode != (S_IFREG | RUNNER_MODE) || ret_status->st_size != (off_t)length) {
        return false;
    }
    for (size_t done = 0; done < length;) {
        ssize_t got = read(file, piece, sizeof piece);
        if (got <= 0 || (size_t)got > length - done ||
            memcmp(piece, program->source + done, (size_t)got) != 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* A new file has the mode, whatever the umask is. */
static bool lay(const char *path, size_t number, struct err *err)
{
    struct stat status;
    const struct program *program = &programs[number];
    if (is_there(path, program, &status)) {
        compared[number] = is_over(&status.st_ctim) ? status : (struct stat){0};
        return true;
    }
    if (access(path, F_OK) == 0) {
        log_error("program altered", "path=%s reason=\"it is written again\"", path);
    }
    return file_replace(path, program->source, *program->length, RUNNER_MODE, err) &&
           (chmod(path, RUNNER_MODE) == 0 || err_errno(err, "cannot open %s to the users of jobs", path));
}

static char *version_of(const char *folder)
{
    char hash[HASH_HEX + 1];
    autotext struct text all = {0};
    for (size_t i = 0; i < PROGRAMS; i++) {
        text_append_bytes(&all, (const char *)programs[i].source, *programs[i].length);
    }
    hash_hex(all.bytes, all.length, hash);
    return xprintf("%s/%.*s", folder, VERSION_CHARS, hash);
}

char *runner_stage(const char *folder, struct err *err)
{
    autofree char *version = version_of(folder);
    autofree char *watch = xprintf("%s/" SHIM_WATCH_FOLDER, version);
    return make_passable(folder, version, watch, err) && runner_restore(version, err) ? give(version) : NULL;
}

/* A start waits for this: the way to the folder is walked once. */
bool runner_restore(const char *version, struct err *err)
{
    bool laid = true;
    autoclose int folder = open(version, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < PROGRAMS && laid; i++) {
        if (!is_compared(folder, programs[i].file, &compared[i])) {
            autofree char *path = xprintf("%s/%s", version, programs[i].file);
            laid = lay(path, i, err);
        }
    }
    return laid;
}

void runner_drop_others(const char *folder, const char *kept, struct trash *trash)
{
    autonames struct file_names names;
    file_list(folder, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        if (names.items[i][0] != '.' && strcmp(path, kept) != 0) {
            trash_take(trash, path);
        }
    }
}
