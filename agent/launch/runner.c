/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the Python programs to STATE/runner, and the builder's program beside it. Ranks find complete files,
 * and ranks of an older agent still find theirs. The folder's name is a hash of the files. */
#include "agent/launch/runner.h"

#include <stdbool.h>
#include <string.h>

#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files.h"
#include "proto/base/hash.h"
#include "proto/base/text.h"

#define RUNNER_FILE   "gpuctl_runner.py"
#define BUILDER_FILE  "gpuctl_environment.py"
#define WARM_FILE     "gpuctl_warm.py"
#define MLFLOW_FILE   "gpuctl_mlflow.py"
#define JAX_FILE      "gpuctl_jax.py"
#define WATCH_FILE    "gpuctl_watch.py"
#define VERSION_CHARS 16

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
    return is_there(path, source, length) || file_replace(path, source, length, 0600, err);
}

/* The programs that ranks run. */
static const struct rank_file {
    const char *name;
    const unsigned char *source;
    const size_t *length;
} rank_files[] = {
    {RUNNER_FILE, runner_source, &runner_source_length},
    {RUNNER_ACCELERATE_FILE, accelerate_source, &accelerate_source_length},
    {WATCH_FILE, watch_source, &watch_source_length},
    {JAX_FILE, jax_source, &jax_source_length},
    {MLFLOW_FILE, mlflow_source, &mlflow_source_length},
    {SHIM_WATCH_FOLDER "/sitecustomize.py", site_source, &site_source_length},
};

#define RANK_FILES (sizeof rank_files / sizeof rank_files[0])

static char *version_of(const char *folder)
{
    char hash[HASH_HEX + 1];
    autotext struct text all = {0};
    for (size_t i = 0; i < RANK_FILES; i++) {
        text_append_bytes(&all, (const char *)rank_files[i].source, *rank_files[i].length);
    }
    hash_hex(all.bytes, all.length, hash);
    return xprintf("%s/%.*s", folder, VERSION_CHARS, hash);
}

char *runner_stage(const char *folder, struct err *err)
{
    autofree char *version = version_of(folder);
    autofree char *watch = xprintf("%s/" SHIM_WATCH_FOLDER, version);
    bool laid = file_make_directories(watch, 0700, err);
    for (size_t i = 0; i < RANK_FILES && laid; i++) {
        autofree char *path = xprintf("%s/%s", version, rank_files[i].name);
        laid = lay(path, rank_files[i].source, *rank_files[i].length, err);
    }
    return laid ? give(version) : NULL;
}

char *runner_stage_builder(const char *folder, struct err *err)
{
    autofree char *path = xprintf("%s/" BUILDER_FILE, folder);
    return lay(path, environment_source, environment_source_length, err) ? give(path) : NULL;
}

char *runner_stage_warm(const char *folder, struct err *err)
{
    autofree char *path = xprintf("%s/" WARM_FILE, folder);
    return file_make_directories(folder, 0700, err) && lay(path, warm_source, warm_source_length, err)
               ? xstrdup(folder)
               : NULL;
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
