/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a simulated node share, and nobody else. */
#ifndef SIM_HOST_PARTS_H
#define SIM_HOST_PARTS_H

#include "agent/reconciler/reconciler.h"
#include "tests/sim/host.h"

#define RANKS_MAX 16

/* How far a shim is. */
enum shim_stage {
    SHIM_READY, /* it holds what the ranks need, and waits for the start */
    SHIM_RUNS,
    SHIM_STOPS, /* the kill ladder */
    SHIM_OVER,  /* the exit record is written */
};

/* An attempt on this machine: folders, shim and ranks, whether or not an agent knows of them. */
struct piece {
    struct host *host;
    uint64_t attempt_id;
    char job_id[17];
    char manner[16]; /* how its ranks behave: the job's name */
    bool function;
    int64_t node_rank, nodes, first_rank, local_ranks, world_size;
    int64_t devices[RANKS_MAX];
    size_t device_count;
    bool gang;

    /* On disk. */
    bool recorded; /* the exit record: what follows is valid */
    enum cause cause;
    struct rank_exit exits[RANKS_MAX];
    size_t exit_count;

    /* Processes. */
    bool shim;
    lifetime shim_life;
    enum shim_stage stage;
    bool live[RANKS_MAX];
    bool started, failed, stopping_by_order;
    struct rank_exit first_failed;
    int64_t term_ms, kill_ms; /* of the lease, by the machine's clock; 0: none */

    /* What the agent has of it. */
    bool laying;   /* it makes ready, no shim yet */
    bool waiting;  /* all is laid, and the lease is over */
    lifetime laid; /* what it does meanwhile ends with this */
    enum order_phase asked;
    enum cause decline;
    bool flushed; /* all log bytes have been sent */
    bool tails;   /* what the exit report that is out said of that */
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
    uint64_t *claimed; /* until a reboot */
    size_t claimed_count;
    struct piece **pieces;
    size_t piece_count;
    struct piece **forgotten; /* kept until the end of the run */
    size_t forgotten_count;
    struct reconciler *reconciler; /* NULL: no agent runs */
    int64_t waits_ms, heartbeats;
    uint64_t polling; /* number of the call; 0: none is out */
    uint64_t nonce;   /* of the agent: with which its next register is believed */
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
void piece_tell_stop(struct piece *piece, int64_t grace_ms, enum cause cause);
void piece_tell_lease(struct piece *piece, int64_t term_ms, int64_t kill_ms);
void piece_clear(struct piece *piece);
void piece_forget(struct piece *piece);
/* A new agent has found it. */
void piece_adopt(struct piece *piece);
void piece_lose_agent(struct piece *piece);
void piece_lose_power(struct piece *piece);
void piece_kill_shim(struct piece *piece);
/* Its agent hears of it. */
void piece_heard(struct piece *piece, enum reconciler_news news);

/* --- shims, whose orders these are ---------------------------------------------------------------------- */

void shim_begin(struct piece *piece, bool run);
void shim_start(struct piece *piece);
void shim_stop(struct piece *piece, int64_t grace_ms, enum cause cause);
void shim_lease(struct piece *piece);
/* What a shim says to an agent that has just connected. */
void shim_speak(struct piece *piece);

/* --- requests ------------------------------------------------------------------------------------------- */

void exchange_register(struct host *host);
void exchange_heartbeat(struct host *host, const struct reconciler_action *action);
void exchange_poll(struct host *host);
void exchange_report(struct piece *piece, enum report_kind kind);

#endif
