/* SPDX-License-Identifier: Apache-2.0 */
/* The core: all state that decisions depend on, and the one function that changes it. Pure: (state, input,
 * time) -> (state, row changes, orders, answer). It does no I/O, reads no clock, logs nothing and draws no
 * random numbers; time and random bytes come with the input. */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/explain/queue_snapshot.h"
#include "daemon/core/model/change.h"
#include "daemon/core/model/input.h"
#include "daemon/core/model/step.h"
#include "proto/limits.h"
#include "proto/spec/account_limits.h"
#include "proto/spec/jobspec.h"
#include "proto/wire/messages.h"

struct core;

struct core *core_create(const struct core_config *config);
void core_destroy(struct core *core);

/* --- loading -------------------------------------------------------------------------------------------- */
void core_load_history(struct core *core, const struct history_row *row);
/* limits are the decoded row->limits; only read. */
void core_load_limits(struct core *core, const struct limits_row *row, const struct account_limits *limits);
void core_load_usage(struct core *core, const struct usage_row *row);
void core_load_node(struct core *core, const struct node_row *row);
void core_load_window(struct core *core, const struct window_row *row);
void core_load_webhook(struct core *core, const struct webhook_row *row);
/* Deliveries that wait. Call it after all webhooks. */
void core_load_delivery(struct core *core, const struct delivery_row *row);

/* Arrays, which are jobs, come before their tasks; spec and environment of a task are those of its array.
 * spec and environment are only read; environment NULL: none. user_failures etc. come from life. */
void core_load_job(struct core *core, const struct job_birth *birth, const struct job_life *life,
                   const struct job_spec *spec, const struct environment_spec *environment);
/* Call it after all jobs. */
void core_load_array(struct core *core, const struct array_row *row);
/* Call these after all jobs, with all rows of a job. */
void core_load_dependency(struct core *core, const struct dependency_row *row);
void core_load_attempt(struct core *core, const struct attempt_row *row);
void core_load_member(struct core *core, const struct member_row *row);

/* --- steps ---------------------------------------------------------------------------------------------- */

/* Processes one input. now_ms is CLOCK_BOOTTIME. Always fills *ret_step; step_finish frees it. */
void core_step(struct core *core, const struct input *input, int64_t now_ms, struct step *ret_step);

/* Notes that all steps so far are on disk, at at_us, CLOCK_BOOTTIME. Calls ended for each attempt whose end
 * became durable, with the microseconds since its submission was received. */
void core_committed(struct core *core, int64_t at_us,
                    void (*ended)(void *closure, uint64_t attempt_id, int64_t visible_us), void *closure);

/* The earliest time at which a TICK has something to do; INT64_MAX: never. */
int64_t core_deadline(const struct core *core);

/* --- orders: the whole desired state of one node, derived from the state -------------------------------- */

struct node_order {
    struct order order;               /* spec is NULL: the sender reads the spec of spec_key */
    int64_t spec_key;                 /* of the job; of a task, that of its array */
    uint64_t version;                 /* version of its last change: polls with an older version get it */
    int64_t *devices;                 /* owned: order.devices points here */
    char job_id[17];                  /* order.job_id points here */
    char owner[LIMIT_NAME_BYTES + 1]; /* order.owner points here */
    char array_id[17];                /* order.array_id points here if the job is a task */
    char *master_address;             /* owned, or NULL */
    char *addresses;                  /* owned, or NULL */
};

/* An environment that a node must stage. */
struct node_staging {
    char *key, *text; /* owned */
};

struct node_orders {
    char *node;
    char *boot_id, *agent_id;
    uint64_t version; /* incarnation << 32 | counter */
    struct node_order *items;
    size_t count;
    struct node_staging *stagings;
    size_t staging_count;
};

/* A copy of the node's orders; NULL: unknown node. The caller destroys it, on any thread. */
struct node_orders *core_orders(const struct core *core, const char *node);
void node_orders_destroy(struct node_orders *orders);

/* Calls visit for every node, by name. */
void core_each_node(const struct core *core, void (*visit)(const char *name, void *closure), void *closure);

/* Whether so many nodes are silent at once that the controller itself is likely the cause: while this lasts,
 * no lease expires. The counts include all nodes that are not LOST. */
struct silence {
    size_t silent_count, known_count;
    bool braked;
};
struct silence core_silence(const struct core *core);

/* What the core has, and what it has done since it was created. */
struct core_figures {
    size_t jobs[JOB_STATE_COUNT]; /* live ones; of the states in which a job ends, those that have ended */
    size_t nodes[NODE_STATE_COUNT];
    size_t silent_count;  /* of the nodes that are not LOST */
    size_t attempt_count; /* live ones */
    size_t submit_count;  /* jobs that were taken */
    size_t window_count, pool_count, type_count;
    size_t limited_count; /* accounts with limits */
    size_t webhook_count, pending_deliveries;
    size_t delivery_stamp; /* changes when a delivery may have become due */
};
struct core_figures core_figures(const struct core *core);
/* Scheduling passes so far. */
size_t core_pass_count(const struct core *core);

/* The number of live jobs: an embedded controller ends when there are none for long. */
size_t core_live_jobs(const struct core *core);

/* --- for tests: the trace ------------------------------------------------------------------------------- */

/* From now on each decision appends a line to *trace; NULL stops it. */
struct text;
void core_trace(struct core *core, struct text *trace);

/* Aborts with a message on stderr if a global invariant does not hold. Local invariants are asserted after
 * every step anyway. */
void core_check(struct core *core);

#endif
