/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the HTTP thread, which its parts share: clock, deadlines, watched file descriptors, and a
 * pointer to each part. A part includes the headers of the other parts that it uses. */
#ifndef HTTP_STATE_H
#define HTTP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/base/blocks.h"
#include "daemon/http/base/deadline.h"
#include "daemon/http/base/recent_ends.h"
#include "daemon/http/base/server_config.h"
#include "daemon/retention/retention.h"
#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

/* A file descriptor beside the library's own: ready is called when it can be read. */
struct watch {
    int fd;
    void (*ready)(struct watch *watch);
    void *closure;
};

/* The names under which the server may be addressed, besides those of the loopback. */
struct host_names {
    const char *const *items;
    size_t count;
};

struct server {
    struct server_config config;
    struct host_names names; /* config's and the listen address */
    struct reader *reader;
    struct auth *auth;
    struct projects *projects; /* who may do what in them */
    struct audit *audit;       /* what was refused, and looked at, of late */
    struct deadlines *deadlines;
    struct waiters *waiters;
    struct event_ring *event_ring;
    struct outbox *outbox;
    struct log_searches *log_searches;
    struct samples *samples; /* what nodes use */
    struct usage *usage;
    struct overview *overview;
    struct queue *queue_answers; /* who is next */
    struct simulations *simulations;
    struct logins *logins;   /* NULL: there is no identity provider */
    struct holders *holders; /* of devices; NULL: not collected yet */
    struct batches *batches;
    struct recent_ends ends;
    struct core_figures figures;  /* the newest */
    struct queue_snapshot *queue; /* the newest; NULL: none yet */
    struct specs *specs;
    struct staging_board *stagings;
    struct secrets *secrets;
    struct schedules *schedules;
    struct images *images; /* NULL: no job has named an image by a tag yet */
    struct space *space;
    struct uploads *uploads;
    struct mlflow *mlflow;
    struct objects *objects;            /* the object store; NULL: there is none */
    struct recalls *recalls;            /* NULL likewise */
    struct retention_tracking tracking; /* for retention */
    struct retention *retention;        /* NULL: nothing is removed by its age */
    struct scrubbing *scrubbing;
    struct backups *backups; /* NULL: no shelf is configured */
    struct sessions *sessions;
    struct streams *streams;      /* into running jobs */
    uint8_t rank_key[HASH_BYTES]; /* of the tokens that ranks get, and of sessions */

    int64_t now_ms;    /* of this turn, CLOCK_BOOTTIME */
    int64_t wall_ms;   /* of this turn, for records and the life of tokens */
    int64_t opened_ms; /* heartbeats count from here */

    /* Connections. */
    struct library *library;
    unsigned connection_limit;
    struct peers *peers;
    struct senders *senders;
    struct connection *watched; /* those on which something is expected of the client */
    struct deadline look;       /* at them */

    /* Requests. */
    struct request *requests; /* all that are open */
    struct pieces *pieces;    /* answers that wait for their next piece; the first one is next */
    size_t request_count;
    struct route_measures
        *measures;       /* of each route, in the order of their table, and of requests that have none */
    size_t people_count; /* of these, those of users and admins */
    size_t asks;         /* with the writer */
    int64_t body_bytes;  /* kept for bodies above LIMIT_JSON_BYTES */
    struct blocks request_blocks, ask_blocks;
    size_t submits;        /* of these, submissions */
    struct join *joins;    /* of nodes, that are with the writer */
    uint64_t jobs_version; /* grows with each change of a job that a list shows */
    int64_t busy_ms;       /* when a person or a live job was last seen */
    bool ending;           /* asked to stop: nothing may park any more */
    bool refusing;         /* asked to end for good: no submissions any more */
    bool telling;          /* agents are told to end, too */
    enum server_end end;
    int64_t end_ms; /* it ends now, whatever is under way */

    /* Of server.c alone. */
    int loop_fd;
    struct watch writer, signals, worker;
    struct deadline idle;
    const char **name_items; /* owned array of names */
    char *listen_name;
    uint16_t port;
    uint8_t random[4096];
    size_t random_left;
    bool failed, writer_failed;
    struct err failure;
};

/* Watches until the server is closed. For helper threads that report back by an eventfd. */
bool server_watch(struct server *server, struct watch *watch, struct err *err);

/* Wakes those who follow a job's log: new bytes have arrived. HTTP thread only. */
void server_wake(struct server *server, int64_t job_key);

/* Random bytes out of a buffer, which saves a system call for each request. */
void server_random(struct server *server, void *out, size_t length);

/* The store cannot be trusted any more: the loop begins to end. The first failure counts. */
void server_fail(struct server *server, const struct err *err);

#endif
