/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of this node: folders that its operator names, and that jobs ask for. */
#ifndef AGENT_VOLUMES_H
#define AGENT_VOLUMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/base/children.h"
#include "agent/base/loop.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"

struct volumes;

struct volumes_config {
    const char *const *given; /* as node_volume_take takes them; borrowed */
    size_t count;
    bool mounts; /* the shims have mount namespaces of their own */
    struct loop *loop;
    struct children *children;
    void (*changed)(void *closure); /* a folder is there again, or not any more */
    void *closure;
};

/* All are taken for there until the first look, which comes at once. */
struct volumes *volumes_create(const struct volumes_config *config);
void volumes_destroy(struct volumes *volumes);

/* Sets the labels of the volumes that are there, and removes those of others. */
void volumes_label(const struct volumes *volumes, json_t *labels);

/* Whether the node can give a job its volumes now. ERR_FIELD if no node like this ever will, because of the
 * place where the job wants one; ERR_CONFLICT if one is not there. */
bool volumes_check_job(const struct volumes *volumes, const struct job_spec *spec, struct err *err);

/* A volume by its name; NULL: the node has none. */
const struct node_volume *volumes_find(const struct volumes *volumes, const char *name);
/* Where the volume of a URL (volume:NAME/PATH) is on this node; NULL: it is another URL, or not there.
 * Borrowed. */
const char *volumes_path(const struct volumes *volumes, const char *url);

/* The folder of the job's checkpoints as its ranks see it, of the name that job_spec_checkpoint_key gives;
 * NULL: it is not on a volume. The caller frees it. */
char *volumes_checkpoint_folder(const struct volumes *volumes, const struct job_spec *spec, const char *key);

/* Appends what the shim is to mount, and the variables of the ranks, to a launch file. */
void volumes_write(const struct volumes *volumes, const struct job_spec *spec, struct text *launch);

#endif
