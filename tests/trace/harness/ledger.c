/* SPDX-License-Identifier: Apache-2.0 */
/* The rows from which a core learns past use, limits and run times. rows.c has the rows of jobs. */
#include "tests/trace/harness/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits_controller.h"
#include "proto/spec/account_limits.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

static char *copy(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static void drop(const char *text)
{
    free((void *)(uintptr_t)text);
}

/* --- use and limits ------------------------------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void usage_finish(struct usage_row *row)
{
    drop(row->project);
    drop(row->owner);
}

void ledger_drop_usage(struct ledger *ledger, const struct usage_row *row)
{
    for (size_t i = 0; i < ledger->usage_count; i++) {
        if (same(ledger->usages[i].project, row->project) && same(ledger->usages[i].owner, row->owner)) {
            usage_finish(&ledger->usages[i]);
            ledger->usages[i] = ledger->usages[--ledger->usage_count];
            return;
        }
    }
}

void ledger_put_usage(struct ledger *ledger, const struct usage_row *row)
{
    assert(row->gpu_ms >= 0 && row->spent_ms >= 0 && row->at_ms > 0);
    ledger_drop_usage(ledger, row);
    ledger->usages = xrealloc(ledger->usages, (ledger->usage_count + 1) * sizeof *ledger->usages);
    ledger->usages[ledger->usage_count] = *row;
    ledger->usages[ledger->usage_count].project = copy(row->project);
    ledger->usages[ledger->usage_count++].owner = copy(row->owner);
}

static void limits_finish(struct limits_row *row)
{
    drop(row->name);
    drop(row->limits);
}

bool ledger_drop_limits(struct ledger *ledger, const struct limits_row *row)
{
    for (size_t i = 0; i < ledger->limits_count; i++) {
        if (ledger->limits[i].kind == row->kind && strcmp(ledger->limits[i].name, row->name) == 0) {
            limits_finish(&ledger->limits[i]);
            ledger->limits[i] = ledger->limits[--ledger->limits_count];
            return true;
        }
    }
    return false;
}

void ledger_put_limits(struct ledger *ledger, const struct limits_row *row)
{
    ledger_drop_limits(ledger, row);
    ledger->limits = xrealloc(ledger->limits, (ledger->limits_count + 1) * sizeof *ledger->limits);
    ledger->limits[ledger->limits_count++] =
        (struct limits_row){.kind = row->kind, .name = copy(row->name), .limits = copy(row->limits)};
}

static void load_limits(const struct limits_row *row, struct core *core)
{
    struct account_limits limits;
    autojson json_t *json = json_parse(row->limits, strlen(row->limits), NULL);
    bool ok = account_limits_decode(json, row->kind, &limits, NULL);
    assert(ok);
    core_load_limits(core, row, &limits);
    account_limits_finish(&limits);
}

/* --- what was learned ----------------------------------------------------------------------------------- */

static bool same_kind(const struct history_row *a, const struct history_row *b)
{
    return strcmp(a->project, b->project) == 0 && strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->name, b->name) == 0 && a->gpus == b->gpus && a->limited == b->limited;
}

void ledger_put_history(struct ledger *ledger, const struct history_row *row)
{
    assert(row->count > 0 && row->ran_ms > 0);
    struct history_row *mine = NULL;
    for (size_t i = 0; i < ledger->history_count && mine == NULL; i++) {
        mine = same_kind(&ledger->histories[i], row) ? &ledger->histories[i] : NULL;
    }
    if (mine == NULL) {
        ledger->histories =
            xrealloc(ledger->histories, (ledger->history_count + 1) * sizeof(struct history_row));
        mine = &ledger->histories[ledger->history_count++];
        *mine = *row;
        mine->project = copy(row->project);
        mine->owner = copy(row->owner);
        mine->name = copy(row->name);
    }
    mine->count = row->count;
    mine->ran_ms = row->ran_ms;
    mine->limit_ms = row->limit_ms;
    mine->error_percent = row->error_percent;
}

/* --- what was held -------------------------------------------------------------------------------------- */

static int64_t device_count(const char *devices)
{
    int64_t count = *devices != '\0';
    for (; *devices != '\0'; devices++) {
        count += *devices == ',';
    }
    return count;
}

void ledger_hold(struct ledger *ledger, const struct attempt_row *attempt, const struct member_row *members,
                 size_t count)
{
    int64_t gpus = 0;
    for (size_t i = 0; i < count; i++) {
        gpus += device_count(members[i].devices);
    }
    ledger->held_ms += gpus * (attempt->ended_ms - attempt->created_ms);
    ledger->ended_count += gpus > 0; /* the hours are of GPUs */
}

void ledger_add_hour(struct ledger *ledger, const struct hour_row *hour)
{
    assert(hour->hour_ms % HOUR_MS == 0 && hour->gpu_ms >= 0 && hour->attempts >= 0);
    assert(hour->idle_ms >= 0 && hour->idle_ms <= hour->measured_ms && hour->energy_mj >= 0);
    ledger->charged_ms += hour->gpu_ms;
    ledger->charged_count += hour->attempts;
}

void ledger_check(const struct ledger *ledger)
{
    assert(ledger->held_ms == ledger->charged_ms && ledger->ended_count == ledger->charged_count);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

void ledger_load(const struct ledger *ledger, struct core *core)
{
    for (size_t i = 0; i < ledger->limits_count; i++) {
        load_limits(&ledger->limits[i], core);
    }
    for (size_t i = 0; i < ledger->usage_count; i++) {
        core_load_usage(core, &ledger->usages[i]);
    }
    for (size_t i = 0; i < ledger->history_count; i++) {
        core_load_history(core, &ledger->histories[i]);
    }
}

void ledger_finish(struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->usage_count; i++) {
        usage_finish(&ledger->usages[i]);
    }
    for (size_t i = 0; i < ledger->limits_count; i++) {
        limits_finish(&ledger->limits[i]);
    }
    for (size_t i = 0; i < ledger->history_count; i++) {
        drop(ledger->histories[i].project);
        drop(ledger->histories[i].owner);
        drop(ledger->histories[i].name);
    }
    free(ledger->usages);
    free(ledger->limits);
    free(ledger->histories);
}
