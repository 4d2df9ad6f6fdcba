/* SPDX-License-Identifier: Apache-2.0 */
/* Serves checkpoints: takes the manifests and pieces of nodes, hands them to the nodes of later attempts, and
 * shows people which one a job has. All of it waits for the disk, on the thread for files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "daemon/http/api/job_lookup.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/space.h"
#include "daemon/http/base/state.h"
#include "daemon/http/logs/logs.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/objects/recalls.h"
#include "daemon/http/objects/redirect.h"
#include "daemon/http/orders/specs.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "daemon/http/request/routes.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"
#include "proto/spec/jobspec.h"

struct chore {
    struct request_work work; /* first */
    struct checkpoints *checkpoints;
    char job_id[ID_LENGTH + 1];
    char source_id[ID_LENGTH + 1]; /* the job with whose checkpoint this one begins; "": none */
    struct checkpoint_part part;
    enum checkpoint_gap gap;
    uint8_t hash[HASH_BYTES];
    char *bytes; /* of the request */
    size_t length;
    int file; /* of a piece */
    int64_t size;
    const char *holder; /* the job of the piece */
    char *folder;       /* of a job with its checkpoints on a volume: volume:NAME/PATH */
    struct text out;
    bool ok;
    struct err err;
};

static void chore_free(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    cleanup_close(&chore->file);
    text_finish(&chore->out);
    free(chore->bytes);
    free(chore->folder);
    free(chore);
}

static struct chore *chore_begin(struct request *request)
{
    struct chore *chore = xzalloc(sizeof *chore);
    chore->checkpoints = request->server->config.checkpoints;
    chore->file = -1;
    request_work_begin(&chore->work, request, chore_free);
    return chore;
}

static bool chore_give(struct chore *chore, void (*work)(struct task *task),
                       void (*reply)(struct request_work *work))
{
    return request_work_give(&chore->work, chore->work.request->server->mlflow->disk, work, reply);
}

static void reply_json(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    if (chore->ok) {
        request_reply_json(work->request, 200, &chore->out);
    } else {
        request_fail(work->request, &chore->err);
    }
}

/* --- whose it is ---------------------------------------------------------------------------------------- */

/* The node's part of the attempt. */
static bool find_part(struct server *server, uint64_t attempt_id, const char *node,
                      struct checkpoint_part *part, struct err *err)
{
    autorows struct rows rows = reader_members(server->reader, attempt_id, err);
    struct member_row row;
    bool found = false;
    part->nodes = 0;
    while (rows_member(&rows, &row)) {
        part->nodes++;
        if (strcmp(row.node, node) == 0) {
            part->node_rank = row.node_rank;
            found = true;
        }
    }
    return !rows.failed &&
           (found || err_field(err, ERR_FORBIDDEN, "node", NULL, "node %.64s has no part in attempt %llu",
                               node, (unsigned long long)attempt_id));
}

static bool read_owner(struct server *server, const char *job_id, char **ret_owner, struct err *err)
{
    autorows struct rows rows = reader_job(server->reader, job_id, err);
    struct job_record job;
    *ret_owner = rows_job(&rows, &job) ? xstrdup(job.birth.owner) : NULL;
    return !rows.failed;
}

/* What the spec names counts between jobs of one owner: it is not asked what else a person may see. */
static bool find_source(struct server *server, int64_t job_key, struct chore *chore, struct err *err)
{
    autojson json_t *spec = specs_get(server->specs, job_key, err);
    const char *id = spec != NULL ? json_string_of(spec, "checkpoint_of") : NULL;
    autofree char *own = NULL;
    autofree char *other = NULL;
    if (id == NULL) {
        return spec != NULL;
    }
    if (!read_owner(server, chore->job_id, &own, err) || !read_owner(server, id, &other, err)) {
        return false;
    }
    if (own == NULL || other == NULL || strcmp(own, other) != 0) {
        return err_set(err, ERR_NOT_FOUND,
                       "job %.16s, with whose checkpoint job %s begins, is gone, or of another owner", id,
                       chore->job_id);
    }
    memcpy(chore->source_id, id, strlen(id) + 1);
    return true;
}

static bool read_attempt(struct request *request, struct chore *chore, bool source, struct err *err)
{
    struct server *server = request->server;
    const char *node = query_text(request->query, "node");
    struct attempt_record record;
    int64_t number = -1;
    bool found;
    if (!identity_acts_for(request->who, node != NULL ? node : "", err) ||
        !query_int(request->query, "epoch", 0, INT64_MAX, &number, err)) {
        return false;
    }
    if (node == NULL || number < 0) {
        return err_set(err, ERR_FIELD, "node and epoch are needed");
    }
    if (!reader_attempt_record(server->reader, (uint64_t)number, &found, &record, err)) {
        return false;
    }
    if (!found) {
        return err_field(err, ERR_FENCED, "epoch", NULL, "no attempt has the id %llu",
                         (unsigned long long)number);
    }
    if (source && record.state == ATTEMPT_ENDED) {
        return err_field(err, ERR_FENCED, "epoch", NULL, "attempt %llu has ended",
                         (unsigned long long)number);
    }
    memcpy(chore->job_id, record.job_id, sizeof chore->job_id);
    chore->part.attempt = record.number;
    return find_part(server, (uint64_t)number, node, &chore->part, err) &&
           (!source || find_source(server, record.job_key, chore, err));
}

