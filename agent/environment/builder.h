/* SPDX-License-Identifier: Apache-2.0 */
/* Builds environments: a few at once, each once for all who want it. */
#ifndef AGENT_BUILDER_H
#define AGENT_BUILDER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/children.h"
#include "agent/environment/environments.h"

/* How a build ended. */
enum build_end {
    BUILD_READY,
    BUILD_REFUSED, /* the requirements are wrong on any node */
    BUILD_UNABLE,  /* this node cannot build it, now or later */
    BUILD_FAILED,  /* this time; another try may succeed */
};

struct builder;
struct build; /* one environment */

/* What holds builds together, and apart from the rest of the node. */
struct build_hold {
    /* Executes builders: PROGRAM OPTION CGROUP SECCOMP, then their words; "-" is no cgroup. NULL: they are
     * executed as they are. */
    const char *program, *option;
    bool seccomp; /* they are refused some system calls */
    /* Makes the cgroup of a build; number is below LIMIT_BUILDS, and no other build has it meanwhile.
     * *ret_path: NULL if there is none; the caller frees it. */
    bool (*begin)(void *closure, size_t number, char **ret_path, struct err *err);
    /* Kills what is in it. True if the build took more memory than it may. */
    bool (*end)(void *closure, const char *path);
    void *closure;
};

struct builder_config {
    const char *script; /* path of gpuctl_environment.py; copied */
    struct children *children;
    struct environments *environments;
    uid_t
        build_ids; /* the first of USERS_OF_BUILDS numbers for users that run pip; 0: the agent's user does */
    struct build_hold hold;
    /* One line of progress; NULL: it goes on without news. */
    void (*told)(void *closure, const struct build *build, const char *text);
    /* Called once, before the build is freed, and never from within build_start. text says why there is no
     * environment. */
    void (*done)(void *closure, const struct build *build, enum build_end end, const char *text);
    void *closure;
};

/* The agent's variables that programs get which reach the network for jobs. The caller frees the array, not
 * the strings. */
const char **builder_variables(void);

struct builder *builder_create(const struct builder_config *config);
/* All builds must have ended before. */
void builder_destroy(struct builder *builder);

/* The agent's variables that programs get which fetch something. The caller frees the array, not the strings.
 */
const char **builder_variables(void);

/* Starts the build of an environment, or returns the one that is under way. It takes over requirements, the
 * descriptor of their text. NULL with an error if the node has no such Python. */
struct build *build_start(struct builder *builder, const struct environment_need *need, int requirements,
                          struct err *err);
/* Whether it waits for other builds. */
bool build_waits(const struct build *build);
/* Stops a build that nobody wants any more, without a call of done. */
void build_stop(struct build *build);

#endif
