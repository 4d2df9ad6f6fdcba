/* SPDX-License-Identifier: Apache-2.0 */
/* Owns STATE/runner, and the builder's program beside it. It promises that ranks find the file whole, that
 * ranks of an older agent keep finding theirs, and that the folder's name says what is in the file. What the
 * file does is its own affair. */
#include "agent/runner.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/hash.h"
#include "proto/base/text.h"

#define RUNNER_FILE   "gpuctl_runner.py"
#define BUILDER_FILE  "gpuctl_environment.py"
#define WARM_FILE     "gpuctl_warm.py"
#define VERSION_CHARS 16

/* Somebody may have edited it. */
static bool is_there(const char *path, const unsigned char *source, size_t source_length)
{
    autofree char *bytes = NULL;
    size_t length;
    return file_read(path, source_length, &bytes, &length, NULL) && length == source_length &&
           memcmp(bytes, source, length) == 0;
}

static bool lay(const char *path, const unsigned char *source, size_t length, struct err *err)
{
    return is_there(path, source, length) || file_replace(path, source, length, 0600, err);
}

/* Of both programs that ranks run. */
static char *version_of(const char *folder)
{
    char hash[HASH_HEX + 1];
    autotext struct text both = {0};
    text_append_bytes(&both, (const char *)runner_source, runner_source_length);
    text_append_bytes(&both, (const char *)accelerate_source, accelerate_source_length);
    hash_hex(both.bytes, both.length, hash);
    return xprintf("%s/%.*s", folder, VERSION_CHARS, hash);
}

char *runner_lay(const char *folder, struct err *err)
{
    autofree char *version = version_of(folder);
    autofree char *runner = xprintf("%s/" RUNNER_FILE, version);
    autofree char *accelerate = xprintf("%s/" RUNNER_ACCELERATE_FILE, version);
    if (!file_make_directories(version, 0700, err)) {
        return NULL;
    }
    bool laid = lay(runner, runner_source, runner_source_length, err) &&
                lay(accelerate, accelerate_source, accelerate_source_length, err);
    return laid ? give(version) : NULL;
}

char *runner_lay_builder(const char *folder, struct err *err)
{
    autofree char *path = xprintf("%s/" BUILDER_FILE, folder);
    return lay(path, environment_source, environment_source_length, err) ? give(path) : NULL;
}

char *runner_lay_warm(const char *folder, struct err *err)
{
    autofree char *path = xprintf("%s/" WARM_FILE, folder);
    return file_make_directories(folder, 0700, err) && lay(path, warm_source, warm_source_length, err)
               ? xstrdup(folder)
               : NULL;
}

void runner_drop_others(const char *folder, const char *kept, struct trash *trash)
{
    autonames struct file_names names;
    file_list(folder, &names, NULL); /* what cannot be listed is left */
    for (size_t i = 0; i < names.count; i++) {
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        if (names.items[i][0] != '.' && strcmp(path, kept) != 0) {
            trash_take(trash, path);
        }
    }
}