/* What comes after the pieces have gone to the object store waits on the node for their return. */
static bool are_here(struct request *request, const struct chore *chore, struct err *err)
{
    struct server *server = request->server;
    return !recall_needs(server, chore->job_id, JOB_CHECKPOINTS) ||
           recall_job_soon(server, chore->job_id, JOB_CHECKPOINTS, err);
}

static bool read_hash(struct request *request, struct chore *chore, struct err *err)
{
    const char *hex = query_text(request->query, "sha256");
    return (hex != NULL && text_from_hex(hex, chore->hash, sizeof chore->hash)) ||
           err_field(err, ERR_FIELD, "sha256", "name the piece by the SHA-256 of its bytes in 64 hex digits",
                     "it is not a SHA-256");
}

/* The body outlives its request. */
static void take_body(struct request *request, struct chore *chore)
{
    chore->length = request->body_length;
    chore->bytes = xzalloc(request->body_length + 1);
    if (request->body_length > 0) {
        memcpy(chore->bytes, request->body, request->body_length);
    }
}

/* --- manifests ------------------------------------------------------------------------------------------ */

static void work_take(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    autofree int64_t *missing = NULL;
    size_t count = 0;
    const struct checkpoint_part *part = &chore->part;
    if (chore->gap != GAP_NONE) {
        chore->ok = checkpoints_refuse(chore->checkpoints, chore->job_id, part, chore->gap, &chore->err);
    } else if (chore->length == 0 && (part->kind == CHECKPOINT_STILL || part->kind == CHECKPOINT_EMPTY)) {
        chore->ok = checkpoints_hold(chore->checkpoints, chore->job_id, part, &chore->err);
    } else {
        chore->ok = checkpoints_take(chore->checkpoints, chore->job_id, part, chore->bytes, chore->length,
                                     &missing, &count, &chore->err);
    }
    text_append(&chore->out, "{\"missing\": [");
    for (size_t i = 0; i < count; i++) {
        text_append(&chore->out, i > 0 ? "," : "");
        text_append_int(&chore->out, missing[i]);
    }
    text_append(&chore->out, "]}");
}

bool checkpoints_take_manifest(struct request *request, struct err *err)
{
    struct chore *chore = chore_begin(request);
    const char *kind = query_text(request->query, "kind"), *gap = query_text(request->query, "gap");
    if (!read_attempt(request, chore, false, err) ||
        !query_int(request->query, "number", 0, INT64_MAX / 4, &chore->part.number, err)) {
        return false;
    }
    if (kind == NULL || !checkpoint_kind_from_text(kind, &chore->part.kind)) {
        return err_field(err, ERR_FIELD, "kind", "step, still, end or empty",
                         "it is not a kind of checkpoint");
    }
    if (gap != NULL && !checkpoint_gap_from_text(gap, &chore->gap)) {
        return err_field(err, ERR_FIELD, "gap", "none, many, deep or unread", "it is not a reason");
    }
    if (!are_here(request, chore, err) ||
        !space_allows(request->server->space, (int64_t)request->body_length, err)) {
        return false;
    }
    take_body(request, chore);
    return chore_give(chore, work_take, reply_json);
}

/* What the next attempt begins with: the job's own, else that of the job that it repeats. */
static bool find_last(struct chore *chore, struct checkpoint_found *found, struct err *err)
{
    if (!checkpoints_last(chore->checkpoints, chore->job_id, chore->part.node_rank, found, err)) {
        return false;
    }
    return found->found || chore->source_id[0] == '\0' ||
           checkpoints_last(chore->checkpoints, chore->source_id, chore->part.node_rank, found, err);
}

static void work_last(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    struct checkpoint_found found = {0};
    chore->ok = find_last(chore, &found, &chore->err);
    if (chore->ok) {
        manifest_encode(&found.manifest, &chore->out);
    }
    checkpoint_found_finish(&found);
}

static void reply_bytes(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    if (chore->ok) {
        size_t length = chore->out.length;
        request_reply(work->request, 200, "application/octet-stream", text_take(&chore->out), length);
    } else {
        request_fail(work->request, &chore->err);
    }
}

