/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt on this node: its folders, its shim, what was heard of it, its logs. stage.c brings it up to
 * its shim, shim_client.c talks with that, reports.c tells the controller of it; attempt.c has the rest. */
#ifndef AGENT_ATTEMPT_H
#define AGENT_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/attempt/cgroup.h"
#include "agent/base/children.h"
#include "agent/base/config.h"
#include "agent/devices/devices.h"
#include "agent/reconciler/reconciler.h"
#include "agent/environment/environments.h"
#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/output/output.h"
#include "agent/environment/payload.h"
#include "agent/output/record.h"
#include "agent/output/results.h"
#include "agent/attempt/sampler.h"
#include "agent/attempt/seen.h"
#include "agent/launch/shims.h"
#include "agent/base/folder_pool.h"
#include "agent/environment/stagings.h"
#include "agent/output/uploads.h"
#include "agent/launch/warm.h"
#include "proto/spec/jobspec.h"

/* What all attempts of a node share. */
struct agent_context {
    struct config config;
    char boot_id[37];
    char agent_id[ID_LENGTH + 1]; /* of the state folder */
    char address[ADDRESS_BYTES];  /* where ranks on other nodes reach this one */
    struct loop *loop;
    struct controller_client *controller;
    struct shims *shims;
    struct warm *warm;
    struct devices devices;
    struct cgroup_root cgroups;
    struct payloads *payloads;
    struct children *children;
    struct environments *environments;
    struct builder *builder;
    struct stagings *stagings;
    struct uploads *uploads;
    struct seen *seen;
    struct trash *trash;
    struct folder_pool *folder_pool;
    struct outputs *outputs;
    struct journal *journal;
    char *runner;      /* folder of gpuctl_runner.py */
    int64_t log_limit; /* bytes of one stream: what the controller takes, 0 before it has said */
    int64_t heard_us;  /* CLOCK_BOOTTIME: when the answer to the last poll was there */
    int64_t hurry_ms;  /* CLOCK_BOOTTIME until which nothing is made ready for later: ranks are starting */
    void (*heard)(void *closure, uint64_t attempt_id, enum reconciler_news news);
    /* The attempt, other than this one, whose processes may still be on one of the devices; NULL: none. */
    struct attempt *(*holder)(void *closure, uint64_t attempt_id, const int64_t *devices, size_t count);
    /* The devices that no job can get; what they borrow lasts until the loop goes on, items are the caller's.
     */
    struct device_faults (*faults)(void *closure);
    void *closure;
};

enum phase {
    PHASE_STAGING, /* its folders are being filled; it has no shim */
    PHASE_LEASE,   /* the same, and its lease has ended: the next heartbeat renews it */
    PHASE_SHIM,    /* a shim has it */
    PHASE_ORPHANS, /* its shim is gone and left no record: what it left behind is being killed */
    PHASE_OVER,    /* declined, or nothing of it lives */
};

/* A file that waits for its payload. */
struct fill {
    struct attempt *attempt;
    struct payload_order *order; /* NULL: done */
    int file;
};

struct attempt {
    struct agent_context *context;
    uint64_t attempt_id;
    enum phase phase;
    char *run, *logs; /* folders */

    /* What is asked for; stage.c. */
    struct order order; /* its strings and devices are ours */
    bool ordered;       /* false: the attempt was adopted, and no order has come yet */
    struct job_spec spec;
    struct fill *fills;
    size_t fill_count, fills_waiting;
    struct payload_order *bundle; /* the bundle that is being fetched */
    struct child *unpacker;       /* what lays it out */
    bool unpacked_special;        /* it has laid out a device or a pipe */
    char *environment;            /* folder of the job's environment; NULL: it has none */
    int environment_lock;         /* keeps it in its place; -1 */
    int64_t term_ms, kill_ms;     /* lease; 0: none */
    char *cgroup;                 /* NULL: none */
    int cgroup_version;
    int64_t *devices;
    size_t device_count;
    bool holds_port;
    bool python;    /* its command is one */
    char *cold_why; /* why its shim has no warm workers; NULL: it has, or needs none */
    char warm_kind[HASH_HEX + 1];

    /* The shim; shim_client.c. */
    struct shim_process shim;
    struct loop_watch talk, death;

    /* What it said. */
    int64_t port;
    int64_t running_ms; /* wall clock */
    char *how;          /* its ranks were started, for people; owned; or NULL */
    struct rank_exit failed;
    enum cause failed_cause;
    char *failed_text;
    char *declined;
    struct record record;

