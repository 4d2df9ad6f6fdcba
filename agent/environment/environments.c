/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the environment of a job among those of this node. cache.c keeps them; builder.c builds them. Beside
 * them lies .pip-cache. */
#include "agent/environment/environments.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/cache.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

#define PIP_CACHE      ".pip-cache"
#define DEFAULT_PYTHON "python3"

struct environments {
    struct cache *cache;
    char *python; /* or NULL */
};

static bool has_python(const char *folder)
{
    autofree char *python = xprintf("%s/bin/python", folder);
    return access(python, X_OK) == 0;
}

struct environments *environments_create(const char *folder, const char *python, int64_t limit_bytes,
                                         struct err *err)
{
    struct cache *cache = cache_create(
        &(struct cache_config){
            .folder = folder, .noun = "environment", .limit_bytes = limit_bytes, .is_whole = has_python},
        err);
    if (cache == NULL) {
        return NULL;
    }
    struct environments *environments = xzalloc(sizeof *environments);
    *environments = (struct environments){.cache = cache, .python = python != NULL ? xstrdup(python) : NULL};
    return environments;
}

void environments_destroy(struct environments *environments)
{
    if (environments != NULL) {
        cache_destroy(environments->cache);
        free(environments->python);
        free(environments);
    }
}

const char *environments_folder(const struct environments *environments)
{
    return cache_folder(environments->cache);
}

bool environments_step(struct environments *environments)
{
    return cache_step(environments->cache);
}

/* --- names ---------------------------------------------------------------------------------------------- */

static bool is_program(const char *path, struct stat *ret_status)
{
    return stat(path, ret_status) == 0 && S_ISREG(ret_status->st_mode) && access(path, X_OK) == 0;
}

/* Searches PATH as execvp does. */
static char *find_program(const char *name, struct stat *ret_status)
{
    const char *variable = getenv("PATH");
    autofree char *path = xstrdup(variable != NULL ? variable : "/usr/local/bin:/usr/bin:/bin");
    if (strchr(name, '/') != NULL) {
        return is_program(name, ret_status) ? xstrdup(name) : NULL;
    }
    char *rest = path;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        autofree char *found = xprintf("%s/%s", folder, name);
        if (folder[0] == '/' && is_program(found, ret_status)) {
            return give(found);
        }
    }
    return NULL;
}

bool environment_name(const struct environments *environments, const struct environment_need *need,
                      char **ret_name, char **ret_interpreter, struct err *err)
{
    const char *agents = environments->python != NULL ? environments->python : DEFAULT_PYTHON;
    const char *python = need->python != NULL ? need->python : agents;
    struct stat status;
    char *interpreter = find_program(python, &status);
    if (interpreter == NULL) {
        err_set(err, ERR_IO, "the node has no Python at %s: install it there, or %s", python,
                need->python != NULL ? "name another for the job" : "start gpuagent with --python");
        return false;
    }
    autofree char *facts =
        xprintf("%s\n%s\n%s\n%llu %llu %lld %lld.%09ld\n", need->requirements,
                need->python_version != NULL ? need->python_version : "", interpreter,
                (unsigned long long)status.st_dev, (unsigned long long)status.st_ino,
                (long long)status.st_size, (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    char *name = xalloc(HASH_HEX + 1);
    hash_hex(facts, strlen(facts), name);
    *ret_name = name;
    *ret_interpreter = interpreter;
    return true;
}

/* --- use ------------------------------------------------------------------------------------------------ */

/* Whether the package folders of the node's own Python are unchanged: their time changes when a package comes
 * or goes. */
static bool is_fresh(const json_t *marker)
{
    const char *path;
    json_t *time;
    json_object_foreach (json_object_get(marker, "folders"), path, time) {
        struct stat status;
        if (stat(path, &status) != 0 ||
            status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec != json_integer_value(time)) {
            return false;
        }
    }
    return true;
}

int environment_use(const struct environments *environments, const char *name, bool fresh, char **ret_folder,
                    struct err *err)
{
    autojson json_t *marker = NULL;
    autofree char *folder = NULL;
    autoclose int lock = cache_use(environments->cache, name, &marker, &folder);
    if (lock < 0 || (fresh && !is_fresh(marker))) {
        err_set(err, ERR_NOT_FOUND, "the environment is gone from this node, and is built again");
        return -1;
    }
    *ret_folder = give(folder);
    return give_fd(&lock);
}

/* pip can fetch its files again. */
void environments_make_room(struct environments *environments)
{
    if (cache_missing_bytes(environments->cache) > 0) {
        autofree char *pip = xprintf("%s/" PIP_CACHE, environments_folder(environments));
        cache_discard(environments->cache, pip);
    }
    cache_make_room(environments->cache, 0);
}
