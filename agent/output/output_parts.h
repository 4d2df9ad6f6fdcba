/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by output.c and output_tails.c alone. */
#ifndef AGENT_OUTPUT_PARTS_H
#define AGENT_OUTPUT_PARTS_H

#include "agent/output/kept_tree.h"
#include "agent/output/output.h"

enum phase {
    PHASE_GROWS,
    PHASE_CLOSED,  /* the files will not grow */
    PHASE_RETIRES, /* the same, and only the durability of the bytes is awaited */
};

struct follow {
    int64_t rank;
    enum stream stream;
    bool known; /* the controller's position is known */
    bool full;  /* the controller takes no more of this stream: its limit was lowered while the attempt ran */
    struct kept_tree *tree; /* of files that are kept; NULL: there are none, or the rank may still add some */
    int64_t received, durable;
    int64_t partial_ms; /* since when the unfinished last line waits; 0: there is none */
    int64_t probe_ms;   /* earliest time to ask again whether the bytes are durable */
};

struct output {
    struct outputs *outputs;
    enum phase phase;
    uint64_t attempt_id;
    char *folder;
    bool resume;
    bool refused; /* the controller does not want the bytes */
    struct follow *follows;
    size_t count;
    size_t turn;                        /* index of the stream that is served next */
    struct controller_request *request; /* the upload under way ... */
    struct follow *asked;               /* ... of this stream ... */
    int64_t offset;                     /* ... from here ... */
    char *piece;                        /* ... of these bytes */
    int64_t hold_ms;                    /* earliest time of the next upload */
    struct loop_timer timer;
    void (*idle)(void *closure);
    void *closure;
    bool waiting; /* for an upload slot */
    struct output *prev, *next;
};

struct outputs {
    char *node;
    int64_t kept_limit;
    struct controller_client *controller;
    struct loop *loop;
    struct folder_pool *folder_pool;
    size_t uploads;
    struct output *list; /* the one that was served last is last */
};

/* The current length of a stream, as far as it is due to be sent. */
int64_t output_size(const struct output *output, const struct follow *follow);

/* Reads up to *length bytes of the file, and sets *length to their number; the caller frees them. */
char *output_part(const struct output *output, const struct follow *follow, int64_t offset, size_t *length);

/* For output.c and tests: how much of a piece to send now, up to the last newline, else up to the last whole
 * UTF-8 character; 0: wait. full: the piece has no room for more; final: the stream has ended; old: the last
 * line has waited long enough for its end. */
size_t output_cut(const char *bytes, size_t length, bool full, bool final, bool old);

#endif
