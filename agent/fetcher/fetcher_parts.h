/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the fetcher share: the order, and how it tells of progress and failures. */
#ifndef AGENT_FETCHER_PARTS_H
#define AGENT_FETCHER_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/http/networks.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"

struct fetcher {
    json_t *order; /* which all texts are borrowed from */
    bool fetches;  /* else it probes */
    const char *url, *place;
    enum input_source source;
    const char *entry;                               /* name of the file, where the input is one */
    const char *version;                             /* what a fetch has to find; NULL for a probe */
    const char *sha256, *endpoint, *region, *volume; /* each may be NULL */
    int64_t limit_bytes;
    bool plain_http;
    struct networks networks;
    char *credentials;               /* owned; NULL: none */
    int data, work;                  /* folders; -1 for a probe */
    int64_t done_bytes, total_bytes; /* the latter -1 while it is unknown */
    int64_t told_ms;
};

/* Whose fault a failure is. */
enum fetch_fault {
    FAULT_JOB,   /* any node would fail */
    FAULT_NODE,  /* this node will not do it */
    FAULT_TIMES, /* another try may succeed */
};

/* Says why it failed. Returns false. */
bool fetcher_fail(const struct fetcher *fetcher, enum fetch_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with errno: a full disk is FAULT_TIMES. */
bool fetcher_fail_errno(const struct fetcher *fetcher, const char *what);

/* Says what a probe has found. Returns true. */
bool fetcher_found(const char *version, int64_t size, bool tree);

/* Counts bytes that have come, and says so at a pace that people can read; false if they are too many. */
bool fetcher_count(struct fetcher *fetcher, int64_t bytes);
/* Whether an input of this size may be kept here. */
bool fetcher_check_size(const struct fetcher *fetcher, int64_t size);

/* The URL for people: without its query, which may hold a signature. The caller frees it. */
char *fetcher_shown(const char *url);

/* Opens the file that the next bytes go to; keeps: with what an earlier fetch has left in it. -1: it has
 * failed. */
int fetcher_piece_open(const struct fetcher *fetcher, bool keeps);
/* Makes the piece the file `path` of the data, and the folders above it, if its content is right. */
bool fetcher_piece_keep(const struct fetcher *fetcher, int piece, const char *path);
/* Whether the data have this file with this size already. */
bool fetcher_has(const struct fetcher *fetcher, const char *path, int64_t size);

/* --- HTTP ----------------------------------------------------------------------------------------------- */

/* How a request proves who asks. */
struct http_login {
    const char *bearer;                   /* or NULL */
    const char *region, *key_id, *secret; /* of SigV4; region NULL: not signed */
    const char *session;                  /* or NULL */
    bool trusted;                         /* the operator has named the host: it may be in any network */
};

struct http_remote {
    const char *url;
    struct http_login login;
};

/* Finds the version of a remote file, which the caller frees, and its size; -1: unknown. */
bool http_probe(struct fetcher *fetcher, const struct http_remote *remote, char **ret_version,
                int64_t *ret_size);
/* Fetches it as the file `path` of the data, if it still has this version. again: bytes of an earlier fetch
 * are good. */
bool http_fetch(struct fetcher *fetcher, const struct http_remote *remote, const char *version, bool again,
                const char *path);
/* Fetches a short text. */
bool http_text(struct fetcher *fetcher, const struct http_remote *remote, size_t limit_bytes,
               struct text *ret_text);

/* --- sources -------------------------------------------------------------------------------------------- */

bool fetcher_http(struct fetcher *fetcher);
bool fetcher_s3(struct fetcher *fetcher);
bool fetcher_volume(struct fetcher *fetcher);

#endif
