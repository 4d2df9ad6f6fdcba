/* SPDX-License-Identifier: Apache-2.0 */
/* Notes when tokens are used, and tells people whose token soon ends. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/audit/audit.h"
#include "daemon/http/auth/auth.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/writer/writer.h"
#include "proto/base/clock.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/wire/token.h"

struct use {
    struct writer_request writer;
    struct change changes[2];
    char node[LIMIT_NAME_BYTES + 1];
    char id[TOKEN_ID_LENGTH + 1];
};

/* What is not taken is noted with a later use. */
static void note(const struct server *server, const char *id, const char *node)
{
    struct use *use = xzalloc(sizeof *use);
    snprintf(use->id, sizeof use->id, "%s", id);
    snprintf(use->node, sizeof use->node, "%s", node != NULL ? node : "");
    use->changes[0] =
        (struct change){.kind = CHANGE_TOKEN_USE, .token = {.id = use->id, .used_ms = server->wall_ms}};
    use->changes[1] =
        (struct change){.kind = CHANGE_TOKENS_RETIRE, .token = {.id = use->id, .node = use->node}};
    use->writer = (struct writer_request){.kind = WRITER_RECORD,
                                          .records = use->changes,
                                          .record_count = node != NULL ? 2 : 1,
                                          .render = audit_render_nothing,
                                          .arrived_ms = server->now_ms,
                                          .done = audit_note_done};
    if (!writer_ask(server->config.writer, &use->writer)) {
        free(use);
    }
}

/* A node that uses a new token of its own has it on its disk, and needs the older ones no more. */
void audit_token_used(const struct request *request)
{
    const struct server *server = request->server;
    const char *id = identity_id(request->who), *node = identity_node(request->who);
    bool first;
    if (!auth_use(server->auth, id, server->wall_ms, &first)) {
        return;
    }
    node = first ? node : NULL;
    if (node != NULL) {
        auth_retire(server->auth, node, id);
    }
    note(server, id, node);
}

void audit_warn_of_end(struct request *request)
{
    char at[32];
    int64_t expires_ms = request->who != NULL ? identity_expires_ms(request->who) : 0;
    if (request->person && request->session.expires_s == 0 && expires_ms != 0 &&
        expires_ms - request->server->wall_ms < TOKEN_WARN_MS && !identity_logged_in(request->who)) {
        clock_format_wall(expires_ms, at, sizeof at);
        request_header(request, TOKEN_EXPIRES_HEADER, at);
    }
}
