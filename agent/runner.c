/* SPDX-License-Identifier: Apache-2.0 */
/* Owns STATE/runner. It promises that ranks find the file whole, that ranks of an older agent keep finding
 * theirs, and that the folder's name says what is in the file. What the file does is its own affair. */
#include "agent/runner.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/hash.h"
#include "proto/base/text.h"

#define RUNNER_FILE   "gpuctl_runner.py"
#define VERSION_CHARS 16

/* Somebody may have edited it. */
static bool is_there(const char *path)
{
    autofree char *bytes = NULL;
    size_t length;
    return file_read(path, runner_source_length, &bytes, &length, NULL) && length == runner_source_length &&
           memcmp(bytes, runner_source, length) == 0;
}

char *runner_lay(const char *folder, struct err *err)
{
    char hash[HASH_HEX + 1];
    hash_hex(runner_source, runner_source_length, hash);
    autofree char *version = xprintf("%s/%.*s", folder, VERSION_CHARS, hash);
    autofree char *path = xprintf("%s/%s", version, RUNNER_FILE);
    if (!file_make_directories(version, 0700, err)) {
        return NULL;
    }
    bool laid = is_there(path) || file_replace(path, runner_source, runner_source_length, 0600, err);
    return laid ? give(version) : NULL;
}

void runner_drop_others(const char *folder, const char *kept, struct trash *trash)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        autofree char *path = xprintf("%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && strcmp(path, kept) != 0) {
            trash_take(trash, path);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}
