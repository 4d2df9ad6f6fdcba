/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Python programs to STATE/runner/<hash of the files>. A process that runs one finds complete
 * files, and ranks of an older agent still find theirs. They are compared with those in the agent before each
 * use: the content, because hashes of both would cost more. */
#include "agent/launch/runner.h"

#include <fcntl.h>
#include <string.h>
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

static bool is_there(const char *path, const unsigned char *source, size_t length)
{
    unsigned char piece[PIECE_BYTES];
    struct stat status;
    autoclose int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_uid != geteuid() ||
        status.st_mode != (S_IFREG | RUNNER_MODE) || status.st_size != (off_t)length) {
        return false;
    }
    for (size_t done = 0; done < length;) {
        ssize_t got = read(file, piece, sizeof piece);
        if (got <= 0 || (size_t)got > length - done || memcmp(piece, source + done, (size_t)got) != 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* A new file has the mode, whatever the umask is. */
static bool lay(const char *path, const unsigned char *source, size_t length, struct err *err)
{
    if (is_there(path, source, length)) {
        return true;
    }
    if (access(path, F_OK) == 0) {
        log_error("program altered", "path=%s reason=\"it is written again\"", path);
    }
    return file_replace(path, source, length, RUNNER_MODE, err) &&
           (chmod(path, RUNNER_MODE) == 0 || err_errno(err, "cannot open %s to the users of jobs", path));
}

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

bool runner_restore(const char *version, struct err *err)
{
    bool laid = true;
    for (size_t i = 0; i < PROGRAMS && laid; i++) {
        autofree char *path = xprintf("%s/%s", version, programs[i].file);
        laid = lay(path, programs[i].source, *programs[i].length, err);
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
