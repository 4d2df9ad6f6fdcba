/* SPDX-License-Identifier: Apache-2.0 */
/* Writes accounts as JSON: their limits, current use and past use. A user sees its own account and the
 * projects that it has been in, and there only itself. A page begins where the previous one ended. Changes
 * nothing. */
#include <string.h>
#include <strings.h>

#include "daemon/core/model/record.h"
#include "daemon/core/quota/account_state.h"
#include "proto/limits_controller.h"
#include "proto/spec/node_label.h"

#define MINUTE_MS (60LL * 1000)

/* --- values --------------------------------------------------------------------------------------------- */

static void put_string(struct text *out, const char *name, const char *value)
{
    text_printf(out, "\"%s\":", name);
    text_json_string(out, value, strlen(value));
}

/* -1 becomes null. */
static void put_bound(struct text *out, const char *name, int64_t value)
{
    if (value < 0) {
        text_printf(out, ",\"%s\":null", name);
    } else {
        text_printf(out, ",\"%s\":%lld", name, (long long)value);
    }
}

/* Writes a ratio with three decimals. */
static void put_ratio(struct text *out, const char *name, int64_t value, int64_t unit)
{
    int64_t size = value < 0 ? -value : value;
    text_printf(out, ",\"%s\":%s%lld.%03lld", name, value < 0 ? "-" : "", (long long)(size / unit),
                (long long)(size % unit * 1000 / unit));
}

static void put_jobs(const struct account *account, struct text *out)
{
    text_printf(out, ",\"running_jobs\":%lld,\"queued_jobs\":%lld,\"gpus\":%lld", (long long)account->running,
                (long long)account->queued, (long long)account->gpus);
    put_ratio(out, "cpus", account->held.millicpus, 1000);
    text_printf(out, ",\"memory_bytes\":%lld", (long long)account->held.memory_bytes);
}

static void put_share(struct core *core, struct account *account, struct text *out)
{
    const struct account_share share = account_share(core, account);
    put_ratio(out, "used_gpu_hours", share.used_ms, HOUR_MS);
    put_ratio(out, "share", share.share, 1000000);
    put_ratio(out, "target", share.target, 1000000);
    put_ratio(out, "delay_s", share.delay_ms, 1000);
}

/* --- types ---------------------------------------------------------------------------------------------- */

static void put_type(const struct core *core, const struct account *account, const char *type,
                     struct text *out)
{
    const struct account_limits *limits = &account->limits;
    const struct holding *holding = account_holding(account, type);
    text_append(out, out->bytes[out->length - 1] == '[' ? "{" : ",{");
    put_string(out, "gpu_type", type);
    text_printf(out, ",\"gpus\":%lld,\"entitled\":%lld", (long long)(holding != NULL ? holding->gpus : 0),
                (long long)(holding != NULL ? holding->entitled : 0));
    if (account->kind == ACCOUNT_PROJECT) {
        put_bound(out, "quota", account_quota(core, account, type));
    }
    put_bound(out, "max_gpus", account_bound(limits->most, limits->most_count, type));
    text_append(out, "}");
}

/* First the types that the account holds, then those with limits only. */
static void put_types(const struct core *core, const struct account *account, struct text *out)
{
    const struct account_limits *limits = &account->limits;
    text_append(out, ",\"use\":[");
    for (const struct holding *holding = account->holdings; holding != NULL; holding = holding->next) {
        put_type(core, account, holding->type, out);
    }
    for (size_t i = 0; i < limits->quota_count; i++) {
        if (account_holding(account, limits->quota[i].type) == NULL) {
            put_type(core, account, limits->quota[i].type, out);
        }
    }
    for (size_t i = 0; i < limits->most_count; i++) {
        const char *type = limits->most[i].type;
        bool shown = account_holding(account, type) != NULL ||
                     account_bound(limits->quota, limits->quota_count, type) >= 0;
        if (!shown && strcmp(type, ANY_TYPE) != 0) {
            put_type(core, account, type, out);
        }
    }
    text_append(out, "]");
}

/* --- one account ---------------------------------------------------------------------------------------- */

static void put_period(const struct core *core, const struct account *account, struct text *out)
{
    int64_t period_ms = account->limits.period_ms, now_ms = core->accounts->now_ms;
    if (period_ms > 0) {
        put_ratio(out, "period_gpu_hours", account_spent_ms(account, now_ms), HOUR_MS);
        put_ratio(out, "period_ends_in_s", period_ms - now_ms % period_ms, 1000);
    }
}

static void put_user(struct core *core, struct account *user, bool first, struct text *out)
{
    text_append(out, first ? "{" : ",{");
    put_string(out, "name", user->name);
    put_jobs(user, out);
    put_share(core, user, out);
    text_append(out, "}");
}

/* The users of a project that the viewer may see. */
static void put_users(struct core *core, const struct account *project, const char *viewer, struct text *out)
{
    size_t count = 0;
    text_append(out, ",\"users\":[");
    for (struct account *user = project->users.members; user != NULL; user = user->younger) {
        if ((viewer == NULL || strcmp(viewer, user->name) == 0) && count < LIMIT_ACCOUNT_USERS) {
            put_user(core, user, count == 0, out);
            count++;
        }
    }
    text_append(out, "]");
}

