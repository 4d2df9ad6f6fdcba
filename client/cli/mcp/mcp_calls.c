/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the tools, but for job_logs. It adds nothing to what the API says, so that fields of jobs and
 * errors mean what they mean everywhere. Long parts of a job are left out, and say how long they were. */
#include "client/cli/mcp/mcp_calls.h"

#include <string.h>

#include "client/cli/mcp/mcp_arguments.h"
#include "client/cli/transport/pages.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

/* Appends the answer, which it takes over. false: there is none. */
static bool put(json_t *answer, struct text *out)
{
    autojson json_t *owned = answer;
    if (owned != NULL) {
        autofree char *text = json_text(owned);
        text_append(out, text);
    }
    return owned != NULL;
}

/* --- questions ------------------------------------------------------------------------------------------ */

/* Appends arguments to the query of a path, under the same names. */
static void add_texts(struct text *path, const json_t *arguments, const char *const *names)
{
    for (; *names != NULL; names++) {
        api_query(path, *names, json_string_of(arguments, *names));
    }
}

static void add_wholes(struct text *path, const json_t *arguments, const char *const *names)
{
    for (; *names != NULL; names++) {
        pages_number(path, *names, mcp_arguments_whole(arguments, *names, NOT_GIVEN));
    }
}

bool mcp_list_jobs(const struct mcp_call *call, struct text *out, struct err *err)
{
    static const char *const texts[] = {"state", "name",  "project", "owner",  "node",
                                        "array", "label", "since",   "cursor", NULL};
    autotext struct text path = {0};
    text_append(&path, "/v1/jobs");
    pages_number(&path, "limit", mcp_arguments_whole(call->arguments, "limit", DEFAULT_MCP_ROWS));
    add_texts(&path, call->arguments, texts);
    return put(api_read(call->api, path.bytes, err), out);
}

/* The members of a job that have no bound of their own: what its sender wrote, and a row for each node. */
static void shorten(json_t *job)
{
    static const char *const long_members[] = {"spec", "nodes"};
    for (size_t i = 0; i < sizeof long_members / sizeof *long_members; i++) {
        const json_t *member = json_object_get(job, long_members[i]);
        autofree char *text = member != NULL ? json_text(member) : xstrdup("");
        if (strlen(text) > CLIENT_MCP_PART_BYTES) {
            json_object_set_new(job, long_members[i],
                                json_pack("{s:I}", "left_out_bytes", (json_int_t)strlen(text)));
        }
    }
}

bool mcp_show_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs/%s", call->id);
    pages_number(&path, "wait", mcp_arguments_whole(call->arguments, "wait_s", NOT_GIVEN));
    json_t *job = api_read(call->api, path.bytes, err);
    if (job != NULL) {
        shorten(job);
    }
    return put(job, out);
}

bool mcp_explain_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_get(call->api, err, "/v1/jobs/%s/explanation", call->id), out);
}

bool mcp_plan_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_ask(call->api, "POST", call->arguments, err, "/v1/plan"), out);
}

bool mcp_job_results(const struct mcp_call *call, struct text *out, struct err *err)
{
    static const char *const wholes[] = {"attempt", "after", "limit", NULL};
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs/%s/results", call->id);
    add_wholes(&path, call->arguments, wholes);
    return put(api_read(call->api, path.bytes, err), out);
}

bool mcp_job_events(const struct mcp_call *call, struct text *out, struct err *err)
{
    static const char *const wholes[] = {"after", "limit", NULL};
    autotext struct text path = {0};
    text_printf(&path, "/v1/jobs/%s/events", call->id);
    add_wholes(&path, call->arguments, wholes);
    return put(api_read(call->api, path.bytes, err), out);
}

bool mcp_list_nodes(const struct mcp_call *call, struct text *out, struct err *err)
{
    autotext struct text path = {0};
    text_append(&path, "/v1/nodes");
    pages_number(&path, "limit", mcp_arguments_whole(call->arguments, "limit", DEFAULT_MCP_ROWS));
    api_query(&path, "cursor", json_string_of(call->arguments, "cursor"));
    return put(api_read(call->api, path.bytes, err), out);
}

bool mcp_list_pools(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_get(call->api, err, "/v1/pools"), out);
}

bool mcp_list_secrets(const struct mcp_call *call, struct text *out, struct err *err)
{
    autotext struct text path = {0};
    text_append(&path, "/v1/secrets");
    api_query(&path, "project", json_string_of(call->arguments, "project"));
    return put(api_read(call->api, path.bytes, err), out);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* The key goes into a header: printable ASCII. */
static bool check_key(const char *key, struct err *err)
{
    size_t length = strlen(key);
    bool printable = true;
    for (const char *at = key; *at != '\0'; at++) {
        printable = printable && *at > 0x20 && *at < 0x7f;
    }
    return (printable && length > 0 && length <= LIMIT_IDEMPOTENCY_KEY) ||
           err_field(err, ERR_FIELD, "idempotency_key", NULL,
                     "idempotency_key must have 1 to %d characters of ASCII without blanks",
                     LIMIT_IDEMPOTENCY_KEY);
}

/* Takes the key out of the spec, or draws one. false: it cannot be a key. */
static bool take_key(json_t *spec, char ret_key[LIMIT_IDEMPOTENCY_KEY + 1], struct err *err)
{
    const char *given = NULL;
    if (!json_read_text(spec, "idempotency_key", &given, err) || (given != NULL && !check_key(given, err))) {
        return false;
    }
    if (given == NULL) {
        random_id(ret_key);
    } else {
        snprintf(ret_key, LIMIT_IDEMPOTENCY_KEY + 1, "%s", given);
    }
    json_object_del(spec, "idempotency_key");
    return true;
}

/* Appends the answer with its key, which an error names where nobody knows whether there is a job. */
static bool put_made(json_t *job, const char *key, struct text *out, struct err *err)
{
    if (job != NULL) {
        json_object_set_new(job, "idempotency_key", json_string(key));
    } else if (err_retryable(err->code)) {
        err_hint(err, "the job may exist: submit the same again with idempotency_key \"%s\"", key);
    }
    return put(job, out);
}

bool mcp_submit_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    autojson json_t *spec = json_copy((json_t *)(uintptr_t)call->arguments);
    char key[LIMIT_IDEMPOTENCY_KEY + 1];
    return take_key(spec, key, err) && put_made(api_submit(call->api, spec, key, err), key, out, err);
}

bool mcp_clone_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    autojson json_t *changes = json_copy((json_t *)(uintptr_t)call->arguments);
    char key[LIMIT_IDEMPOTENCY_KEY + 1];
    json_object_del(changes, "job");
    return take_key(changes, key, err) &&
           put_made(api_clone(call->api, call->id, changes, key, err), key, out, err);
}

bool mcp_cancel_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/cancel", call->id), out);
}

bool mcp_hold_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/hold", call->id), out);
}

bool mcp_release_job(const struct mcp_call *call, struct text *out, struct err *err)
{
    return put(api_ask(call->api, "POST", NULL, err, "/v1/jobs/%s/release", call->id), out);
}
