/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt on this node: its folders, its shim, its reported state, its logs. stage.c brings it up to its
 * shim, shim_client.c talks with the shim, reports.c reports to the controller, attempt.c does the rest. */
#ifndef AGENT_ATTEMPT_H
#define AGENT_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/launch/cgroup.h"
#include "agent/launch/node_size.h"
#include "agent/base/children.h"
#include "agent/base/config.h"
#include "agent/devices/devices.h"
#include "agent/reconciler/reconciler.h"
#include "agent/environment/environments.h"
#include "agent/environment/inputs.h"
#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/output/checkpoint.h"
#include "agent/output/output.h"
#include "agent/environment/payload.h"
#include "agent/output/record.h"
#include "agent/attempt/restore.h"
#include "agent/output/results.h"
#include "agent/attempt/sampler.h"
#include "agent/attempt/seen.h"
#include "agent/launch/shims.h"
#include "agent/base/folder_pool.h"
#include "agent/environment/stagings.h"
#include "agent/output/uploads.h"
#include "agent/launch/users.h"
#include "agent/environment/volumes.h"
#include "agent/launch/warm.h"
#include "agent/attempt/secrets.h"
#include "proto/spec/jobspec.h"

/* The context that all attempts of a node share. */
struct agent_context {
    struct config config;
    char boot_id[37];
    char agent_id[ID_LENGTH + 1]; /* of the state folder */
    char address[ADDRESS_BYTES];  /* the address at which ranks on other nodes reach this node */
    struct loop *loop;
    struct controller_client *controller;
    struct object_client *objects;
    struct shims *shims;
    struct warm *warm;
    struct volumes *volumes;
    struct inputs *inputs;
    struct users *users; /* NULL: ranks run as the agent's user */
    struct devices devices;
    struct cgroup_root cgroups;
    struct node_size size; /* what jobs may have of this node */
    struct payloads *payloads;
    struct children *children;
    struct environments *environments;
    struct stagings *stagings;
    struct uploads *uploads;
    struct seen *seen;
    struct trash *trash;
    struct folder_pool *folder_pool;
    struct outputs *outputs;
    struct checkpoints *checkpoints;
    struct journal *journal;
    char *runner;      /* folder of gpuctl_runner.py */
    char *builder;     /* path of gpuctl_environment.py */
    char *images;      /* folder of container images; NULL: this node runs no jobs in them */
    int64_t log_limit; /* bytes of one stream, as the controller wants it; 0: not known yet */
    int64_t heard_us;  /* CLOCK_BOOTTIME: when the answer to the last poll arrived */
    int64_t hurry_ms;  /* CLOCK_BOOTTIME: until then the agent prepares nothing in advance, because ranks are
                          starting */
    void (*heard)(void *closure, uint64_t attempt_id, enum reconciler_news news);
    /* Another attempt whose processes may still use one of the devices; NULL: none. */
    struct attempt *(*holder)(void *closure, uint64_t attempt_id, const int64_t *devices, size_t count);
    /* The devices that no job can get. Its strings are borrowed until the loop goes on; the caller frees the
     * items. */
    struct device_faults (*faults)(void *closure);
    void *closure;
};

enum phase {
    PHASE_STAGING, /* its folders are being filled; it has no shim yet */
    PHASE_LEASE,   /* as STAGING, but its lease has ended: the next heartbeat renews the lease */
    PHASE_SHIM,    /* a shim has it */
    PHASE_ORPHANS, /* its shim is gone and left no record; its processes are being killed */
    PHASE_OVER,    /* declined, or no process of it lives */
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

