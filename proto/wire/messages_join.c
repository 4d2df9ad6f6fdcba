/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the messages by which a node joins the cluster and leaves it. A decoded join has a
 * valid node name and a hash of full length. The controller decides whether the token is valid. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"
#include "proto/wire/messages.h"

/* --- join --- */

json_t *join_message_encode(const struct join_message *message)
{
    char hex[2 * HASH_BYTES + 1];
    json_t *json = json_object();
    text_to_hex(message->secret, HASH_BYTES, hex);
    member_put_text(json, "token", message->token);
    member_put_text(json, "name", message->name);
    member_put_text(json, "secret_sha256", hex);
    return json;
}

bool join_message_decode(json_t *json, struct join_message *ret_message, struct err *err)
{
    struct join_message message = {.json = json};
    const char *hex = "";
    bool good = member_holder(json, err) && json_need_text(json, "token", &message.token, err) &&
                json_need_text(json, "name", &message.name, err) &&
                json_need_text(json, "secret_sha256", &hex, err);
    if (good && !text_is_name(message.name, LIMIT_NAME_BYTES)) {
        good = err_field(err, ERR_FIELD, "name", "use letters, digits, '.', '_' and '-'",
                         "\"%.64s\" cannot be the name of a node", message.name);
    }
    if (good && !text_from_hex(hex, message.secret, HASH_BYTES)) {
        good =
            err_field(err, ERR_FIELD, "secret_sha256", NULL, "secret_sha256 must be 64 hexadecimal digits");
    }
    if (!good) {
        join_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void join_message_finish(struct join_message *message)
{
    json_decref(message->json);
    *message = (struct join_message){0};
}

json_t *join_reply_encode(const struct join_reply *reply)
{
    json_t *json = json_object();
    member_put_text(json, "token_id", reply->token_id);
    member_put_text(json, "pool", reply->pool);
    member_put_bool(json, "reserved", reply->reserved);
    return json;
}

bool join_reply_decode(json_t *json, struct join_reply *ret_reply, struct err *err)
{
    struct join_reply reply = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "token_id", &reply.token_id, err) &&
                json_read_text(json, "pool", &reply.pool, err) &&
                json_read_bool(json, "reserved", &reply.reserved, err);
    if (!good) {
        join_reply_finish(&reply);
        return false;
    }
    *ret_reply = reply;
    return true;
}

void join_reply_finish(struct join_reply *reply)
{
    json_decref(reply->json);
    *reply = (struct join_reply){0};
}

/* --- leave --- */

json_t *leave_message_encode(const struct leave_message *message)
{
    json_t *json = json_object();
    member_put_text(json, "node", message->node);
    member_put_text(json, "boot_id", message->boot_id);
    member_put_text(json, "agent_id", message->agent_id);
    member_put_text(json, "reason", message->reason);
    member_put_bool(json, "stop", message->stop);
    member_put_bool(json, "forget", message->forget);
    return json;
}

bool leave_message_decode(json_t *json, struct leave_message *ret_message, struct err *err)
{
    struct leave_message message = {.json = json};
    bool good = member_holder(json, err) && json_need_text(json, "node", &message.node, err) &&
                json_need_text(json, "boot_id", &message.boot_id, err) &&
                json_read_text(json, "agent_id", &message.agent_id, err) &&
                json_need_text(json, "reason", &message.reason, err) &&
                json_read_bool(json, "stop", &message.stop, err) &&
                json_read_bool(json, "forget", &message.forget, err);
    if (good && strlen(message.reason) > LIMIT_REASON_BYTES) {
        good = err_field(err, ERR_FIELD, "reason", NULL, "the reason is longer than %d bytes",
                         LIMIT_REASON_BYTES);
    }
    if (!good) {
        leave_message_finish(&message);
        return false;
    }
    *ret_message = message;
    return true;
}

void leave_message_finish(struct leave_message *message)
{
    json_decref(message->json);
    *message = (struct leave_message){0};
}

json_t *leave_reply_encode(const struct leave_reply *reply)
{
    json_t *json = json_object();
    member_put_bool(json, "gone", reply->gone);
    return json;
}

bool leave_reply_decode(json_t *json, struct leave_reply *ret_reply, struct err *err)
{
    struct leave_reply reply = {.json = json};
    if (!member_holder(json, err) || !json_read_bool(json, "gone", &reply.gone, err)) {
        leave_reply_finish(&reply);
        return false;
    }
    *ret_reply = reply;
    return true;
}

void leave_reply_finish(struct leave_reply *reply)
{
    json_decref(reply->json);
    *reply = (struct leave_reply){0};
}
