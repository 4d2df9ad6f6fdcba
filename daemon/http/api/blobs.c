/* SPDX-License-Identifier: Apache-2.0 */
/* Serves /v1/blobs. An upload is hashed while it arrives. The helper thread brings a large one to disk,
 * and only then the writer stores its row, so a blob that is listed has its bytes. For a person there are
 * only blobs that they have sent, or that a job of theirs or its results name; nodes and admins see all. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/blob/blobs.h"
#include "daemon/http/api/ask.h"
#include "daemon/http/api/uploads.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/objects/redirect.h"
#include "daemon/http/orders/outbox.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "daemon/objects/objects.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

/* --- PUT ------------------------------------------------------------------------------------------------ */

/* An upload on its way to disk. */
struct keep {
    struct request_work work; /* first */
    struct blob_upload *upload;
    bool ok;
    struct err err;
};

struct blob_ask {
    struct ask ask;           /* first */
    struct change changes[2]; /* the blob's; that of its sender */
    char *sender;             /* as whose upload it counts; owned; NULL: nobody's */
    char hex[HASH_HEX + 1];
    struct blob_upload *upload;
    bool existed;
};

static void keep_free(struct request_work *work)
{
    struct keep *keep = (struct keep *)work;
    blob_upload_end(keep->upload);
    free(keep);
}

static bool read_hash(const struct request *request, uint8_t out[HASH_BYTES], struct err *err)
{
    if (text_from_hex(request->argument, out, HASH_BYTES)) {
        return true;
    }
    return err_field(err, ERR_FIELD, "sha256", "name the blob by the SHA-256 of its bytes in 64 hex digits",
                     "\"%s\" is not a SHA-256", request->argument);
}

static bool is_node(const struct request *request)
{
    return identity_role(request->who) == ROLE_NODE;
}

/* For a node there are only blobs that live jobs name: its orders name no others. One whose token is its own
 * has orders, or stages an environment, that name them. */
static bool node_has_orders(const struct request *request, const uint8_t *hash, bool *ret_has,
                            struct err *err)
{
    const struct server *server = request->server;
    const char *node = identity_node(request->who);
    size_t count;
    *ret_has = node == NULL || outbox_stages(server->outbox, node, request->argument);
    if (*ret_has) {
        return true;
    }
    autofree int64_t *specs = outbox_specs(server->outbox, node, &count);
    return reader_jobs_use(server->reader, hash, specs, count, ret_has, err);
}

static struct rows blob_of_node(const struct request *request, const uint8_t *hash, struct err *err)
{
    static const uint8_t none[HASH_BYTES];
    bool has;
    if (!node_has_orders(request, hash, &has, err)) {
        return (struct rows){.reader = request->server->reader, .err = err, .failed = true};
    }
    return reader_blob_of_live_job(request->server->reader, has ? hash : none, err);
}

static struct rows visible_blob(const struct request *request, const uint8_t *hash, struct err *err)
{
    const struct server *server = request->server;
    if (is_node(request)) {
        return blob_of_node(request, hash, err);
    }
    const char *owner = uploads_limit(server->uploads, request_owner_scope(request), hash);
    return reader_blob_that_stays(server->reader, hash, server->wall_ms - LIMIT_BLOB_UNUSED_MS, owner, err);
}

/* What nodes send are results: the reports that name them follow. */
static bool quota_allows(const struct request *request, int64_t bytes, struct err *err)
{
    struct server *server = request->server;
    return is_node(request) ||
           uploads_allow(server->uploads, identity_owner(request->who), bytes, server->now_ms, err);
}

/* What nodes send is not refused: jobs could not end. */
static bool store_allows(const struct request *request, int64_t bytes, struct err *err)
{
    struct objects *objects = request->server->objects;
    return objects == NULL || bytes == 0 || is_node(request) || objects_allow(objects, bytes, err);
}

static bool upload_begin(struct request *request, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    int64_t length = request->headers.content_length;
    int64_t known = length > 0 ? length : 0;
    if (!read_hash(request, hash, err) || !space_allows(request->server->space, known, err) ||
        !quota_allows(request, known, err) || !store_allows(request, known, err)) {
        return false;
    }
    struct keep *keep = xzalloc(sizeof *keep);
    keep->upload = blob_upload_begin(request->server->config.blobs, hash);
    request_work_begin(&keep->work, request, keep_free);
    return true;
}

static size_t upload_piece(struct request *request, const char *bytes, size_t length)
{
    const struct keep *keep = request->state;
    const struct server *server = request->server;
    struct err err;
    int64_t fresh = request->headers.content_length < 0 ? (int64_t)length : 0; /* else counted at the begin */
    if (!space_allows(server->space, fresh, &err) || !store_allows(request, fresh, &err) ||
        !blob_upload_write(keep->upload, bytes, length, &err)) {
        request_fail(request, &err);
    }
    return length;
}

const struct body_sink blobs_sink = {.begin = upload_begin, .piece = upload_piece};

static int render_put(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct blob_ask *ask = (const struct blob_ask *)writer;
    text_printf(out, "{\"sha256\": \"%s\", \"size\": %lld}", ask->hex, (long long)ask->changes[0].blob.size);
    return ask->existed ? 200 : 201;
}

static void ask_finish(struct ask *ask)
{
    struct blob_ask *blob = (struct blob_ask *)ask;
    blob_upload_end(blob->upload);
    free(blob->sender);
}

