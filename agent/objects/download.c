/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the controller for the bytes, and follows its redirect to the object store. Bytes that the store does
 * not give, or gives with another hash, come from the controller: a node needs no way to the store. */
#include "agent/objects/download.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"

struct download {
    struct download_call call;
    char *path;
    char hash[HASH_HEX + 1];
    struct hash *sum;                   /* of what has arrived in this try */
    struct controller_request *request; /* NULL: the store is asked */
    struct object_request *object;      /* NULL: the controller is asked */
    int store_tries;                    /* that have failed */
    bool gave_up;                       /* arrive returned false */
};

static void ask_controller(struct download *download);

void download_cancel(struct download *download)
{
    uint8_t ignored[HASH_BYTES];
    if (download == NULL) {
        return;
    }
    controller_cancel(download->request);
    object_client_cancel(download->object);
    hash_finish(download->sum, ignored);
    free(download->path);
    free(download);
}

static void end(struct download *download, const struct err *err)
{
    const struct download_call call = download->call;
    download_cancel(download);
    call.done(call.closure, err);
}

static bool arrived(void *closure, const void *bytes, size_t length, bool first)
{
    struct download *download = closure;
    uint8_t ignored[HASH_BYTES];
    if (first) {
        hash_finish(download->sum, ignored);
        download->sum = hash_create();
    }
    hash_update(download->sum, bytes, length);
    download->gave_up = !download->call.arrive(download->call.closure, bytes, length, first);
    return !download->gave_up;
}

/* Whether the bytes that have arrived are the right ones. */
static bool is_right(struct download *download, struct err *err)
{
    uint8_t sum[HASH_BYTES];
    char hex[HASH_HEX + 1];
    hash_finish(download->sum, sum);
    download->sum = hash_create(); /* of the next try */
    text_to_hex(sum, HASH_BYTES, hex);
    return strcmp(hex, download->hash) == 0 || err_set(err, ERR_IO, "arrived with another content, %s", hex);
}

/* --- from the store ------------------------------------------------------------------------------------- */

/* A store that has answered gets another try. */
static void store_failed(struct download *download, const struct err *err)
{
    bool again = err->code == ERR_UNAVAILABLE && download->store_tries + 1 < OBJECT_STORE_TRIES;
    download->store_tries = again ? download->store_tries + 1 : OBJECT_STORE_TRIES;
    if (!again) {
        object_client_judge(download->call.objects, err);
    }
    ask_controller(download);
}

static void object_fetched(void *closure, const struct err *problem)
{
    struct download *download = closure;
    struct err err;
    download->object = NULL;
    if (download->gave_up) {
        err_set(&err, ERR_IO, "could not be stored");
        end(download, &err);
    } else if (problem != NULL) {
        store_failed(download, problem);
    } else if (is_right(download, &err)) {
        object_client_judge(download->call.objects, NULL);
        end(download, NULL);
    } else {
        log_error("object damaged", "hash=%s problem=\"it %s\"", download->hash, err.text);
        download->store_tries = OBJECT_STORE_TRIES;
        ask_controller(download);
    }
}

static void ask_store(struct download *download, const char *url)
{
    struct err err;
    download->object =
        object_client_get(download->call.objects, url, arrived, object_fetched, download, &err);
    if (download->object == NULL) {
        store_failed(download, &err);
    }
}

/* --- from the controller -------------------------------------------------------------------------------- */

static void answered(void *closure, const struct controller_answer *answer)
{
    struct download *download = closure;
    struct err err;
    download->request = NULL;
    if (answer->status == 307 && answer->location != NULL && download->store_tries < OBJECT_STORE_TRIES) {
        ask_store(download, answer->location);
    } else if (answer->status != 200) {
        err = answer->problem;
        err_set(&err, err.code, "cannot be fetched: %s", answer->problem.text);
        end(download, &err);
    } else {
        end(download, is_right(download, &err) ? NULL : &err);
    }
}

static void ask_controller(struct download *download)
{
    const struct download_call *call = &download->call;
    bool redirect = download->store_tries < OBJECT_STORE_TRIES && object_client_is_open(call->objects);
    const char *mark = strchr(download->path, '?') != NULL ? "&" : "?";
    autofree char *path =
        xprintf("%s%s%s", download->path, redirect ? mark : "", redirect ? "redirect=1" : "");
    download->request = controller_send(call->controller, &(struct controller_call){
                                                              .path = path,
                                                              .arrive = arrived,
                                                              .timeout_ms = TRANSFER_TIMEOUT_MS,
                                                              .persistent = true,
                                                              .done = answered,
                                                              .closure = download,
                                                          });
}

struct download *download_begin(const struct download_call *call)
{
    struct download *download = xzalloc(sizeof *download);
    download->call = *call;
    download->path = xstrdup(call->path);
    snprintf(download->hash, sizeof download->hash, "%s", call->hash);
    download->sum = hash_create();
    ask_controller(download);
    return download;
}
