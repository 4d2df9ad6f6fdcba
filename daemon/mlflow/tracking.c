/* SPDX-License-Identifier: Apache-2.0 */
/* The handle of the tracking store, and the way of a request to its endpoint. Each call is one transaction,
 * which leaves no half answer when it fails. */
#include "daemon/mlflow/tracking.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/mlflow/call/endpoints.h"
#include "daemon/mlflow/database/database.h"
#include "proto/base/clock.h"

/* --- the handle --- */

struct tracking *tracking_open(const char *path, struct err *err)
{
    struct tracking *tracking = xzalloc(sizeof *tracking);
    if (!database_open(tracking, path, err)) {
        tracking_close(tracking);
        return NULL;
    }
    return tracking;
}

void tracking_shorten_log(struct tracking *tracking)
{
    database_shorten_log(tracking);
}

void tracking_interrupt(struct tracking *tracking)
{
    sqlite3_interrupt(tracking->db);
}

bool tracking_sync(struct tracking *tracking, struct err *err)
{
    return database_sync(tracking, err);
}

void tracking_close(struct tracking *tracking)
{
    if (tracking != NULL) {
        database_close(tracking);
        free(tracking);
    }
}

/* --- endpoints --- */

enum effect { READS, SEARCHES, WRITES, ADDS };

static const struct tracking_endpoint endpoints[] = {
#define AS_ROW(method, path, name, effect)                                                                   \
    {#method, path, work_##name, (effect) == SEARCHES, (effect) >= WRITES, (effect) == ADDS},
    ENDPOINTS(AS_ROW)
#undef AS_ROW
        {"GET", "artifacts/list", NULL, true, false, false},
};

/* Goes along both; body not NULL: a part that stands for a parameter is put there. */
static bool fits(const char *pattern, const char *path, json_t *body)
{
    while (*pattern != '\0' || *path != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++) {
                return false;
            }
            continue;
        }
        size_t name = strcspn(pattern, "}") - 1;
        size_t length = strcspn(path, "/");
        if (length == 0) {
            return false;
        }
        if (body != NULL) {
            json_object_setn_new(body, pattern + 1, name, json_stringn(path, length));
        }
        pattern += name + 2;
        path += length;
    }
    return true;
}

const struct tracking_endpoint *tracking_endpoint_find(const char *method, const char *path)
{
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        if (strcmp(endpoints[i].method, method) == 0 && fits(endpoints[i].path, path, NULL)) {
            return &endpoints[i];
        }
    }
    return NULL;
}

void tracking_endpoint_arguments(const struct tracking_endpoint *endpoint, const char *path, json_t *body)
{
    if (json_is_object(body)) {
        fits(endpoint->path, path, body);
    }
}

bool tracking_serve(struct tracking *tracking, const struct tracking_endpoint *endpoint,
                    const struct tracking_request *request, struct text *out, struct tracking_error *error)
{
    struct call call = {.tracking = tracking, .request = *request, .out = out, .error = error};
    text_append(out, "");
    size_t before = out->length;
    database_begin(&call, endpoint->writes);
    tracking->stop_ms = endpoint->searches ? clock_boot_ms() + tracking->search_ms : 0;
    endpoint->work(&call);
    tracking->stop_ms = 0;
    if (!database_end(&call)) {
        out->length = before;
        out->bytes[before] = '\0';
        return false;
    }
    text_append(out, out->length == before ? "{}" : "");
    return true;
}