static void ask_committed(struct ask *ask)
{
    const struct request *request = ask->request;
    const struct blob_row *blob = &((struct blob_ask *)ask)->changes[0].blob;
    const char *sender = ((struct blob_ask *)ask)->sender;
    if (sender != NULL) {
        uploads_add(request->server->uploads, sender, blob->hash, blob->size, request->server->now_ms);
    }
}

/* A node whose token is its own names in its reports what it has sent, and nothing else: exit_results.c. */
static char *sender_of(const struct request *request)
{
    const char *node = identity_node(request->who);
    if (!is_node(request)) {
        return xstrdup(identity_owner(request->who));
    }
    return node != NULL ? uploads_owner_of_node(node) : NULL;
}

static bool blob_exists(const struct request *request, const uint8_t *hash, bool *ret_exists, struct err *err)
{
    autorows struct rows rows = visible_blob(request, hash, err);
    struct blob_row row;
    *ret_exists = rows_blob(&rows, &row);
    return !rows.failed;
}

/* The bytes are safe: now the row. Takes over the upload. */
static bool ask_for_row(struct request *request, struct blob_upload *upload, struct err *err)
{
    const uint8_t *hash = blob_upload_hash(upload);
    autoask struct blob_ask *ask = ask_create(request, sizeof *ask, render_put);
    ask->ask.committed = ask_committed;
    ask->ask.finish = ask_finish;
    ask->upload = upload;
    ask->sender = sender_of(request);
    if (!blob_exists(request, hash, &ask->existed, err)) {
        return false;
    }
    ask->changes[0] = (struct change){.kind = CHANGE_BLOB_PUT,
                                      .blob = {.size = blob_upload_size(upload),
                                               .bytes = blob_upload_bytes(upload),
                                               .created_ms = request->server->wall_ms}};
    memcpy(ask->changes[0].blob.hash, hash, HASH_BYTES);
    text_to_hex(hash, HASH_BYTES, ask->hex);
    ask->changes[1] = (struct change){.kind = CHANGE_UPLOAD_PUT,
                                      .upload = {.owner = ask->sender,
                                                 .hash = ask->hex,
                                                 .size = blob_upload_size(upload),
                                                 .at_ms = request->server->wall_ms}};
    ask->ask.writer.kind = WRITER_RECORD;
    ask->ask.writer.records = ask->changes;
    ask->ask.writer.record_count = ask->sender != NULL ? 2 : 1;
    return ask_writer(give(ask), err);
}

static void keep_work(struct task *task)
{
    struct keep *keep = (struct keep *)task;
    keep->ok = blob_upload_keep(keep->upload, &keep->err);
}

static void keep_reply(struct request_work *work)
{
    struct keep *keep = (struct keep *)work;
    if (!keep->ok || !ask_for_row(work->request, give(keep->upload), &keep->err)) {
        request_fail(work->request, &keep->err);
    }
}

bool blobs_put(struct request *request, struct err *err)
{
    struct keep *keep = request->state;
    if (!blob_upload_check(keep->upload, err) ||
        !quota_allows(request, blob_upload_size(keep->upload), err)) {
        return false;
    }
    if (blob_upload_bytes(keep->upload) != NULL) {
        return ask_for_row(request, give(keep->upload), err);
    }
    return request_work_give(&keep->work, request->server->config.worker, keep_work, keep_reply);
}

/* --- GET ------------------------------------------------------------------------------------------------ */

static bool reply_row(struct request *request, const struct blob_row *row, struct err *err)
{
    if (row->bytes != NULL || row->size == 0) {
        struct text bytes = {0};
        text_append_bytes(&bytes, row->bytes, (size_t)row->size);
        return request_reply(request, 200, "application/octet-stream", text_take(&bytes), (size_t)row->size);
    }
    if (redirect_is_wanted(request) &&
        redirect_reply(request, objects_link_blob(request->server->objects, row->hash))) {
        return true;
    }
    int fd = blobs_open_file(request->server->config.blobs, row->hash, err);
    if (fd < 0 && err->code == ERR_NOT_FOUND && request->server->objects != NULL) {
        return recall_blob(request, row->hash, blobs_get, err);
    }
    return fd >= 0 &&
           request_reply_file(request, 200, "application/octet-stream", fd, 0, (uint64_t)row->size);
}

/* Who sees the uploads of all may look at one of others, which the audit has. */
static bool note_look(struct request *request, const uint8_t hash[HASH_BYTES], struct err *err)
{
    const struct server *server = request->server;
    if (is_node(request) || !authorize_sees_all(request->who)) {
        return true;
    }
    const char *owner = uploads_limit(server->uploads, identity_owner(request->who), hash);
    autorows struct rows rows =
        reader_blob_that_stays(server->reader, hash, server->wall_ms - LIMIT_BLOB_UNUSED_MS, owner, err);
    struct blob_row row;
    request->looks_beyond = owner != NULL && !rows_blob(&rows, &row);
    return !rows.failed;
}

bool blobs_get(struct request *request, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    if (!read_hash(request, hash, err)) {
        return false;
    }
    if (!note_look(request, hash, err)) {
        return false;
    }
    autorows struct rows rows = visible_blob(request, hash, err);
    struct blob_row row;
    if (rows_blob(&rows, &row)) {
        return reply_row(request, &row, err);
    }
    return !rows.failed && err_set(err, ERR_NOT_FOUND, "there is no blob %s", request->argument);
}
