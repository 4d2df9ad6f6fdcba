/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cluster for tests: a core, the rows that a store would hold, a clock that only the test moves,
 * and one call for each thing that can happen. Every call checks all invariants. */
#ifndef TRACE_CLUSTER_H
#define TRACE_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "tests/trace/harness/rows.h"

struct cluster {
    bool sees_all; /* who asks cluster_ask */
    struct core *core;
    struct rows *rows;
    struct text trace;
    uint32_t incarnation;
    enum policy policy;
    int64_t pass_work; /* of struct core_config */
    int64_t now_ms, wall_ms;
    struct step step; /* the last one, until the next */
    int64_t inputs;   /* steps so far */
    bool large;       /* global invariants are not checked after each step, only where the test says so */
    bool late;        /* lazy changes reach the rows with the next that are not */
    struct step *waiting;
    size_t waiting_count;
};

/* A controller without nodes that has just started, at time 0; its policy is fifo where none is given. */
struct cluster *cluster_open(void);
struct cluster *cluster_open_with(enum policy policy);
/* Its scheduling passes do at most so much work: struct core_config. */
struct cluster *cluster_open_slow(enum policy policy, int64_t pass_work);
void cluster_close(struct cluster *cluster);
/* Ends the controller and starts another from the rows; changes that are late are lost. */
void cluster_restart(struct cluster *cluster);

static inline void cleanup_cluster(struct cluster **cluster)
{
    cluster_close(*cluster);
}
#define autocluster __attribute__((cleanup(cleanup_cluster)))

/* --- what happens: each returns ERR_NONE or why the core refused ---------------------------------------- */

enum err_code cluster_step(struct cluster *cluster, const struct input *input);

/* Fields that are left out get the value named here. */
struct node_ask {
    const char *name;
    const char *type;         /* "A10" */
    int64_t gpus;             /* 1; -1: none */
    int64_t cpus, memory_gib; /* 0: its agent does not say */
    const char *pool;         /* NULL */
    bool reserved;
    const char *host;    /* the node's own name */
    const char *boot;    /* "boot-1" */
    const char *agent;   /* NULL: its agent has no id */
    const char *address; /* "10.0.0.1" */
    const char *labels;  /* "zone=a disk=ssd"; NULL: none */
    const char *groups;  /* of its devices, a digit each: "0011"; NULL: unknown */
    const char *broken;  /* reason why its device 0 cannot be had; NULL: it can */
    struct node_attempt *attempts;
    size_t attempt_count;
    int64_t expires_ms;     /* on the cluster's clock; 0: never */
    struct device *devices; /* instead of gpus, type and groups */
    size_t device_count;
    const uint64_t *nonce; /* NULL: its agent knows of none, and is believed at once */
};
enum err_code cluster_register(struct cluster *cluster, const struct node_ask *ask);
#define node(cluster, ...) cluster_register(cluster, &(struct node_ask){.name = __VA_ARGS__})

struct job_ask {
    const char *id;
    int64_t gpus;                  /* 1; -1: none */
    int64_t millicpus, memory_gib; /* in all; 0: what belongs to its GPUs */
    const char *type;              /* NULL: any */
    const char *pool;              /* NULL */
    enum use_reserved reserved;
    const char *local;     /* NULL: remote=true; else remote=false on this host */
    bool by_node;          /* launch_mode = node */
    bool function;         /* not a command */
    int64_t time_limit_ms; /* 0: none */
    struct job_early_signal early;
    int64_t keep_ms;
    int64_t lease_ms; /* 60000 */
    enum on_disconnect on_disconnect;
    int64_t retries;       /* 0 */
    int64_t infra_retries; /* 3; -1: none */
    const char *project;   /* NULL: default */
    const char *owner;     /* "alice" */
    int64_t priority;      /* 0 */
    const char *name;
    const char *after;       /* "aaaa:after bbbb:afterok"; NULL: nothing */
    bool stale;              /* those were seen running when the submission was read */
    bool hold;               /* kept back from the start */
    const char *environment; /* key of what it needs on its nodes: "code", "code data image"; NULL: nothing */
    const char *terms;       /* as proto/spec/jobspec_place.h makes them: "zone=a,b avoid:n1"; NULL: none */
    bool spread;             /* placement */
    int64_t nodes;           /* exactly so many; 0: any number */
    int64_t tasks;           /* 0: it is no array */
    int64_t parallel;        /* 0: any number */
    int64_t not_before_ms;   /* wall clock; 0: it may begin at once */
    const char *only;        /* of the tasks: "3,7-9"; NULL: all */
    const char *goes_on;     /* from the checkpoint of that job; NULL: of none */
};
enum err_code cluster_submit(struct cluster *cluster, const struct job_ask *ask);
#define submit(cluster, ...) cluster_submit(cluster, &(struct job_ask){.id = __VA_ARGS__})

