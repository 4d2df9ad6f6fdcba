/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the launch file, and builds the environment of a rank: the entries for all ranks, then those for this
 * rank, then those that the start adds. */
#include "agent/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

/* Room for all of the file, and for one byte more than a launch file may have: large rooms cost page faults.
 */
static size_t room_for(int fd)
{
    struct stat status;
    bool small = fstat(fd, &status) == 0 && status.st_size < LIMIT_LAUNCH_BYTES;
    return (small ? (size_t)status.st_size : LIMIT_LAUNCH_BYTES) + 1;
}

static ssize_t bytes_read(int fd, char *bytes, size_t room)
{
    ssize_t got, size = 0;
    while ((got = read(fd, bytes + size, room - (size_t)size)) > 0) {
        size += got;
    }
    return got < 0 ? -1 : size;
}

bool launch_read(struct launch *launch, struct why *why)
{
    struct err err;
    autoclose int fd = open(SHIM_LAUNCH_FILE, O_RDONLY | O_CLOEXEC);
    size_t room = fd >= 0 ? room_for(fd) : 1;
    autofree char *bytes = xalloc(room);
    ssize_t size = fd >= 0 ? bytes_read(fd, bytes, room) : -1;
    if (size < 0) {
        return why_set(why, "launch file: %s", strerror(errno));
    }
    return launch_parse(give(bytes), (size_t)size, launch, &err) || why_set(why, "%s", err.text);
}

static char **entry_find(char **env, size_t count, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(env[i], entry, length) == 0 && (env[i][length] == '=' || env[i][length] == '\0')) {
            return &env[i];
        }
    }
    return NULL;
}

/* Adds the entry. If its name is there already, the new one replaces it, or with `keep` the old one stays. */
static void entry_put(char **env, size_t *count, char *entry, bool keep)
{
    char **found = entry_find(env, *count, entry);
    if (found == NULL) {
        env[(*count)++] = entry;
    } else if (!keep) {
        *found = entry;
    }
}

char **launch_environment(const struct launch *launch, size_t rank, char *const *added)
{
    const struct launch_rank *own = &launch->ranks[rank];
    size_t added_count = 0, count = 0;
    while (added[added_count] != NULL) {
        added_count++;
    }
    char **env = xalloc((launch->env_count + own->env_count + added_count + 2) * sizeof *env);
    for (size_t i = 0; i < launch->env_count; i++) {
        entry_put(env, &count, launch->env[i], false);
    }
    for (size_t i = 0; i < own->env_count; i++) {
        entry_put(env, &count, own->env[i], false);
    }
    for (size_t i = 0; i < added_count; i++) {
        entry_put(env, &count, added[i], true);
    }
    env[count] = NULL;
    env[count + 1] = NULL; /* room for one more */
    return env;
}
