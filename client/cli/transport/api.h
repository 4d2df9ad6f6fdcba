/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the controller: one connection pool, one loop, one thread. Errors of the controller arrive as
 * struct err. */
#ifndef CLI_API_H
#define CLI_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/transport/context.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct api;

/* Takes the contents of the context over. It connects to nobody yet. */
struct api *api_create(struct context *context);
void api_destroy(struct api *api);
const struct context *api_context(const struct api *api);

static inline void cleanup_api(struct api **api)
{
    api_destroy(*api);
}
#define autoapi __attribute__((cleanup(cleanup_api)))

/* --- one request and its reply --- */

struct request {
    const char *method;
    bool head;        /* the method is HEAD: the reply has no body */
    const char *path; /* with its query */
    const char *url;  /* of another server instead of the controller's path: it gets no token; or NULL */
    const void *body; /* NULL: none */
    size_t length;
    FILE *upload;             /* a file of length bytes instead of body; or NULL */
    const char *content_type; /* of body or upload */
    const char *key;          /* Idempotency-Key, or NULL */
    const char *accept;       /* or NULL */
    const char *last_id;      /* Last-Event-ID, or NULL */
    bool traced;              /* it makes jobs: they belong to the trace that the environment names */
    const char *range;        /* Range, or NULL */
    char **ret_content_range; /* Content-Range of the reply, the caller's, also of an error; or NULL */
    FILE *sink;               /* takes the body of a reply below 400; NULL: it is kept in memory */
    int64_t timeout_ms; /* 0: CLIENT_REPLY_MS; -1: none, but a connection that falls silent is given up */
    bool
        retry; /* safe to repeat: tried for CLIENT_RETRY_MS while the controller is away or overloaded; others
                  are tried again only where the controller says when to, which has done nothing then */
};

/* Sends it and waits. *ret_body may be NULL. A status of 400 and above is an error. */
bool api_send(struct api *api, const struct request *request, struct text *ret_body, struct err *err);

/* The same for a reply of JSON; the caller owns it. NULL on failure. */
json_t *api_send_json(struct api *api, const struct request *request, struct err *err);

/* JSON in, JSON out. The caller owns the value; NULL on failure. Each %s of a format is one part of a path
 * and is escaped. api_get asks once; api_read does so for a path that is whole already. */
json_t *api_get(struct api *api, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
json_t *api_read(struct api *api, const char *path, struct err *err);
/* POST, PATCH, PUT or DELETE, tried again while the controller is away. A POST or PATCH carries a key that is
 * drawn for it, and {} where body is NULL. */
json_t *api_ask(struct api *api, const char *method, const json_t *body, struct err *err, const char *format,
                ...) __attribute__((format(printf, 5, 6)));
/* Makes a job. key NULL: one is drawn. */
json_t *api_submit(struct api *api, const json_t *spec, const char *key, struct err *err);
/* Makes one with the spec of another and some changes. key NULL: one is drawn. */
json_t *api_clone(struct api *api, const char *id, const json_t *changes, const char *key, struct err *err);
/* Makes many, of which each has its spec on a line. The answer has a part for each line. key NULL: one is
 * drawn. */
json_t *api_submit_batch(struct api *api, const struct text *lines, const char *key, struct err *err);

/* All pages of a list, up to max items: the array "name" of each answer, joined. path has its query, if any;
 * the answer's "next" is asked for as the parameter `cursor`. */
json_t *api_list(struct api *api, const char *path, const char *name, const char *cursor, int64_t max,
                 struct err *err);

/* Appends "?name=value" or "&name=value", escaped; does nothing for NULL. */
void api_query(struct text *path, const char *name, const char *value);
/* Appends one part of a path, escaped. */
void api_part(struct text *path, const char *part);

/* --- the loop --- */

/* Moves all transfers on. Returns when something came in, a transfer ended, the person pressed Ctrl-C, or the
 * time is over. */
void api_turn(struct api *api, int64_t timeout_ms);
/* From now on api_turn also returns when one of these files can be read; up to API_WATCHED of them. */
#define API_WATCHED 2
void api_watch(struct api *api, const int *files, size_t count);
/* Turns until the time is over or Ctrl-C was pressed. */
void api_pause(struct api *api, int64_t ms);

/* The pause after this one, between two attempts. */
int64_t api_next_pause(int64_t pause_ms);

/* From now on SIGINT and SIGTERM are counted, not deadly. */
bool api_catch_interrupts(struct api *api, struct err *err);
int api_interrupts(const struct api *api);

/* The controller does not answer: looks whether it has a new place. */
void api_refresh(struct api *api);
/* The same, and says so once, until api_found. */
void api_lost(struct api *api, const struct err *why);
void api_found(struct api *api);

/* --- transfers, for streams --- */

struct transfer;

/* on_bytes gets the body of a reply below 400 as it comes and returns false to have the transfer paused until
 * transfer_resume. */
struct transfer *transfer_start(struct api *api, const struct request *request,
                                bool (*on_bytes)(const char *bytes, size_t length, void *closure),
                                void *closure);
bool transfer_done(const struct transfer *transfer);
/* After it is done: true when the reply came whole and below 400. */
bool transfer_result(struct transfer *transfer, struct err *err);
/* The Content-Range of its reply, the caller's; NULL: it has none. */
char *transfer_content_range(const struct transfer *transfer);
/* Where its reply redirects, the caller's; NULL: nowhere. */
char *transfer_location(const struct transfer *transfer);
/* When the controller wants the request again, because its sender has sent too many (429): after how long;
 * 0: it does not say. */
int64_t transfer_again_ms(const struct transfer *transfer);
/* What was kept in memory; borrowed. */
const struct text *transfer_body(const struct transfer *transfer);
void transfer_resume(struct transfer *transfer);
void transfer_destroy(struct transfer *transfer);

#endif