bool checkpoints_give_manifest(struct request *request, struct err *err)
{
    struct chore *chore = chore_begin(request);
    return read_attempt(request, chore, true, err) && chore_give(chore, work_last, reply_bytes);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static void work_put(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = checkpoints_put_piece(chore->checkpoints, chore->job_id, chore->hash, chore->bytes,
                                      chore->length, &chore->err);
    text_append(&chore->out, "{}");
}

bool checkpoints_take_piece(struct request *request, struct err *err)
{
    struct chore *chore = chore_begin(request);
    if (!read_attempt(request, chore, false, err) || !read_hash(request, chore, err) ||
        !are_here(request, chore, err) ||
        !space_allows(request->server->space, (int64_t)request->body_length, err)) {
        return false;
    }
    take_body(request, chore);
    return chore_give(chore, work_put, reply_json);
}

static bool open_piece(struct chore *chore, const char *job_id)
{
    chore->holder = job_id;
    chore->file = checkpoints_open_piece(chore->checkpoints, job_id, chore->hash, &chore->size, &chore->err);
    return chore->file >= 0;
}

static void work_get(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    chore->ok = open_piece(chore, chore->job_id) ||
                (chore->err.code == ERR_NOT_FOUND && chore->source_id[0] != '\0' &&
                 open_piece(chore, chore->source_id));
}

/* The request is as before its work. */
static void recall_pieces(struct chore *chore)
{
    struct request *request = chore->work.request;
    struct err err;
    char job_id[ID_LENGTH + 1];
    memcpy(job_id, chore->holder, sizeof job_id);
    request->state = NULL;
    request->state_finish = NULL;
    chore_free(&chore->work);
    if (!recall_job(request, job_id, JOB_CHECKPOINTS, checkpoints_give_piece, &err)) {
        request_fail(request, &err);
    }
}

static char *link_of(const struct chore *chore)
{
    return objects_link_piece(chore->work.request->server->objects, chore->holder, chore->hash);
}

static void reply_piece(struct request_work *work)
{
    struct chore *chore = (struct chore *)work;
    struct request *request = work->request;
    bool away = recall_needs(request->server, chore->holder, JOB_CHECKPOINTS);
    if (chore->ok) {
        request_reply_file(request, 200, "application/octet-stream", give_fd(&chore->file), 0,
                           (uint64_t)chore->size);
    } else if (!away || chore->err.code != ERR_UNAVAILABLE) {
        request_fail(request, &chore->err);
    } else if (!redirect_is_wanted(request) || !redirect_reply(request, link_of(chore))) {
        recall_pieces(chore);
    }
}

bool checkpoints_give_piece(struct request *request, struct err *err)
{
    struct chore *chore = chore_begin(request);
    return read_attempt(request, chore, true, err) && read_hash(request, chore, err) &&
           chore_give(chore, work_get, reply_piece);
}

/* --- for people ----------------------------------------------------------------------------------------- */

static void write_found(const struct checkpoint_found *found, struct text *out)
{
    member_write_int(out, "{\"attempt\":", found->attempt);
    member_write_text(out, ",\"kind\":", checkpoint_kind_text(found->kind));
    member_write_int_or_null(out, ",\"step\":", found->kind == CHECKPOINT_STEP ? found->number : -1, -1);
    member_write_time(out, ",\"taken_at\":", found->taken_ms);
    member_write_int(out, ",\"files\":", (int64_t)found->manifest.file_count);
    member_write_int(out, ",\"bytes\":", found->manifest.bytes);
    member_write_int(out, ",\"left_out\":", found->manifest.left_files);
    text_append(out, "}");
}

static void work_show(struct task *task)
{
    struct chore *chore = (struct chore *)task;
    struct checkpoint_found found;
    autofree char *problem = checkpoints_problem(chore->checkpoints, chore->job_id);
    chore->ok = checkpoints_last(chore->checkpoints, chore->job_id, 0, &found, &chore->err);
    text_append(&chore->out, "{\"checkpoint\":");
    if (chore->ok && found.found) {
        write_found(&found, &chore->out);
    } else {
        text_append(&chore->out, "null");
    }
    member_write_text(&chore->out, ",\"problem\":", problem);
    member_write_text(&chore->out, ",\"folder\":", chore->folder);
    text_append(&chore->out, "}");
    checkpoint_found_finish(&found);
}

bool checkpoints_show(struct request *request, struct err *err)
{
    struct job_facts job;
    struct chore *chore = chore_begin(request);
    if (!job_find(request, &job, err) || !logs_refuse_array(&job, err)) {
        return false;
    }
    autojson json_t *spec = specs_get(request->server->specs, job.key, err);
    const char *volume = spec != NULL ? json_string_of(spec, "checkpoint_volume") : NULL;
    if (spec == NULL) {
        return false;
    }
    if (volume != NULL) {
        chore->folder =
            xprintf("volume:%s/" CHECKPOINTS_ON_VOLUME "/%s", volume, job_spec_checkpoint_key(spec, job.id));
    }
    memcpy(chore->job_id, job.id, sizeof chore->job_id);
    return chore_give(chore, work_show, reply_json);
}
