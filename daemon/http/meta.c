/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says of itself, and how it is ended: health, version, the contract, shutdown. */
#include <stdlib.h>
#include <string.h>

#include "daemon/writer.h"
#include "daemon/http/contract.h"
#include "daemon/http/mlflow.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "proto/limits.h"
#include "proto/wire/protocol.h"

void meta_health(struct request *request)
{
    request_reply_literal(request, 200, "{\"status\":\"ok\"}");
}

/* MLflow's client takes the version as plain text. */
void meta_version(struct request *request)
{
    if (mlflow_asks(request)) {
        request_reply(request, 200, "text/plain", xstrdup(GPUCTL_VERSION), strlen(GPUCTL_VERSION));
        return;
    }
    struct text json = {0};
    text_printf(&json,
                "{\"version\":\"%s\",\"api\":\"v1\",\"protocol\":%d,\"incarnation\":%u,\"policy\":\"%s\"}",
                GPUCTL_VERSION, PROTOCOL, request->server->config.incarnation,
                policy_text(request->server->config.policy));
    request_reply_json(request, 200, &json);
}

void meta_contract(struct request *request)
{
    request_reply(request, 200, "application/yaml",
                  xstrndup((const char *)contract_yaml, contract_yaml_length), contract_yaml_length);
}

/* Submissions that are on their way to the writer count as live. */
void meta_shutdown(struct request *request)
{
    struct server *server = request->server;
    struct err err;
    size_t live = writer_live_jobs(server->config.writer) + server->submits;
    if (!request_only_fields(request->json, "", &err)) {
        request_fail(request, &err);
    } else if (live > 0) {
        err_set(&err, ERR_CONFLICT, "%zu job%s not over", live, live == 1 ? " is" : "s are");
        err_hint(&err, "wait for them, or cancel them first");
        request_fail(request, &err);
    } else {
        request_reply_literal(request, 202, "{\"status\":\"ending\"}");
        server_stop(server, SERVER_END_SHUTDOWN);
    }
}
