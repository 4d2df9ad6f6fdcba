/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of jobs: data that this node fetches once, keeps while there is room, and shows to ranks for
 * reading. */
#ifndef AGENT_INPUTS_H
#define AGENT_INPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/base/children.h"
#include "agent/environment/builder.h"
#include "agent/environment/volumes.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"

struct inputs;
struct input_fetch; /* of one input, for all who want it */

/* All members are borrowed. */
struct inputs_config {
    const char *folder; /* made if it does not exist */
    int64_t limit_bytes;
    const char *networks;                 /* beyond public ones, that inputs may come from; or NULL */
    const char *s3_endpoint, *s3_region;  /* the former may be NULL: Amazon's */
    bool plain_http;                      /* http is allowed */
    bool mounts;                          /* the shims have mount namespaces of their own */
    bool seccomp;                         /* fetchers are refused some system calls */
    const char *confine, *confine_option; /* program that does so (builder.h) */
    uid_t uid;                            /* of fetchers; 0: the agent's */
    struct children *children;
    const struct volumes *volumes;
    /* One line of progress. */
    void (*told)(void *closure, const struct input_fetch *fetch, const char *text);
    /* Called once, before the fetch is freed, and never from within input_fetch_begin. text says why there is
     * no input. */
    void (*done)(void *closure, const struct input_fetch *fetch, enum build_end end, const char *text);
    void *closure;
};

struct inputs *inputs_create(const struct inputs_config *config, struct err *err);
/* All fetches must have ended before. */
void inputs_destroy(struct inputs *inputs);

/* What a job asks for. Equal needs of other owners are other inputs where they name secrets. */
struct input_need {
    const char *url;
    const char *sha256;                  /* or NULL */
    const char *secret;                  /* or NULL: then owner and project do not count */
    const char *owner, *project, *value; /* value: of the secret, in base64; not needed for input_use */
};

/* Looks whether the input is here in its newest version, and fetches it if not; returns the fetch that is
 * under way already. NULL with an error if it cannot begin. */
struct input_fetch *input_fetch_begin(struct inputs *inputs, const struct input_need *need, struct err *err);
/* Ends one that nobody wants any more, without a call of done. */
void input_fetch_stop(struct input_fetch *fetch);

/* An input that a job uses. */
struct input_use {
    int lock;        /* keeps it in place until it is closed; -1: none */
    char *lock_path; /* owned, as are the next */
    char *data;      /* folder */
    char *entry;     /* name of the file in it; NULL: the folder is the input */
};

/* Takes the version that was fetched last; false: there is none. */
bool input_use_begin(const struct inputs *inputs, const struct input_need *need, struct input_use *ret_use);
void input_use_finish(struct input_use *use);

/* Whether the node can show a job its inputs where it wants them. ERR_FIELD if not. An image may have
 * anything there. */
bool inputs_check_job(const struct inputs *inputs, const struct job_spec *spec, struct err *err);
/* Appends what the shim is to mount and to lock, and the variable of the ranks, to a launch file. The bundle
 * of an image has the mounts itself. */
void input_write(const struct inputs *inputs, const struct job_input *input, const struct input_use *use,
                 bool in_image, struct text *launch);

/* Deletes a piece of inputs that have gone; true while there is more. */
bool inputs_step(struct inputs *inputs);

#endif