static void put_account(struct core *core, struct account *account, const char *viewer, struct text *out)
{
    text_printf(out, "{\"kind\":\"%s\",", account_kind_text(account->kind));
    put_string(out, "name", account->name);
    text_append(out, ",\"limits\":");
    account_limits_encode(&account->limits, account->kind, out);
    put_jobs(account, out);
    put_types(core, account, out);
    put_period(core, account, out);
    if (account->kind == ACCOUNT_PROJECT) {
        put_share(core, account, out);
        put_users(core, account, viewer, out);
    } else {
        put_ratio(out, "used_gpu_hours", account_used_ms(core, account, core->accounts->now_ms), HOUR_MS);
    }
    text_append(out, "}");
}

/* --- pages of accounts ---------------------------------------------------------------------------------- */

static bool may_see(const struct core *core, const struct account *account, const char *viewer)
{
    if (viewer == NULL) {
        return true;
    }
    return account->kind == ACCOUNT_USER ? strcmp(account->name, viewer) == 0
                                         : account_find(core, account->name, viewer) != NULL;
}

static bool is_listed(const struct core *core, const struct account *account, const char *viewer)
{
    bool whole = account->project == NULL && account->kind != ACCOUNT_POOL;
    bool worth = account->limited || account_is_live(account) ||
                 account_used_ms(core, account, core->accounts->now_ms) >= MINUTE_MS;
    return whole && worth && may_see(core, account, viewer);
}

static int by_kind_and_name(const void *a, const void *b)
{
    const struct account *const *left = a, *const *right = b;
    int order = strcmp(account_kind_text((*left)->kind), account_kind_text((*right)->kind));
    return order != 0 ? order : strcmp((*left)->name, (*right)->name);
}

/* "project/vision" */
static void cursor_of(const struct account *account, struct text *out)
{
    text_printf(out, "%s/%s", account_kind_text(account->kind), account->name);
}

static bool is_after(const struct account *account, const char *cursor)
{
    autotext struct text mine = {0};
    cursor_of(account, &mine);
    return cursor == NULL || strcmp(mine.bytes, cursor) > 0;
}

/* The accounts after the cursor, in order. The caller frees the array. */
static struct account **list(const struct core *core, const struct input *input, size_t *ret_count)
{
    struct account **accounts = xalloc((HASH_COUNT(core->accounts->by_key) + 1) * sizeof *accounts);
    size_t count = 0;
    for (struct account *account = core->accounts->by_key; account != NULL; account = account->hh.next) {
        if (is_listed(core, account, input->accounts.viewer) && is_after(account, input->accounts.after)) {
            accounts[count++] = account;
        }
    }
    if (count > 1) {
        qsort(accounts, count, sizeof(struct account *), by_kind_and_name);
    }
    *ret_count = count;
    return accounts;
}

static void show_all(struct core *core, const struct input *input, struct text *out)
{
    size_t count;
    struct account **accounts = list(core, input, &count);
    size_t shown = count < LIMIT_ACCOUNT_ROWS ? count : LIMIT_ACCOUNT_ROWS;
    text_append(out, "{\"accounts\":[");
    for (size_t i = 0; i < shown; i++) {
        text_append(out, i > 0 ? "," : "");
        put_account(core, accounts[i], input->accounts.viewer, out);
    }
    text_append(out, "],\"next\":");
    if (shown < count) {
        text_append(out, "\"");
        cursor_of(accounts[shown - 1], out);
        text_append(out, "\"}");
    } else {
        text_append(out, "null}");
    }
    free(accounts);
}

bool account_show(struct core *core, const struct input *input, struct err *err)
{
    autotext struct text json = {0};
    const char *name = input->accounts.name;
    if (name == NULL) {
        show_all(core, input, &json);
        record_response(core, &json);
        return true;
    }
    bool project = input->accounts.kind == ACCOUNT_PROJECT;
    struct account *account = account_find(core, project ? name : NULL, project ? NULL : name);
    if (account == NULL || !may_see(core, account, input->accounts.viewer)) {
        return err_field(err, ERR_NOT_FOUND, "name", "list the accounts",
                         "no account is known of the %s %.64s", account_kind_text(input->accounts.kind),
                         name);
    }
    put_account(core, account, input->accounts.viewer, &json);
    record_response(core, &json);
    return true;
}

/* --- pools ---------------------------------------------------------------------------------------------- */

static void begin_pool(const struct core *core, const struct partition *partition, struct text *out)
{
    text_append(out, partition == core->partitions ? "{" : "]},{");
    put_string(out, "name", partition->pool);
    text_printf(out, ",\"kind\":\"%s\",\"lend\":%s,\"isolation\":%s,\"types\":[",
                pool_kind_text(partition->kind), account_pool_lends(core, partition->pool) ? "true" : "false",
                account_pool_isolated(core, partition->pool) ? "\"" ISOLATION_BY_USERS "\"" : "null");
}

void account_show_pools(struct core *core)
{
    autotext struct text json = {0};
    text_append(&json, "{\"pools\":[");
    for (const struct partition *partition = core->partitions; partition != NULL;
         partition = partition->next) {
        bool first = partition == core->partitions || strcmp(partition->prev->pool, partition->pool) != 0;
        if (first) {
            begin_pool(core, partition, &json);
        }
        if (!partition_is_gpuless(partition)) {
            text_append(&json, json.bytes[json.length - 1] == '[' ? "{" : ",{");
            put_string(&json, "gpu_type", partition->type);
            text_printf(&json, ",\"gpus\":%lld,\"free\":%lld}", (long long)partition->total,
                        (long long)partition->free);
        }
    }
    text_append(&json, core->partitions != NULL ? "]}]}" : "]}");
    record_response(core, &json);
}
