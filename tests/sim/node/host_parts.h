/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of a simulated node alone. */
#ifndef SIM_HOST_PARTS_H
#define SIM_HOST_PARTS_H

#include "agent/reconciler/reconciler.h"
#include "tests/sim/node/host.h"

#define RANKS_MAX 16

/* The stages of a shim. */
enum shim_stage {
    SHIM_READY, /* it holds everything that the ranks need, and waits for the start */
    SHIM_RUNS,
    SHIM_STOPS, /* on the kill ladder */
    SHIM_KEPT,  /* its ranks are gone after a failure; all else stays until a stop */
    SHIM_OVER,  /* the exit record is written */
};

/* An attempt on this machine: folders, shim and ranks, known to an agent or not. */
struct piece {
    struct host *host;
    uint64_t attempt_id;
    char job_id[17];
    char manner[16]; /* the behaviour of its ranks: the job's name */
    bool function;
    bool keep; /* its job wants its nodes kept after a failure */
    int64_t node_rank, nodes, first_rank, local_ranks, world_size;
    int64_t devices[RANKS_MAX];
    size_t device_count;
    bool gang;

    /* On disk. */
    bool recorded;     /* the exit record exists: the next fields are valid */
    int64_t synced_ms; /* of the world: from then on a loss of power does not take the record */
    enum cause cause;
    struct rank_exit exits[RANKS_MAX];
    size_t exit_count;

    /* Processes. */
    bool shim;
    lifetime shim_life;
    enum shim_stage stage;
    bool live[RANKS_MAX];
    bool started, failed, stopping_by_order;
    bool keeps; /* KEPT follows when the ranks are gone */
    bool said_running;
    struct rank_exit first_failed;
    int64_t term_ms, kill_ms; /* of the lease, by the machine's clock; 0: none */

    /* The agent's state of the attempt. */
    bool laying;   /* it is being staged and has no shim yet */
    bool waiting;  /* staged, but the lease is over */
    lifetime laid; /* lifetime of the staging */
    enum order_phase asked;
    enum cause decline;
    bool flushed; /* all log bytes were sent */
    bool tails;   /* whether the exit report under way says so */
};

struct need_state {
    char *key;
    bool ready, busy;
};

struct host {
    struct sim *sim;
    size_t index;
    char name[32], boot_id[64];
    struct link_state link;
    const char *type;
    bool reserved, on;
    int64_t device_count, boots;
    lifetime power, agent;
    struct machine_clock clock;
    uint64_t *claimed; /* attempts claimed since the last reboot */
    size_t claimed_count;
    struct piece **pieces;
    size_t piece_count;
    struct piece **forgotten; /* freed at the end of the run */
    size_t forgotten_count;
    struct reconciler *reconciler; /* NULL: no agent runs */
    int64_t waits_ms, heartbeats;
    uint64_t polling; /* number of the pending call; 0: none */
    uint64_t nonce;   /* proves the identity of the agent's next register */
    struct need_state *needs;
    size_t need_count;
};

int64_t host_now(const struct host *host);
bool host_claim(struct host *host, uint64_t attempt_id);
void host_work(struct host *host);
void host_wake(struct host *host, int64_t in_ms);

/* --- pieces --------------------------------------------------------------------------------------------- */

struct piece *piece_find(const struct host *host, uint64_t attempt_id);
void piece_free(struct piece *piece);
void piece_claim(struct host *host, const struct reconciler_action *action);
void piece_tombstone(struct host *host, const struct reconciler_action *action);
void piece_tell_prepare(struct piece *piece);
void piece_tell_run(struct piece *piece);
void piece_tell_start(struct piece *piece);
void piece_tell_keep(struct piece *piece);
void piece_tell_stop(struct piece *piece, int64_t grace_ms, enum cause cause);
void piece_tell_lease(struct piece *piece, int64_t term_ms, int64_t kill_ms);
void piece_clear(struct piece *piece);
void piece_forget(struct piece *piece);
/* A new agent has found the attempt. */
void piece_adopt(struct piece *piece);
void piece_lose_agent(struct piece *piece);
void piece_lose_power(struct piece *piece);
void piece_kill_shim(struct piece *piece);
/* Reports an event of the attempt to its agent. */
void piece_heard(struct piece *piece, enum reconciler_news news);

/* --- shims, whose orders these are ---------------------------------------------------------------------- */

void shim_begin(struct piece *piece, bool run);
void shim_start(struct piece *piece);
void shim_keep(struct piece *piece);
void shim_stop(struct piece *piece, int64_t grace_ms, enum cause cause);
void shim_lease(struct piece *piece);
/* Repeats the shim's reports for an agent that has just connected. */
void shim_speak(struct piece *piece);

/* --- requests ------------------------------------------------------------------------------------------- */

void exchange_register(struct host *host);
void exchange_heartbeat(struct host *host, const struct reconciler_action *action);
void exchange_poll(struct host *host);
void exchange_report(struct piece *piece, enum report_kind kind);

#endif
