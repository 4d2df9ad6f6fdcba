/* SPDX-License-Identifier: Apache-2.0 */
/* A client of an S3 store, for one thread at a time. Every call waits for the network, within limits. */
#ifndef OBJECTS_S3_H
#define OBJECTS_S3_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/objects/s3_address.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct s3;

/* address, credentials_file (NULL: the environment) and stop are borrowed. A call ends soon with
 * ERR_UNAVAILABLE once *stop is set. Credentials are read for each request, so that they can be replaced. */
struct s3 *s3_open(const struct s3_address *address, const char *credentials_file, const atomic_bool *stop);
/* Takes NULL. */
void s3_close(struct s3 *s3);

/* All of these fail with ERR_UNAVAILABLE when the store is away, busy, or refuses us; the text says why. */

/* Stores size bytes of the file under the key, with their SHA-256 in hex beside them. What an earlier call
 * that broke off has brought of a large object is not sent again. */
bool s3_put(struct s3 *s3, const char *key, int fd, int64_t size, const char *hash, struct err *err);

/* Writes an object to the file, from its start. *ret_hash is the SHA-256 of the bytes that arrived; named is
 * that which was stored beside them, "" if the store has lost it. ERR_NOT_FOUND: there is no such object. */
struct s3_got {
    int64_t size;
    char hash[HASH_HEX + 1], named[HASH_HEX + 1];
};
bool s3_get(struct s3 *s3, const char *key, int fd, struct s3_got *ret_got, struct err *err);

/* An object that does not exist is no error. */
bool s3_delete(struct s3 *s3, const char *key, struct err *err);

/* Calls seen for each object whose key begins so, in the order of keys, until it returns false. */
typedef bool s3_seen(void *closure, const char *key, int64_t size, int64_t modified_ms);
bool s3_list(struct s3 *s3, const char *begin, s3_seen *seen, void *closure, struct err *err);

/* --- for s3_upload.c ------------------------------------------------------------------------------------ */

struct s3_request {
    const char *method;
    const char *key;         /* NULL: the bucket */
    const char *query;       /* in the order of names, escaped, without "?"; or NULL */
    const void *body;        /* or NULL */
    size_t length;           /* of the body */
    const char *hash;        /* to store beside the object; or NULL */
    int fd;                  /* where a GET writes; -1: to the answer */
    int64_t begin;           /* of the object, from where on a GET asks */
    struct hash *sum;        /* of what a GET has written; or NULL */
    int64_t written;         /* so much it has */
    struct text answer;      /* the caller finishes it */
    char etag[HASH_HEX + 1]; /* of the answer, without quotes */
    char named[HASH_HEX + 1];
    long status;
};

/* The key with our prefix before it; the caller frees it. */
char *s3_whole_key(const struct s3 *s3, const char *key);

/* Sends it, again if need be. false: no answer, or one that refuses. */
bool s3_send(struct s3 *s3, struct s3_request *request, struct err *err);

#endif
