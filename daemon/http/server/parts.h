/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the HTTP thread share: the server and its clock, deadlines, watched file descriptors. */
#ifndef HTTP_PARTS_H
#define HTTP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/http/auth/auth.h"
#include "daemon/http/server/blocks.h"
#include "daemon/http/request/connection.h"
#include "daemon/http/server/deadline.h"
#include "daemon/http/request/gate.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/server/recent_ends.h"
#include "daemon/http/agent/outbox.h"
#include "daemon/http/request/peers.h"
#include "daemon/http/request/request.h"
#include "daemon/http/server/server.h"
#include "daemon/http/server/space.h"
#include "daemon/http/agent/specs.h"
#include "daemon/http/agent/staging_board.h"
#include "daemon/http/server/waiters.h"
#include "daemon/store/store.h"

/* A file descriptor beside the library's own: ready is called when it can be read. */
struct watch {
    int fd;
    void (*ready)(struct watch *watch);
    void *closure;
};

struct join;

struct server {
    struct server_config config;
    struct host_names names; /* config's and the listen address */
    struct reader *reader;
    struct auth *auth;
    struct deadlines *deadlines;
    struct waiters *waiters;
    struct outbox *outbox;
    struct recent_ends ends;
    struct queue_snapshot *queue; /* the newest; NULL: none yet */
    struct specs *specs;
    struct staging_board *stagings;
    struct space *space;
    struct mlflow *mlflow;
    struct retention *retention;  /* NULL: nothing is removed by its age */
    struct backups *backups;      /* NULL: no shelf is configured */
    uint8_t rank_key[HASH_BYTES]; /* of the tokens that ranks get */

    int64_t now_ms;    /* of this turn, CLOCK_BOOTTIME */
    int64_t wall_ms;   /* of this turn, for records and the life of tokens */
    int64_t opened_ms; /* heartbeats count from here */

    /* Connections. */
    struct peers *peers;
    struct connection *watched; /* those on which something is expected of the client */
    struct deadline look;       /* at them */

    /* Requests. */
    struct request *requests; /* all that are open */
    bool resumed;             /* one was resumed: the library, which no event tells of it, must run */
    size_t request_count;
    size_t people_count; /* of these, those of users and admins */
    size_t asks;         /* with the writer */
    int64_t body_bytes;  /* kept for bodies above LIMIT_JSON_BYTES */
    struct blocks request_blocks, ask_blocks;
    size_t submits;     /* of these, submissions */
    struct join *joins; /* of nodes, that are with the writer */
    int64_t busy_ms;    /* when a person or a live job was last seen */
    bool ending;        /* asked to stop: nothing may park any more */
    bool refusing;      /* asked to end for good: no submissions any more */
    bool telling;       /* agents are told to end, too */
    enum server_end end;
    int64_t end_ms; /* it ends now, whatever is under way */

    /* Of server.c alone. */
    struct MHD_Daemon *daemon;
    int loop_fd;
    struct watch library, writer, signals, worker;
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

/* Random bytes out of a buffer, which saves a system call a request. */
void server_random(struct server *server, void *out, size_t length);

/* Begins to end because the store cannot be trusted any more. */
void server_fail(struct server *server, const struct err *err);

/* Begins to end: what waits is answered, server_run returns. The first reason counts. */
void server_stop(struct server *server, enum server_end end);

#endif
