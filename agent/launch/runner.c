/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Python programs to STATE/runner/<hash of the files>. A process that runs one finds complete
 * files, and ranks of an older agent still find theirs. The kernel tells (inotify) when something changes in
 * the folders: before the next use each file is then compared with the one in the agent, on its content,
 * because hashes of both would cost more. */
#include "agent/launch/runner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
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

static int changes = -1; /* in the folders, told by the kernel; -1: it cannot, and each use compares */
static bool compared;    /* since the last of them */

static void watch_changes(const char *version, const char *watch)
{
    const uint32_t what =
        IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF;
    cleanup_close(&changes);
    compared = false;
    autoclose int told = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (told >= 0 && inotify_add_watch(told, version, what) >= 0 &&
        inotify_add_watch(told, watch, what) >= 0) {
        changes = give_fd(&told);
    }
}

static bool is_unchanged(void)
{
    char events[4096];
    bool unchanged = changes >= 0;
    while (changes >= 0 && read(changes, events, sizeof events) > 0) {
        unchanged = false;
    }
    return unchanged;
}

static bool is_there(const char *path, const struct program *program)
{
    struct stat status;
    unsigned char piece[PIECE_BYTES];
    const size_t length = *program->length;
    autoclose int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_uid != geteuid() ||
        status.st_mode != (S_IFREG | RUNNER_MODE) || status.st_size != (off_t)length) {
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
static bool lay(const char *path, const struct program *program, struct err *err)
{
    if (is_there(path, program)) {
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
    if (!make_passable(folder, version, watch, err)) {
        return NULL;
    }
    watch_changes(version, watch);
    return runner_restore(version, err) ? give(version) : NULL;
}

/* A start waits for this. What it writes itself is compared once more by the next one. */
bool runner_restore(const char *version, struct err *err)
{
    if (is_unchanged() && compared) {
        return true;
    }
    compared = true;
    for (size_t i = 0; i < PROGRAMS && compared; i++) {
        autofree char *path = xprintf("%s/%s", version, programs[i].file);
        compared = lay(path, &programs[i], err);
    }
    return compared;
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
