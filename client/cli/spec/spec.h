/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `submit` and `run`, and the job spec that they amount to. */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/spec/short_forms.h"
#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

struct spec_options {
    const char *job_file; /* NULL: everything is said by options */
    bool ignore_unsupported;
    int64_t gpus;                 /* NOT_GIVEN: not given */
    int64_t nodes, gpus_per_node; /* 0: not given */
    const char *cpus, *memory;    /* NULL: not given */
    const char *gpu_type, *pool;
    struct option_list constraints, avoid, exclude, notify, secrets, volumes, inputs;
    const char *checkpoint_volume; /* NULL: none */
    const char *placement;
    bool reserved, no_reserved;
    bool local;
    const char *launch_mode;
    struct option_list env, files, labels, after;
    const char *not_before; /* NULL: at once */
    bool hold;
    struct array_options array;
    const char *name, *project, *python;
    int64_t priority;                             /* SPEC_NO_PRIORITY: not given */
    int64_t time_ms, grace_ms, lease_ms, keep_ms; /* -1: not given */
    const char *early_signal;                     /* SIGNAL[@TIME], or NULL */
    int64_t retries, infra_retries;               /* -1: not given */
    const char *on_disconnect;
    const char *image, *worker_image, *image_secret;
    const char *workdir;
    const char *requirements, *python_version;
    const char *bundle;
    struct option_list python_paths;
    const char *key; /* Idempotency-Key; NULL: drawn */
};

#define SPEC_NO_PRIORITY INT64_MIN

/* The parts of a spec that come from the surroundings. */
struct spec_surroundings {
    const json_t *base;   /* the spec of a job file, which options win over; NULL: there is none */
    const char *here;     /* the current directory, where the nodes share it; NULL: they do not */
    const char *reserved; /* DATABRICKS_USE_RESERVED_GPU_POOL, or NULL */
    const char *host_id;
    bool one_job; /* arrays are refused */
};

/* The options; sent_as is the field of the spec that the value becomes. */
extern const struct option_row spec_rows[];

/* The spec without the files of options and without their requirements; only what was asked for is in it. New
 * reference; NULL with ERR_USAGE that names the option. Without a command the base must have one. */
json_t *spec_build(const struct spec_options *options, const struct spec_surroundings *around, char **command,
                   size_t count, struct err *err);

/* Adds the words between commas of a text to an array. */
void spec_add_words(json_t *array, const char *text);

/* Adds "zone=a,b" or "zone!=a" to the constraints of a spec. ERR_USAGE. */
bool spec_add_constraint(json_t *constraints, const char *item, struct err *err);

#endif
