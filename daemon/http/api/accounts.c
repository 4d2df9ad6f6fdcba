/* SPDX-License-Identifier: Apache-2.0 */
/* Serves accounts, which are projects and users, and pools: their limits and their use. A user sees only
 * its own. The core answers all of it, because shares and counts are in no row. The writer answers in the
 * order of changes, so an answer shows everything that was committed before it. */
#include <string.h>

#include "daemon/http/api/ask.h"
#include "daemon/http/auth/projects.h"
#include "daemon/http/base/state.h"
#include "daemon/http/request/request.h"
#include "daemon/http/request/route.h"
#include "daemon/http/request/routes.h"
#include "proto/spec/account_limits.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"

/* --- questions ------------------------------------------------------------------------------------------ */

static bool ask_accounts(struct request *request, enum account_kind kind, const char *name, struct err *err)
{
    struct ask *ask = ask_create(request, sizeof *ask, NULL);
    ask->writer.input.kind = INPUT_ACCOUNTS;
    ask->writer.input.accounts.viewer = request_owner_scope(request);
    ask->writer.input.accounts.kind = kind;
    ask->writer.input.accounts.name = name;
    ask->writer.input.accounts.after = query_text(request->query, "cursor");
    return ask_writer(ask, err);
}

bool accounts_list(struct request *request, struct err *err)
{
    return ask_accounts(request, ACCOUNT_PROJECT, NULL, err);
}

bool accounts_show(struct request *request, struct err *err)
{
    return ask_accounts(request, (enum account_kind)request->route->what, request->argument, err);
}

bool pools_list(struct request *request, struct err *err)
{
    struct ask *ask = ask_create(request, sizeof *ask, NULL);
    ask->writer.input.kind = INPUT_POOLS;
    return ask_writer(ask, err);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* Limits on their way to the writer. */
struct limits_ask {
    struct ask ask;
    struct account_limits limits;
    struct text text; /* the same as JSON */
};

static void limits_finish(struct ask *ask)
{
    struct limits_ask *asked = (struct limits_ask *)ask;
    account_limits_finish(&asked->limits);
    text_finish(&asked->text);
}

static bool check_name(const struct request *request, struct err *err)
{
    bool user = request->route->what == ACCOUNT_USER; /* or a service account */
    return (user ? text_is_owner : text_is_name)(request->argument, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_FIELD, "name", NULL,
                     "a name has 1 to %d letters, digits and . _ -, and starts with a letter or digit",
                     LIMIT_NAME_BYTES);
}

/* Who may do what follows at once: with the answer, at the latest. */
static void limits_committed(struct ask *ask)
{
    struct server *server = ask->request->server;
    struct err err;
    struct projects *projects = projects_load(server->reader, &err);
    if (projects == NULL) {
        server_fail(server, &err); /* somebody who is no member any more must not go on */
        return;
    }
    projects_release(server->projects);
    server->projects = projects;
}

static struct limits_ask *limits_ask_create(struct request *request)
{
    struct limits_ask *asked = ask_create(request, sizeof *asked, NULL);
    account_limits_init(&asked->limits);
    asked->ask.finish = limits_finish;
    asked->ask.writer.input.kind = INPUT_LIMITS;
    asked->ask.writer.input.limits.kind = (enum account_kind)request->route->what;
    asked->ask.writer.input.limits.name = request->argument;
    asked->ask.committed = limits_committed;
    return asked;
}

bool accounts_put(struct request *request, struct err *err)
{
    enum account_kind kind = (enum account_kind)request->route->what;
    bool force = false;
    if (!check_name(request, err) || !json_read_bool(request->json, "force", &force, err)) {
        return false;
    }
    json_object_del(request->json, "force"); /* says how, not what */
    autoask struct limits_ask *asked = limits_ask_create(request);
    if (!account_limits_decode(request->json, kind, &asked->limits, err)) {
        return false;
    }
    account_limits_encode(&asked->limits, kind, &asked->text);
    asked->ask.writer.input.limits.force = force;
    asked->ask.writer.input.limits.limits = &asked->limits;
    asked->ask.writer.input.limits.text = asked->text.bytes;
    return ask_writer(give(asked), err);
}

bool accounts_unset(struct request *request, struct err *err)
{
    int64_t force = 0;
    if (!check_name(request, err) || !query_int(request->query, "force", 0, 1, &force, err)) {
        return false;
    }
    struct limits_ask *asked = limits_ask_create(request);
    asked->ask.writer.input.limits.force = force != 0;
    return ask_writer(asked, err);
}
