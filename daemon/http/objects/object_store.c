/* SPDX-License-Identifier: Apache-2.0 */
/* Serves /v1/object-store: where the bytes of users are, what waits to be moved, and which way they move. */
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/objects/objects.h"
#include "proto/base/text/json.h"
#include "proto/members.h"

static bool show(struct request *request)
{
    struct objects *objects = request->server->objects;
    struct text out = {0};
    if (objects == NULL) {
        return request_reply_literal(
            request, 200,
            "{\"kind\":\"files\",\"address\":null,\"to\":\"files\",\"complete\":true,\"waiting_files\":0,"
            "\"waiting_bytes\":0,\"moved_files\":0,\"moved_bytes\":0,\"away_since\":null,\"problem\":null,"
            "\"hint\":null}");
    }
    text_append(&out, "{\"kind\":\"s3\"");
    objects_write_status(objects, &out);
    text_append(&out, "}");
    return request_reply_json(request, 200, &out);
}

bool object_store_show(struct request *request, struct err *err)
{
    return show(request);
}

bool object_store_move(struct request *request, struct err *err)
{
    struct objects *objects = request->server->objects;
    if (!request_only_fields(request->json, "to", err)) {
        return false;
    }
    const char *to = json_string_value(json_object_get(request->json, "to"));
    if (to == NULL || (strcmp(to, "s3") != 0 && strcmp(to, "files") != 0)) {
        return err_field(err, ERR_FIELD, "to", "s3 or files", "to says where the bytes go");
    }
    if (objects == NULL) {
        return err_field(err, ERR_CONFLICT, "to", "start it with gpuctld --object-store s3://BUCKET",
                         "the controller has no object store");
    }
    request->changes_more = true;
    return objects_migrate(objects, strcmp(to, "s3") == 0 ? OBJECTS_TO_STORE : OBJECTS_TO_FILES, err) &&
           show(request);
}
