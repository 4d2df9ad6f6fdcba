/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of accounts, projects and users, and of pools: what they may use, and what they do use. It
 * promises that a user sees its own alone. All of it is asked of the core, for shares and counts are in no
 * row; the writer answers in the order of changes, so that an answer shows what was committed before it. */
#include <string.h>

#include "daemon/http/ask.h"
#include "daemon/http/parts.h"
#include "daemon/http/resources.h"
#include "daemon/http/router.h"
#include "proto/spec/account_limits.h"
#include "proto/base/json.h"
#include "proto/limits.h"

static int render_answer(const struct writer_request *writer, const struct step *step, struct text *out)
{
    text_append(out, step->answer);
    return 200;
}

/* --- questions ------------------------------------------------------------------------------------------ */

static void ask_accounts(struct request *request, enum account_kind kind, const char *name)
{
    struct ask *ask = ask_create(request, sizeof *ask, render_answer);
    ask->writer.input.kind = INPUT_ACCOUNTS;
    ask->writer.input.accounts.viewer = request_owner_scope(request);
    ask->writer.input.accounts.kind = kind;
    ask->writer.input.accounts.name = name;
    ask->writer.input.accounts.after = query_text(request->query, "cursor");
    ask_writer(ask);
}

void accounts_list(struct request *request)
{
    ask_accounts(request, ACCOUNT_PROJECT, NULL);
}

void accounts_show_project(struct request *request)
{
    ask_accounts(request, ACCOUNT_PROJECT, request->argument);
}

void accounts_show_user(struct request *request)
{
    ask_accounts(request, ACCOUNT_USER, request->argument);
}

void pools_list(struct request *request)
{
    struct ask *ask = ask_create(request, sizeof *ask, render_answer);
    ask->writer.input.kind = INPUT_POOLS;
    ask_writer(ask);
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
    return text_is_name(request->argument, LIMIT_NAME_BYTES) ||
           err_field(err, ERR_FIELD, "name", NULL,
                     "a name has 1 to %d letters, digits and . _ -, and starts with a letter or digit",
                     LIMIT_NAME_BYTES);
}

static struct limits_ask *limits_ask_create(struct request *request, enum account_kind kind, bool force)
{
    struct limits_ask *asked = ask_create(request, sizeof *asked, render_answer);
    account_limits_init(&asked->limits);
    asked->ask.finish = limits_finish;
    asked->ask.writer.input.kind = INPUT_LIMITS;
    asked->ask.writer.input.limits.kind = kind;
    asked->ask.writer.input.limits.name = request->argument;
    asked->ask.writer.input.limits.force = force;
    return asked;
}

static void put(struct request *request, enum account_kind kind)
{
    struct err err;
    struct account_limits limits;
    bool force = false;
    bool ok = check_name(request, &err) && json_read_bool(request->json, "force", &force, &err);
    json_object_del(request->json, "force"); /* says how, not what */
    if (!ok || !account_limits_decode(request->json, kind, &limits, &err)) {
        request_fail(request, &err);
        return;
    }
    struct limits_ask *asked = limits_ask_create(request, kind, force);
    asked->limits = limits;
    account_limits_encode(&asked->limits, kind, &asked->text);
    asked->ask.writer.input.limits.limits = &asked->limits;
    asked->ask.writer.input.limits.text = asked->text.bytes;
    ask_writer(&asked->ask);
}

static void unset(struct request *request, enum account_kind kind)
{
    struct err err;
    int64_t force = 0;
    if (!check_name(request, &err) || !query_int(request->query, "force", 0, 1, &force, &err)) {
        request_fail(request, &err);
        return;
    }
    ask_writer(&limits_ask_create(request, kind, force != 0)->ask);
}

void accounts_put_project(struct request *request)
{
    put(request, ACCOUNT_PROJECT);
}

void accounts_put_user(struct request *request)
{
    put(request, ACCOUNT_USER);
}

void accounts_unset_project(struct request *request)
{
    unset(request, ACCOUNT_PROJECT);
}

void accounts_unset_user(struct request *request)
{
    unset(request, ACCOUNT_USER);
}

void pools_put(struct request *request)
{
    put(request, ACCOUNT_POOL);
}
