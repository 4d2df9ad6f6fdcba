/* SPDX-License-Identifier: Apache-2.0 */
/* Serves POST /v1/agent/token: another token for the node that asks, bound to it like the one that it asks
 * with. The older ones end when the new one is used (audit/token_use.c). */
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/members.h"

struct renewal {
    struct ask ask;
    struct token token; /* its id; the secret is the node's */
    char node[LIMIT_NAME_BYTES + 1];
    struct change change;
};

static int render_renewed(const struct writer_request *writer, const struct step *step, struct text *out)
{
    const struct renewal *renewal = writer->asker;
    member_write_text(out, "{\"token_id\":", renewal->token.id);
    text_append(out, "}");
    return 201;
}

static void renewed(struct ask *ask)
{
    const struct renewal *renewal = (struct renewal *)ask;
    auth_put(ask->request->server->auth, &renewal->change.token);
}

static bool read_order(const struct request *request, uint8_t secret[HASH_BYTES], struct err *err)
{
    const char *node = "", *hex = "";
    if (!request_only_fields(request->json, "node secret_sha256", err) ||
        !json_need_text(request->json, "node", &node, err) ||
        !json_need_text(request->json, "secret_sha256", &hex, err) ||
        !identity_acts_for(request->who, node, err)) {
        return false;
    }
    if (identity_node(request->who) == NULL) {
        err_set(err, ERR_CONFLICT, "the token is bound to no node, so it is not renewed");
        return err_hint(err, "have the node join with gpuagent join, for a token of its own");
    }
    return text_from_hex(hex, secret, HASH_BYTES) ||
           err_field(err, ERR_FIELD, "secret_sha256", NULL, "secret_sha256 must be 64 hexadecimal digits");
}

bool agents_renew_token(struct request *request, struct err *err)
{
    struct server *server = request->server;
    uint8_t secret[HASH_BYTES], random[TOKEN_RANDOM_BYTES];
    if (!read_order(request, secret, err)) {
        return false;
    }
    struct renewal *renewal = ask_create(request, sizeof *renewal, render_renewed);
    server_random(server, random, sizeof random);
    token_make(random, &renewal->token);
    snprintf(renewal->node, sizeof renewal->node, "%s", identity_node(request->who));
    renewal->change = (struct change){.kind = CHANGE_TOKEN_INSERT,
                                      .token = {.id = renewal->token.id,
                                                .role = ROLE_NODE,
                                                .owner = renewal->node,
                                                .created_ms = server->wall_ms,
                                                .node = renewal->node}};
    memcpy(renewal->change.token.secret, secret, HASH_BYTES);
    renewal->ask.subject = renewal->token.id;
    renewal->ask.writer.kind = WRITER_RECORD;
    renewal->ask.writer.records = &renewal->change;
    renewal->ask.writer.record_count = 1;
    renewal->ask.committed = renewed;
    return ask_writer(renewal, err);
}
