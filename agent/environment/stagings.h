/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares blobs and environments for later jobs, as the controller orders, and reports on it. */
#ifndef AGENT_STAGINGS_H
#define AGENT_STAGINGS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/environment/builder.h"
#include "agent/environment/environments.h"
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
    const char *script; /* path of gpuctl_environment.py */
    uid_t build_ids;    /* of its builder */
    struct build_hold hold;
    void (*stranger)(void *closure);
    void *closure;
};

struct stagings *stagings_create(const struct stagings_config *config);
/* Stops all stagings. */
void stagings_destroy(struct stagings *stagings);

/* Sets the whole desired state: starts new stagings and stops missing ones. A staging that had ended and was
 * reported before sent_ms (CLOCK_BOOTTIME, when the controller was asked) starts again. */
void stagings_set(struct stagings *stagings, const struct staging *desired, size_t count, int64_t sent_ms);

#endif
