/* SPDX-License-Identifier: Apache-2.0 */
/* Has threads of their own wait for the object store, each for things whose names it is responsible for, so
 * that one thing is fetched once however many ask for it. Only what needs the store waits for it. */
#include "daemon/http/objects/recalls.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/blob/worker.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/request_work.h"
#include "proto/base/text/text.h"
#include "proto/limits_objects.h"

struct recalls {
    struct worker *workers[OBJECT_RECALLERS];
    struct watch watches[OBJECT_RECALLERS];
    int waiting;
};

struct recall {
    struct request_work work; /* first */
    struct server *server;
    char job_id[ID_LENGTH + 1]; /* "": it is a blob */
    enum job_files what;
    uint8_t hash[HASH_BYTES];
    recall_again *again;
    bool ok;
    struct err err;
};

struct worker *recalls_worker(const struct server *server, const char *name)
{
    uint8_t hash[HASH_BYTES];
    hash_bytes(name, strlen(name), hash);
    return server->recalls->workers[hash[0] % OBJECT_RECALLERS];
}

static void recall_work(struct task *task)
{
    struct recall *recall = (struct recall *)task;
    struct objects *objects = recall->server->objects;
    recall->ok = recall->job_id[0] != '\0'
                     ? objects_recall_job(objects, recall->job_id, recall->what, &recall->err)
                     : objects_recall_blob(objects, recall->hash, &recall->err);
}

static void recall_free(struct request_work *work)
{
    free(work);
}

static void recall_returned(struct request_work *work)
{
    ((struct recall *)work)->server->recalls->waiting--;
}

/* The request is as before the recall. */
static void recall_reply(struct request_work *work)
{
    struct recall *recall = (struct recall *)work;
    struct request *request = work->request;
    struct err err = recall->err;
    recall_again *again = recall->again;
    bool ok = recall->ok;
    request->state = NULL;
    request->state_finish = NULL;
    free(recall);
    if (!ok || !again(request, &err)) {
        request_fail(request, &err);
    }
}

static struct recall *recall_create(struct server *server, recall_again *again, struct err *err)
{
    if (server->recalls->waiting >= LIMIT_OBJECT_RECALLS) {
        err_set(err, ERR_UNAVAILABLE, "too many requests wait for the object store");
        err_hint(err, "at most %d do", LIMIT_OBJECT_RECALLS);
        return NULL;
    }
    server->recalls->waiting++;
    struct recall *recall = xzalloc(sizeof *recall);
    recall->server = server;
    recall->again = again;
    recall->work.returned = recall_returned;
    return recall;
}

bool recall_blob(struct request *request, const uint8_t hash[HASH_BYTES], recall_again *again,
                 struct err *err)
{
    char name[HASH_HEX + 1];
    struct server *server = request->server;
    struct recall *recall = recall_create(server, again, err);
    if (recall == NULL) {
        return false;
    }
    memcpy(recall->hash, hash, HASH_BYTES);
    text_to_hex(hash, HASH_BYTES, name);
    request_work_begin(&recall->work, request, recall_free);
    return request_work_give(&recall->work, recalls_worker(server, name), recall_work, recall_reply);
}

/* --- files of jobs -------------------------------------------------------------------------------------- */

bool recall_needs(const struct server *server, const char *job_id, enum job_files what)
{
    return server->objects != NULL && objects_have_job(server->objects, job_id, what);
}

static struct recall *create_for_job(struct server *server, const char *job_id, enum job_files what,
                                     recall_again *again, struct err *err)
{
    struct recall *recall = recall_create(server, again, err);
    if (recall != NULL) {
        memcpy(recall->job_id, job_id, sizeof recall->job_id);
        recall->what = what;
    }
    return recall;
}

bool recall_job(struct request *request, const char *job_id, enum job_files what, recall_again *again,
                struct err *err)
{
    struct recall *recall = create_for_job(request->server, job_id, what, again, err);
    if (recall == NULL) {
        return false;
    }
    struct worker *worker = recalls_worker(request->server, job_id);
    request_work_begin(&recall->work, request, recall_free);
    return request_work_give(&recall->work, worker, recall_work, recall_reply);
}

static void soon_done(struct task *task)
{
    struct recall *recall = (struct recall *)task;
    recall_returned(&recall->work);
    free(recall);
}

bool recall_job_soon(struct server *server, const char *job_id, enum job_files what, struct err *err)
{
    struct recall *recall = create_for_job(server, job_id, what, NULL, err);
    if (recall == NULL) {
        return false;
    }
    recall->work.task = (struct task){.work = recall_work, .done = soon_done};
    worker_give(recalls_worker(server, job_id), &recall->work.task);
    err_set(err, ERR_UNAVAILABLE, "the files of job %s come back from the object store", job_id);
    return err_hint(err, "try again");
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void worker_ready(struct watch *watch)
{
    worker_collect(watch->closure);
}

static bool open_worker(struct server *server, struct worker **ret_worker, struct watch *watch,
                        struct err *err)
{
    *ret_worker = worker_open(err);
    if (*ret_worker == NULL) {
        return false;
    }
    *watch = (struct watch){.fd = worker_fd(*ret_worker), .ready = worker_ready, .closure = *ret_worker};
    return server_watch(server, watch, err);
}

bool recalls_open(struct server *server, struct artifacts *artifacts, struct err *err)
{
    const struct server_config *config = &server->config;
    if (config->object_store == NULL) {
        return !objects_are_needed(config->state_directory, err);
    }
    const struct objects_config objects = {.address = config->object_store,
                                           .credentials_file = config->object_credentials,
                                           .state_directory = config->state_directory,
                                           .store_path = config->store_path,
                                           .after_ms = config->object_after_ms,
                                           .spool_bytes = config->object_spool_bytes,
                                           .blobs = config->blobs,
                                           .logs = config->logs,
                                           .artifacts = artifacts,
                                           .checkpoints = config->checkpoints};
    server->recalls = xzalloc(sizeof *server->recalls);
    for (size_t i = 0; i < OBJECT_RECALLERS; i++) {
        if (!open_worker(server, &server->recalls->workers[i], &server->recalls->watches[i], err)) {
            return false;
        }
    }
    server->objects = objects_open(&objects, err);
    return server->objects != NULL;
}

void recalls_close(struct server *server)
{
    if (server->objects != NULL) {
        objects_stop(server->objects);
    }
    for (size_t i = 0; server->recalls != NULL && i < OBJECT_RECALLERS; i++) {
        worker_close(server->recalls->workers[i]);
    }
    free(server->recalls);
    server->recalls = NULL;
}