    /* The order, and its preparation; stage.c. */
    struct order order; /* its json, spec and devices are owned */
    bool ordered;       /* false: the attempt was adopted, and no order has come yet */
    struct attempt_secrets secrets;
    struct job_spec spec;
    struct user user; /* that its ranks run as; name NULL: the agent's */
    struct fill *fills;
    size_t fill_count, fills_waiting;
    struct restore *restore;        /* of its checkpoint, while it is being fetched */
    struct child *checkpoint_maker; /* the process that makes its folder on a volume */
    struct payload_order *bundle;   /* the bundle while it is being fetched */
    struct child *unpacker;         /* the process that unpacks the bundle */
    bool unpacked_special;          /* the bundle contains a device or a pipe */
    char *environment;              /* folder of the job's environment; NULL: none */
    char *image_root;               /* folder of the files of the job's image; NULL: none */
    char *image_lock;               /* path of its lock */
    json_t *image_config;           /* of OCI */
    json_t *image_variables;        /* that its GPUs need */
    int environment_lock;           /* shared lock on the environment or the image; -1: none */
    struct input_use inputs[LIMIT_JOB_INPUTS];
    size_t input_count;
    int64_t term_ms, kill_ms; /* lease; 0: none */
    char *cgroup;             /* NULL: none */
    int64_t *devices;
    size_t device_count;
    bool holds_port;
    bool python;    /* its command is a Python */
    char *cold_why; /* why its shim has no warm workers; NULL: it has workers, or needs none */
    char warm_kind[HASH_HEX + 1];

    /* The shim; shim_client.c. */
    struct shim_process shim;
    struct loop_watch talk, death;

    /* The shim's reports. */
    int64_t port;
    int64_t running_ms;             /* wall clock */
    char *how;                      /* how its ranks were started, for people; owned, or NULL */
    pid_t pids[LIMIT_SAMPLE_RANKS]; /* of its first ranks here, in order, where there are several */
    size_t pid_count;
    struct rank_exit failed;
    enum cause failed_cause;
    char *failed_text;
    char *declined;
    struct record record;

    /* Moments in CLOCK_BOOTTIME; 0: not known. The shim's own moments are more exact and come with the exit
     * record. */
    int64_t received_us, told_us; /* PREPARE or RUN arrived; START arrived */
    int64_t prepared_us, running_us;
    bool adopted; /* the shim's messages may repeat old events */

    struct loop_timer tell_running; /* when the reconciler hears that the ranks run */
    struct sampler sampler;         /* of what its processes use */

    struct output *output;             /* NULL: no logs */
    struct results *results;           /* NULL: nothing to collect */
    struct checkpoint *checkpoint;     /* NULL: it has no folder for them yet */
    bool saved;                        /* nothing more of the checkpoint is to come */
    struct controller_request *report; /* the request that is under way */
    bool tails_flushed;                /* the last exit report carried the rest of the logs */
    bool draining;                     /* the exit was reported; the last log bytes follow it */
    struct loop_timer timer;           /* of a stop, of ORPHANS, and of the wait for the GPUs */
    int64_t orphans_pace_ms;
    int64_t clear_since_us; /* it waits for a look at its GPUs after this moment that finds them empty; 0: it
                               does not wait yet */
    bool cleared;           /* its GPUs are no longer its own */
};

/* --- attempt.c */

/* Creates the attempt with this id; nothing is done yet. Calls below report through context->heard, perhaps
 * before they return. */
struct attempt *attempt_create(struct agent_context *context, uint64_t attempt_id);
void attempt_claim(struct attempt *attempt, const struct reconciler_action *action);
void attempt_tombstone(struct attempt *attempt, const struct reconciler_action *action);
/* For an attempt whose folders were found at the start of the agent. */
void attempt_adopt(struct attempt *attempt);
/* Frees the memory; processes live on. */
void attempt_destroy(struct attempt *attempt);

