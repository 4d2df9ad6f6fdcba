/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the command line of gpuctl_warm.py, and the launch file by which a shim starts it. */
#include "agent/launch/warm_program.h"

#include <string.h>

#include "agent/common/launch_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"

#define ARGUMENTS_ROOM 16384 /* for a rank's command line, which ps shows */
#define VARIABLES_ROOM 65536
#define ROOM_VARIABLE  "GPUCTL_ROOM="

static char *make_room_text(const char *start, size_t length)
{
    size_t begin = strlen(start);
    char *text = xalloc(begin + length + 1);
    memcpy(text, start, begin);
    memset(text + begin, '-', length);
    text[begin + length] = '\0';
    return text;
}

char *warm_room_for_arguments(void)
{
    return make_room_text("", ARGUMENTS_ROOM);
}

char *warm_room_for_variables(void)
{
    return make_room_text(ROOM_VARIABLE, VARIABLES_ROOM);
}

static void compose_breeder(const struct warm_config *config, const struct warm_key *key, const char *cgroup,
                            struct text *launch)
{
    autofree char *count = xprintf("%zu", key->ranks);
    autofree char *arguments_room = warm_room_for_arguments();
    autofree char *variables_room = warm_room_for_variables();
    const char *const arguments[] = {key->python, "-c",  WARM_BOOT,       config->folder,
                                     "",          count, config->imports, arguments_room};
    launch_put(launch, "epoch", "0");
    launch_put(launch, "logs", "/");
    launch_put(launch, "cwd", "/");
    launch_put_int(launch, "uid", key->uid);
    launch_put_int(launch, "gid", key->gid);
    launch_put_int(launch, "seccomp", config->seccomp);
    for (size_t i = 0; i < key->group_count; i++) {
        launch_put_int(launch, "group", key->groups[i]);
    }
    if (cgroup != NULL) {
        launch_put(launch, "cgroup", cgroup);
    }
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        launch_put(launch, "arg", arguments[i]);
    }
    for (size_t i = 0; i < key->variable_count; i++) {
        launch_put(launch, "env", key->variables[i]);
    }
    launch_put(launch, "env", variables_room);
    launch_put(launch, "rank", "0");
}

bool warm_breeder_write(const struct warm_config *config, const struct warm_key *key, const char *cgroup,
                        struct err *err)
{
    autotext struct text launch = {0};
    autofree char *path = xprintf("%s/" SHIM_LAUNCH_FILE, config->launch);
    compose_breeder(config, key, cgroup, &launch);
    return file_make_directories(config->launch, 0700, err) &&
           file_replace(path, launch.bytes, launch.length, 0600, err);
}
