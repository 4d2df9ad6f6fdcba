/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Python programs to STATE/runner/<hash of the files>. A process that runs one finds complete
 * files, and ranks of an older agent still find theirs. */
#include "agent/launch/runner.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"

#define VERSION_CHARS      16
#define RUNNER_MODE        0644 /* no secret is in them */
#define RUNNER_FOLDER_MODE 0755

/* Compares the content, because somebody may have edited the file. */
static bool is_there(const char *path, const unsigned char *source, size_t source_length)
{
    autofree char *bytes = NULL;
    size_t length;
    return file_read(path, source_length, &bytes, &length, NULL) && length == source_length &&
           memcmp(bytes, source, length) == 0;
}

static bool lay(const char *path, const unsigned char *source, size_t length, struct err *err)
{
    return (is_there(path, source, length) || file_replace(path, source, length, RUNNER_MODE, err)) &&
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
    bool laid = make_passable(folder, version, watch, err);
    for (size_t i = 0; i < PROGRAMS && laid; i++) {
        autofree char *path = xprintf("%s/%s", version, programs[i].file);
        laid = lay(path, programs[i].source, *programs[i].length, err);
    }
    return laid ? give(version) : NULL;
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
