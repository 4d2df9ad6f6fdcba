/* SPDX-License-Identifier: Apache-2.0 */
/* What this node gets ready for jobs to come, as the controller orders, and the reports of it. */
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

/* All is borrowed. stranger is called when the controller does not know this node. */
struct stagings_config {
    const char *node, *boot_id;
    struct loop *loop;
    struct controller_client *controller;
    struct payloads *payloads;
    struct environments *environments;
    struct builder *builder;
    void (*stranger)(void *closure);
    void *closure;
};

struct stagings *stagings_create(const struct stagings_config *config);
/* Stops what goes on. */
void stagings_destroy(struct stagings *stagings);

/* The whole desired state: what is new is begun, what is not in it is stopped, and what had ended and was
 * told before sent_ms (CLOCK_BOOTTIME, when the controller was asked) is begun anew. */
void stagings_set(struct stagings *stagings, const struct staging *desired, size_t count, int64_t sent_ms);

#endif
