/* SPDX-License-Identifier: Apache-2.0 */
/* Counts in memory what the table has: a row comes with the blob, goes with the submission that names it, and
 * counts no longer than RETENTION_BLOB_MS. Small uploads count as LIMIT_BLOB_ROW_BYTES, so the quota limits
 * their number, too. */
#include "daemon/http/api/uploads.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/store/store.h"
#include "proto/base/text/table.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

struct uploader {
    char *owner; /* owned */
    int64_t bytes;
    size_t count;
    UT_hash_handle hh;
};

struct upload_key {
    struct uploader *by;
    uint8_t hash[HASH_BYTES];
};

struct sent_blob {
    struct upload_key key;
    int64_t bytes, at_ms;
    struct sent_blob *prev, *next;
    UT_hash_handle hh;
};

struct uploads {
    int64_t quota_bytes;
    struct uploader *uploaders; /* by owner */
    struct sent_blob *blobs;    /* by key */
    struct sent_blob *oldest;   /* the same as a list, in the order in which they came */
};

struct uploads *uploads_create(int64_t quota_bytes)
{
    struct uploads *uploads = xzalloc(sizeof *uploads);
    uploads->quota_bytes = quota_bytes;
    return uploads;
}

static void drop(struct uploads *uploads, struct sent_blob *blob)
{
    struct uploader *by = blob->key.by;
    HASH_DEL(uploads->blobs, blob);
    DL_DELETE(uploads->oldest, blob);
    by->bytes -= blob->bytes;
    if (--by->count == 0) {
        HASH_DEL(uploads->uploaders, by);
        free(by->owner);
        free(by);
    }
    free(blob);
}

void uploads_destroy(struct uploads *uploads)
{
    if (uploads == NULL) {
        return;
    }
    while (uploads->oldest != NULL) {
        drop(uploads, uploads->oldest);
    }
    free(uploads);
}

static void drop_old(struct uploads *uploads, int64_t now_ms)
{
    while (uploads->oldest != NULL && uploads->oldest->at_ms <= now_ms - RETENTION_BLOB_MS) {
        drop(uploads, uploads->oldest);
    }
}

static struct uploader *find_uploader(const struct uploads *uploads, const char *owner)
{
    struct uploader *by;
    HASH_FIND_STR(uploads->uploaders, owner, by);
    return by;
}

static struct sent_blob *find(const struct uploads *uploads, const char *owner, const uint8_t *hash)
{
    struct upload_key key = {.by = find_uploader(uploads, owner)};
    struct sent_blob *blob = NULL;
    memcpy(key.hash, hash, HASH_BYTES);
    if (key.by != NULL) {
        HASH_FIND(hh, uploads->blobs, &key, sizeof key, blob);
    }
    return blob;
}

bool uploads_allow(struct uploads *uploads, const char *owner, int64_t bytes, int64_t now_ms, struct err *err)
{
    drop_old(uploads, now_ms);
    const struct uploader *by = find_uploader(uploads, owner);
    if ((by != NULL ? by->bytes : 0) + bytes <= uploads->quota_bytes) {
        return true;
    }
    err_set(err, ERR_LIMIT,
            "no job names %lld MiB that you have sent, and you may have %lld MiB of such uploads",
            (long long)((by != NULL ? by->bytes : 0) / MIB), (long long)(uploads->quota_bytes / MIB));
    return err_hint(err, "submit the jobs that they are for, or wait: what no job names goes after a day; an "
                         "administrator raises the limit with gpuctld --upload-quota");
}

void uploads_add(struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES], int64_t bytes,
                 int64_t now_ms)
{
    uploads_remove(uploads, owner, hash);
    struct uploader *by = find_uploader(uploads, owner);
    if (by == NULL) {
        by = xzalloc(sizeof *by);
        by->owner = xstrdup(owner);
        HASH_ADD_KEYPTR(hh, uploads->uploaders, by->owner, strlen(by->owner), by);
    }
    struct sent_blob *blob = xzalloc(sizeof *blob);
    blob->key.by = by;
    memcpy(blob->key.hash, hash, HASH_BYTES);
    blob->bytes = bytes > LIMIT_BLOB_ROW_BYTES ? bytes : LIMIT_BLOB_ROW_BYTES;
    blob->at_ms = now_ms;
    by->bytes += blob->bytes;
    by->count++;
    HASH_ADD(hh, uploads->blobs, key, sizeof blob->key, blob);
    DL_APPEND(uploads->oldest, blob);
}

void uploads_remove(struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES])
{
    struct sent_blob *blob = find(uploads, owner, hash);
    if (blob != NULL) {
        drop(uploads, blob);
    }
}

bool uploads_has(const struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES])
{
    return find(uploads, owner, hash) != NULL;
}

char *uploads_owner_of_node(const char *node)
{
    return xprintf("node:%s", node);
}

const char *uploads_limit(const struct uploads *uploads, const char *owner, const uint8_t hash[HASH_BYTES])
{
    return owner == NULL || uploads_has(uploads, owner, hash) ? NULL : owner;
}

bool uploads_load(struct uploads *uploads, struct reader *reader, int64_t wall_ms, int64_t now_ms,
                  struct err *err)
{
    autorows struct rows rows = reader_uploads(reader, wall_ms - RETENTION_BLOB_MS, ALL_ROWS, err);
    struct upload_row row;
    while (rows_upload(&rows, &row)) {
        uint8_t hash[HASH_BYTES];
        int64_t age_ms = wall_ms > row.at_ms ? wall_ms - row.at_ms : 0;
        if (text_from_hex(row.hash, hash, sizeof hash)) {
            uploads_add(uploads, row.owner, hash, row.size, now_ms - age_ms);
        }
    }
    return !rows.failed;
}