enum err_code cancel(struct cluster *cluster, const char *id);
/* Of a job that has ended, or of one that was never there. */
enum err_code remove_job(struct cluster *cluster, const char *id);
enum err_code preempt(struct cluster *cluster, const char *id);
enum err_code hold(struct cluster *cluster, const char *id);
enum err_code release(struct cluster *cluster, const char *id);
enum err_code change_priority(struct cluster *cluster, const char *id, int64_t priority);
enum err_code change_limit(struct cluster *cluster, const char *id, int64_t time_limit_ms);
/* The priority, if the job's newest event is still this one. */
enum err_code change_if(struct cluster *cluster, const char *id, int64_t seq, int64_t priority);
enum err_code heartbeat(struct cluster *cluster, const char *name);
/* The same, saying of all devices but this one that they can be had; reason NULL: of this one, too. */
enum err_code heartbeat_broken(struct cluster *cluster, const char *name, int64_t index, const char *reason);
enum err_code drain(struct cluster *cluster, const char *name);
enum err_code resume(struct cluster *cluster, const char *name);
enum err_code fence(struct cluster *cluster, const char *name);
enum err_code remove_node(struct cluster *cluster, const char *name, bool force);
/* As retention does with one that was not heard since then, wall clock. */
enum err_code forget_node(struct cluster *cluster, const char *name, int64_t heard_ms);

/* As the agent of a node does that is about to end. */
enum err_code leave_node(struct cluster *cluster, const char *name, bool stop, bool forget);
/* The same of an idle one, as an agent of that boot. */
enum err_code leave_as(struct cluster *cluster, const char *name, const char *boot_id);

/* Questions: the answer is in step.answer, and nothing has changed. */
enum err_code cluster_ask(struct cluster *cluster, enum ask_kind kind, const char *id);
enum err_code cluster_plan(struct cluster *cluster, const struct job_ask *ask);
#define plan(cluster, ...) cluster_plan(cluster, &(struct job_ask){__VA_ARGS__})

/* Sets the limits of an account, as JSON; NULL takes them away. */
enum err_code limit(struct cluster *cluster, enum account_kind kind, const char *name, const char *json);
/* The same, with force. */
enum err_code limit_forced(struct cluster *cluster, enum account_kind kind, const char *name,
                           const char *json);
/* What the core says of an account, until the next step; NULL: it knows none. viewer NULL: an admin asks. */
const char *account_text(struct cluster *cluster, enum account_kind kind, const char *name,
                         const char *viewer);

/* A maintenance window, its times on the cluster's clock. */
struct window_ask {
    const char *id;
    const char *nodes; /* "a,b"; NULL and pool NULL: all */
    const char *pool;
    int64_t from_ms, until_ms;
    bool hard;
    const char *reason;
};
enum err_code cluster_window(struct cluster *cluster, const struct window_ask *ask);
#define window(cluster, ...) cluster_window(cluster, &(struct window_ask){.id = __VA_ARGS__})
enum err_code remove_window(struct cluster *cluster, const char *id);
/* On the cluster's clock; 0: never. */
enum err_code expire(struct cluster *cluster, const char *name, int64_t at_ms);

/* Moves the clock; to the time of each TICK that becomes due in between. */
void advance(struct cluster *cluster, int64_t ms);
/* The same, while these nodes ("a b c") send heartbeats every five seconds. */
void advance_beating(struct cluster *cluster, int64_t ms, const char *names);

/* Reports of a node about the newest attempt of a job. */
enum err_code prepared(struct cluster *cluster, const char *id, const char *name);
enum err_code running(struct cluster *cluster, const char *id, const char *name);
enum err_code declined(struct cluster *cluster, const char *id, const char *name);
enum err_code failed(struct cluster *cluster, const char *id, const char *name, int64_t rank, int64_t code);
/* All its ranks ended with this code, 0 or not; all log bytes are there. */
enum err_code exited(struct cluster *cluster, const char *id, const char *name, int64_t code);
/* All its ranks ended with 0, and this many of them, the first ones, left a value. */
enum err_code returned(struct cluster *cluster, const char *id, const char *name, size_t values);
/* The same, killed by us. */
enum err_code stopped(struct cluster *cluster, const char *id, const char *name);
/* A node answers that it is ready for a need, or why it is not. */
enum err_code staged(struct cluster *cluster, const char *environment, const char *name);
enum err_code unstaged(struct cluster *cluster, const char *environment, const char *name, const char *text);
/* The same, whatever the node. */
enum err_code refused(struct cluster *cluster, const char *environment, const char *name, const char *text);
/* The same, for as long as its agent lives. */
enum err_code unable(struct cluster *cluster, const char *environment, const char *name, const char *text);
enum err_code cluster_staging(struct cluster *cluster, const char *name,
                              const struct staging_message *message);

/* The whole report, for whatever the others cannot say; node, boot_id and attempt id are filled in when they
 * are missing. */
enum err_code cluster_report(struct cluster *cluster, const char *id, const char *name,
                             const struct report_message *report);

/* --- what came of it ------------------------------------------------------------------------------------ */

/* The trace since the last call is exactly this. */
void expect(struct cluster *cluster, const char *trace);
/* Forgets the trace so far. */
void quiet(struct cluster *cluster);
/* The orders of a node, one a line: "stage KEY", "run aaaa/1 rank 0-1 of 2 on 0,1". */
void expect_orders(struct cluster *cluster, const char *name, const char *orders);
void expect_job(struct cluster *cluster, const char *id, enum job_state state);
void expect_ended(struct cluster *cluster, const char *id, enum job_state state, int64_t exit_code,
                  const char *reason);
void expect_history(struct cluster *cluster, const char *id, const char *history);
/* The last refusal names this field. */
void expect_field(struct cluster *cluster, const char *field);

/* All orders of all nodes but stagings, without versions. */
void cluster_orders_text(const struct cluster *cluster, struct text *out);

#endif
