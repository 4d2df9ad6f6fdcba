/* SPDX-License-Identifier: Apache-2.0 */
/* Tells about the server, and ends it: health, version, contract, shutdown. */
#include <stdlib.h>
#include <string.h>

#include "daemon/http/base/state.h"
#include "daemon/http/contract.h"
#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/routes.h"
#include "daemon/http/server.h"
#include "daemon/writer/writer.h"
#include "proto/wire/protocol.h"

bool meta_health(struct request *request, struct err *err)
{
    return request_reply_literal(request, 200, "{\"status\":\"ok\"}");
}

/* MLflow's client takes the version as plain text. */
bool meta_version(struct request *request, struct err *err)
{
    if (mlflow_asks(request)) {
        return request_reply(request, 200, "text/plain", xstrdup(GPUCTL_VERSION), strlen(GPUCTL_VERSION));
    }
    struct text json = {0};
    text_printf(&json,
                "{\"version\":\"%s\",\"api\":\"v1\",\"protocol\":%d,\"incarnation\":%u,\"policy\":\"%s\"}",
                GPUCTL_VERSION, PROTOCOL, request->server->config.incarnation,
                policy_text(request->server->config.policy));
    return request_reply_json(request, 200, &json);
}

bool meta_contract(struct request *request, struct err *err)
{
    return request_reply(request, 200, "application/yaml",
                         xstrndup((const char *)contract_yaml, contract_yaml_length), contract_yaml_length);
}

/* Submissions that are on their way to the writer count as live. */
bool meta_shutdown(struct request *request, struct err *err)
{
    struct server *server = request->server;
    size_t live = writer_live_jobs(server->config.writer) + server->submits;
    if (!request_only_fields(request->json, "", err)) {
        return false;
    }
    if (live > 0) {
        err_set(err, ERR_CONFLICT, "%zu job%s not over", live, live == 1 ? " is" : "s are");
        return err_hint(err, "wait for them, or cancel them first");
    }
    request->changes_more = true;
    request_reply_literal(request, 202, "{\"status\":\"ending\"}");
    server_stop(server, SERVER_END_SHUTDOWN);
    return true;
}
