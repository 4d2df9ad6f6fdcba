/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares blobs, inputs and environments for later jobs, as the controller orders, and reports on it. */
#ifndef AGENT_STAGINGS_H
#define AGENT_STAGINGS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/environment/builder.h"
#include "agent/environment/environments.h"
#include "agent/environment/images.h"
#include "agent/environment/inputs.h"
#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/environment/payload.h"
#include "proto/wire/staging.h"

struct stagings;

/* All members are borrowed. stranger is called when the controller does not know this node. */
struct stagings_config {
    const char *node, *boot_id;
    struct loop *loop;
    struct controller_client *controller;
    struct payloads *payloads;
    struct environments *environments;
    struct children *children;
    const char *script;       /* path of gpuctl_environment.py */
    const char *image_folder; /* NULL: this node runs no jobs in images */
    int64_t image_limit_bytes;
    uid_t build_ids; /* of its builder */
    struct build_hold hold;
    struct inputs_config inputs; /* told and done are the stagings' */
    void (*stranger)(void *closure);
    void *closure;
};

struct stagings *stagings_create(const struct stagings_config *config, struct err *err);
/* Stops all stagings. */
void stagings_destroy(struct stagings *stagings);

/* The inputs of this node, which live as long as the stagings. */
struct inputs *stagings_inputs(const struct stagings *stagings);
/* The images of the node; NULL: it runs no jobs in them. */
const struct images *stagings_images(const struct stagings *stagings);
/* Deletes a piece of inputs and images that have gone; true while there is more. */
bool stagings_step(struct stagings *stagings);
/* Sets the whole desired state: starts new stagings and stops missing ones. A staging that had ended and was
 * reported before sent_ms (CLOCK_BOOTTIME, when the controller was asked) starts again. */
void stagings_set(struct stagings *stagings, const struct staging *desired, size_t count, int64_t sent_ms);

/* Whether the controller wants any, ended or not. */
bool stagings_are_wanted(const struct stagings *stagings);

#endif
