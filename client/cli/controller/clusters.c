/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the saved contexts, and asks all of their controllers the same. One that is away or whose login has
 * ended costs the others nothing. */
#include "client/cli/controller/clusters.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/controller/renew.h"
#include "client/cli/transport/context.h"
#include "client/cli/login/saved_context.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

#define TURN_MS 10 /* in which one of several is waited for */

static void open_one(struct clusters *clusters, const struct saved_context *saved)
{
    struct cluster *cluster = &clusters->items[clusters->count++];
    struct context context;
    *cluster = (struct cluster){.name = xstrdup(saved->name != NULL ? saved->name : SAVED_CONTEXT_DEFAULT)};
    if (context_load_saved(saved, &context, &cluster->err) && renew_login(&context, &cluster->err)) {
        cluster->api = api_create(&context);
    }
    context_finish(&context);
}

static bool is_named(const struct call *call, struct err *err)
{
    const char *given = call->common->context != NULL ? "context" : call->common->url != NULL ? "url" : NULL;
    if (given != NULL) {
        err_field(err, ERR_USAGE, given, "leave it out", "--%s names one controller, and all are asked for",
                  given);
    }
    return given != NULL;
}

bool clusters_open(const struct call *call, struct clusters *ret_clusters, struct err *err)
{
    autosaved_context struct saved_context used = {.name = NULL};
    autonames struct file_names names = {NULL, 0};
    *ret_clusters = (struct clusters){0};
    if (is_named(call, err)) {
        return false;
    }
    bool any = saved_context_used(&used);
    saved_context_list(&names);
    ret_clusters->items = xzalloc((names.count + 1) * sizeof *ret_clusters->items);
    if (any) {
        open_one(ret_clusters, &used);
    }
    for (size_t i = 0; i < names.count; i++) {
        autosaved_context struct saved_context saved = {.name = NULL};
        bool first = any && used.name != NULL && strcmp(used.name, names.items[i]) == 0;
        if (!first && saved_context_read(names.items[i], &saved)) {
            open_one(ret_clusters, &saved);
        }
    }
    if (ret_clusters->count == 0) {
        err_set(err, ERR_USAGE, "you have named no controllers");
        return err_hint(err, "name each: gpuctl login URL --context NAME, or gpuctl context add NAME URL");
    }
    return true;
}

bool clusters_first(const struct clusters *clusters, struct api **ret_api, struct err *err)
{
    for (size_t i = 0; i < clusters->count; i++) {
        if (clusters->items[i].api != NULL) {
            *ret_api = clusters->items[i].api;
            return true;
        }
    }
    *err = clusters->items[0].err;
    return false;
}

void clusters_close(struct clusters *clusters)
{
    for (size_t i = 0; i < clusters->count; i++) {
        free(clusters->items[i].name);
        json_decref(clusters->items[i].answer);
        api_destroy(clusters->items[i].api);
    }
    free(clusters->items);
    *clusters = (struct clusters){0};
}

/* --- asking --------------------------------------------------------------------------------------------- */

/* Moves all of them on; whether one has still to answer. */
static bool turn(struct clusters *clusters, struct transfer *const *transfers)
{
    bool left = false;
    for (size_t i = 0; i < clusters->count; i++) {
        if (transfers[i] != NULL && !transfer_done(transfers[i])) {
            api_turn(clusters->items[i].api, TURN_MS);
            left = true;
        }
    }
    return left;
}

static void take(struct cluster *cluster, struct transfer *transfer)
{
    json_decref(cluster->answer);
    cluster->answer = NULL;
    if (transfer != NULL) {
        const struct text *body = transfer_body(transfer);
        cluster->answer =
            transfer_result(transfer, &cluster->err)
                ? json_parse(body->bytes != NULL ? body->bytes : "", body->length, &cluster->err)
                : NULL;
        transfer_destroy(transfer);
    }
}

void clusters_ask(struct clusters *clusters, const struct request *request)
{
    struct request bounded = *request;
    autofree struct transfer **transfers = xzalloc((clusters->count + 1) * sizeof(struct transfer *));
    bounded.timeout_ms = CLIENT_ASK_ALL_MS;
    for (size_t i = 0; i < clusters->count; i++) {
        struct api *api = clusters->items[i].api;
        transfers[i] = api != NULL ? transfer_start(api, &bounded, NULL, NULL) : NULL;
    }
    while (turn(clusters, transfers)) {
    }
    for (size_t i = 0; i < clusters->count; i++) {
        take(&clusters->items[i], transfers[i]);
    }
}