/* Takes the newest order of an attempt that is known already. */
void attempt_order(struct attempt *attempt, const struct order *order);
/* Sends the signal to its ranks, once in the life of the attempt. */
void attempt_warn(struct attempt *attempt, enum early_signal signal);
/* Ends its ranks, because one of the gang failed, and keeps all else until it is stopped. */
void attempt_keep(struct attempt *attempt);
/* signal: sent to its ranks before TERM; EARLY_NONE: TERM comes at once. */
void attempt_stop(struct attempt *attempt, int64_t grace_ms, enum cause cause, enum early_signal signal);
void attempt_lease(struct attempt *attempt, int64_t term_ms, int64_t kill_ms);
/* Kills its shim, and with it its processes. */
void attempt_kill(struct attempt *attempt);
/* Waits until its GPUs are seen empty, at most GPU_CLEAR_MS. */
void attempt_clear(struct attempt *attempt);
/* To be called after a look at a GPU of the node. */
void attempt_looked(struct attempt *attempt);
/* Whether a GPU may still have processes of this attempt. */
bool attempt_holds(const struct attempt *attempt, int64_t device);
/* Cleans up on disk and destroys the attempt. */
void attempt_forget(struct attempt *attempt);

/* The number of its first rank here in file names; with launch_mode=node it is the node rank. */
int64_t attempt_first_rank(const struct attempt *attempt);
int64_t attempt_rank_count(const struct attempt *attempt);

/* For the other files: ends the attempt on this node, with a reason. */
void attempt_decline(struct attempt *attempt, const char *text);
void attempt_over(struct attempt *attempt, enum cause cause, const char *text);
void attempt_make_output(struct attempt *attempt, bool resume);
/* For an attempt without processes whose exit record was read: reports the exit once its results are
 * collected. */
void attempt_exited(struct attempt *attempt);
/* For an attempt whose shim is gone: reads the exit record, or else kills the orphans. */
void attempt_salvage(struct attempt *attempt);

/* --- stage.c: from the order to the shim. */
void stage_begin(struct attempt *attempt);
void stage_cancel(struct attempt *attempt);
/* Goes on when it has its checkpoint: its bundle and its files come next. */
void stage_content(struct attempt *attempt);
/* Continues after the lease was renewed. */
void stage_go_on(struct attempt *attempt);
/* The user that its ranks run as; NULL: the agent's. */
const struct user *stage_user(const struct attempt *attempt);
/* Appends that user's variables, NAME=VALUE, which the caller frees; returns how many. */
#define STAGE_USER_VARIABLES 5
size_t stage_put_user(const struct attempt *attempt, const struct user *user, char **variables);

/* --- stage_checkpoint.c: lays the checkpoint out, or makes the folder on a volume; then calls stage_content.
 */
void stage_checkpoint(struct attempt *attempt);

/* --- stage_image.c: of a job in a container image. */

/* Locks the image if the job has one. */
bool stage_take_image(struct attempt *attempt, struct err *err);
bool stage_bundle_of_image(struct attempt *attempt, struct err *err);
/* The variables that ranks have unless the spec sets them. The caller frees them and the list. */
char **stage_image_variables(const struct attempt *attempt);

/* --- shim_client.c */

/* Starts to listen to attempt->shim. */
void shim_client_begin(struct attempt *attempt);
void shim_client_end(struct attempt *attempt);
/* Dismisses the shim when it is no longer needed. */
void shim_client_dismiss(struct attempt *attempt);
/* Reads the messages that the shim has sent; waits for the first one. */
void shim_client_catch_up(struct attempt *attempt, int64_t patience_ms);
/* Gives the attempt to its shim, with its lease and its first order. */
bool shim_client_assign(struct attempt *attempt, struct err *err);
void shim_client_prepare(struct attempt *attempt);
void shim_client_run(struct attempt *attempt);
void shim_client_start(struct attempt *attempt);

/* --- reports.c */

/* The body of a report, a new reference. */
json_t *report_make(struct attempt *attempt, enum report_kind kind);
/* Handles a report that the controller has taken; returns the meaning of its answer. */
enum reconciler_answer report_taken(struct attempt *attempt, enum report_kind kind);
/* Handles a report that the controller has refused for good. True when another report is due: one without
 * results, or one after the missing logs. */
bool report_refused(struct attempt *attempt, enum report_kind kind, const struct err *problem);
/* All logs that can be sent were sent. */
void report_idle(struct attempt *attempt);

#endif
