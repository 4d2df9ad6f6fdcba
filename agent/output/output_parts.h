/* SPDX-License-Identifier: Apache-2.0 */
/* What output.c and output_tails.c share, and nobody else. */
#ifndef AGENT_OUTPUT_PARTS_H
#define AGENT_OUTPUT_PARTS_H

#include "agent/output/output.h"

enum phase {
    PHASE_GROWS,
    PHASE_CLOSED,  /* the files will not grow */
    PHASE_RETIRES, /* and nothing but their durability is waited for */
};

struct follow {
    int64_t rank;
    enum stream stream;
    bool known; /* the controller has said what it has, or has nothing */
    bool full;  /* it takes no more of this stream: its limit became smaller while the attempt ran */
    int64_t received, durable;
    int64_t partial_ms; /* since when the unfinished last line waits; 0: none does */
    int64_t probe_ms;   /* not before: asking again whether its bytes are durable */
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
    size_t turn;                        /* whose piece is next */
    struct controller_request *request; /* the upload under way ... */
    struct follow *asked;               /* ... of this stream ... */
    int64_t offset;                     /* ... from here ... */
    char *piece;                        /* ... of these bytes */
    int64_t hold_ms;                    /* not before: any upload */
    struct loop_timer timer;
    void (*idle)(void *closure);
    void *closure;
    bool waiting; /* in the queue */
    struct output *prev, *next;
};

struct outputs {
    char *node;
    struct controller_client *controller;
    struct loop *loop;
    struct folder_pool *folder_pool;
    size_t uploads;
    struct output *queue; /* those that wait for an upload of another to end */
    struct output *list;  /* those that do not */
};

/* How long the file of a stream is now. */
int64_t output_size(const struct output *output, const struct follow *follow);

/* Reads up to *length bytes of it, and says how many there were; the caller frees them. */
char *output_part(const struct output *output, const struct follow *follow, int64_t offset, size_t *length);

#endif