    /* When, CLOCK_BOOTTIME; 0: not known. The shim knows the moments better, and tells them when all is over.
     */
    int64_t received_us, told_us; /* PREPARE or RUN was there; START was */
    int64_t prepared_us, running_us;
    bool adopted; /* what its shim says was said before, perhaps long ago */

    struct sampler sampler; /* of what its processes use */

    struct output *output;             /* NULL: there are no logs */
    struct results *results;           /* NULL: there is nothing to collect */
    struct controller_request *report; /* the one that is out */
    bool tails_flushed;                /* the last exit report carried all that was left of the logs */
    bool draining;                     /* the exit was told; the last log bytes go after it */
    struct loop_timer timer;           /* of a stop, of REMAINS, and of waiting for the GPUs */
    int64_t orphans_pace_ms;
    int64_t clear_since_us; /* it waits for its GPUs to be seen empty by a look after this; 0: not yet */
    bool cleared;           /* what is on its GPUs is not of it any more */
};

/* --- attempt.c */

/* The attempt with this id; nothing is done yet. What comes of the calls below is heard, perhaps before they
 * return. */
struct attempt *attempt_create(struct agent_context *context, uint64_t attempt_id);
void attempt_claim(struct attempt *attempt, const struct reconciler_action *action);
void attempt_tombstone(struct attempt *attempt, const struct reconciler_action *action);
/* One whose folders were found at the start of the agent. */
void attempt_adopt(struct attempt *attempt);
/* Frees the memory; what lives, lives on. */
void attempt_destroy(struct attempt *attempt);

/* The newest order of an attempt that is known already. */
void attempt_order(struct attempt *attempt, const struct order *order);
/* Its ranks are to hear the signal, once in its life. */
void attempt_warn(struct attempt *attempt, enum early_signal signal);
/* signal: what its ranks hear before TERM; EARLY_NONE: TERM comes at once. */
void attempt_stop(struct attempt *attempt, int64_t grace_ms, enum cause cause, enum early_signal signal);
void attempt_lease(struct attempt *attempt, int64_t term_ms, int64_t kill_ms);
/* Ends what lives of it without the help of its shim. */
void attempt_kill(struct attempt *attempt);
/* Waits until its GPUs are empty. */
void attempt_clear(struct attempt *attempt);
/* A GPU of the node was looked at. */
void attempt_looked(struct attempt *attempt);
/* Whether what is on a GPU may be of this attempt. */
bool attempt_holds(const struct attempt *attempt, int64_t device);
/* Cleans up and destroys. */
void attempt_forget(struct attempt *attempt);

/* The first of its ranks here, as its files count them: the node rank with launch_mode=node. */
int64_t attempt_first_rank(const struct attempt *attempt);

/* For the other files: ends it here, and tells why. */
void attempt_decline(struct attempt *attempt, const char *text);
void attempt_over(struct attempt *attempt, enum cause cause, const char *text);
void attempt_make_output(struct attempt *attempt, bool resume);
/* No process of it is left, and its exit record was read: it is told once its results are collected. */
void attempt_exited(struct attempt *attempt);
/* Its shim is gone: there is a record of the exit, or its remains are killed. */
void attempt_salvage(struct attempt *attempt);

/* --- stage.c: from the order to the shim. */
void stage_begin(struct attempt *attempt);
void stage_cancel(struct attempt *attempt);
/* The lease was renewed. */
void stage_go_on(struct attempt *attempt);

/* --- shim_client.c */

/* Starts to listen to attempt->shim. */
void shim_client_begin(struct attempt *attempt);
void shim_client_end(struct attempt *attempt);
/* The shim is not needed any more. */
void shim_client_dismiss(struct attempt *attempt);
/* Reads what an adopted shim says at once; waits for it, but not long. */
void shim_client_catch_up(struct attempt *attempt);
void shim_client_prepare(struct attempt *attempt);
void shim_client_run(struct attempt *attempt);
void shim_client_start(struct attempt *attempt);

/* --- reports.c */

/* The body of a report. */
json_t *report_make(struct attempt *attempt, enum report_kind kind);
/* The controller has taken the report; how that is to be understood. */
enum reconciler_answer report_taken(struct attempt *attempt, enum report_kind kind);
/* The controller has refused the report for good; true when another one is due: without results, or after the
 * logs that it lacks. */
bool report_refused(struct attempt *attempt, enum report_kind kind, const struct err *problem);
/* All logs that can be sent were sent. */
void report_idle(struct attempt *attempt);

#endif
