/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up hours and live attempts. It promises that the rows add up to the total, and that a live attempt
 * counts for the same time as it will have in the rows of hours once it has ended. */
#include "daemon/http/usage/tally.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/table.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "proto/members.h"

struct sums {
    int64_t attempts, gpu_ms, measured_ms, idle_ms, energy_mj;
    double cost;
};

struct line {
    char *key; /* owned */
    int64_t at_ms;
    char *project, *owner, *pool, *gpu_type; /* owned; "" of what is not asked for */
    bool reserved;
    struct sums sums;
    UT_hash_handle hh;
};

struct tally {
    const struct use_question *question;
    struct tally_by by;
    const struct prices *prices;
    int64_t now_ms;
    struct line *lines;
    struct sums total;
};

struct tally *tally_create(const struct use_question *question, struct tally_by by,
                           const struct prices *prices, int64_t now_ms)
{
    struct tally *tally = xzalloc(sizeof *tally);
    *tally = (struct tally){.question = question, .by = by, .prices = prices, .now_ms = now_ms};
    return tally;
}

static void line_free(struct line *line)
{
    free(line->key);
    free(line->project);
    free(line->owner);
    free(line->pool);
    free(line->gpu_type);
    free(line);
}

void tally_destroy(struct tally *tally)
{
    struct line *line, *next;
    HASH_ITER (hh, tally->lines, line, next) {
        HASH_DEL(tally->lines, line);
        line_free(line);
    }
    free(tally);
}

/* --- sums ----------------------------------------------------------------------------------------------- */

/* Names have no blanks. */
static char *key_of(const struct hour_row *row, const char *pool, const char *gpu_type)
{
    return xprintf("%lld %s %s %s %s %d", (long long)row->hour_ms, row->project, row->owner, pool, gpu_type,
                   row->reserved);
}

static struct line *line_create(const struct hour_row *row, const char *pool, const char *gpu_type)
{
    struct line *line = xzalloc(sizeof *line);
    line->at_ms = row->hour_ms;
    line->project = xstrdup(row->project);
    line->owner = xstrdup(row->owner);
    line->pool = xstrdup(pool);
    line->gpu_type = xstrdup(gpu_type);
    line->reserved = row->reserved;
    return line;
}

static struct line *find_or_add(struct tally *tally, const struct hour_row *row, struct err *err)
{
    const char *pool = tally->by.pool ? row->pool : "", *gpu_type = tally->by.gpu_type ? row->gpu_type : "";
    autofree char *key = key_of(row, pool, gpu_type);
    struct line *line;
    HASH_FIND_STR(tally->lines, key, line);
    if (line != NULL) {
        return line;
    }
    if (HASH_COUNT(tally->lines) == LIMIT_USAGE_ROWS) {
        err_set(err, ERR_TOO_LARGE, "the answer has more than %d rows", LIMIT_USAGE_ROWS);
        err_hint(err, "ask for a shorter time, a longer step, or fewer names in by");
        return NULL;
    }
    line = line_create(row, pool, gpu_type);
    line->key = give(key);
    HASH_ADD_KEYPTR(hh, tally->lines, line->key, strlen(line->key), line);
    return line;
}

static void add(struct sums *sums, const struct hour_row *row, double price)
{
    sums->attempts += row->attempts;
    sums->gpu_ms += row->gpu_ms;
    sums->measured_ms += row->measured_ms;
    sums->idle_ms += row->idle_ms;
    sums->energy_mj += row->energy_mj;
    sums->cost += price * (double)row->gpu_ms / (double)HOUR_MS;
}

static bool add_row(struct tally *tally, const struct hour_row *row, struct err *err)
{
    struct line *line = find_or_add(tally, row, err);
    if (line == NULL) {
        return false;
    }
    double price = prices_find(tally->prices, row->gpu_type, row->pool);
    add(&line->sums, row, price);
    add(&tally->total, row, price);
    return true;
}

/* The end of the step that the moment is in. */
static int64_t step_end(int64_t at_ms, int64_t step_ms)
{
    return step_ms < INT64_MAX ? at_ms - at_ms % step_ms + step_ms : INT64_MAX;
}

static bool add_live(struct tally *tally, const struct use_record *record, struct err *err)
{
    const struct use_question *question = tally->question;
    int64_t from_ms = record->row.hour_ms > question->since_ms ? record->row.hour_ms : question->since_ms;
    int64_t until_ms = tally->now_ms < question->until_ms ? tally->now_ms : question->until_ms;
    while (from_ms < until_ms) {
        int64_t end_ms = step_end(from_ms, question->step_ms);
        int64_t to_ms = end_ms < until_ms ? end_ms : until_ms;
        int64_t begin_ms = question->step_ms < INT64_MAX ? from_ms - from_ms % question->step_ms : 0;
        struct hour_row row = record->row;
        row.hour_ms = begin_ms > question->since_ms ? begin_ms : question->since_ms;
        row.gpu_ms = record->gpus * (to_ms - from_ms);
        if (!add_row(tally, &row, err)) {
            return false;
        }
        from_ms = to_ms;
    }
    return true;
}

bool tally_add(struct tally *tally, const struct use_record *record, struct err *err)
{
    return record->gpus > 0 ? add_live(tally, record, err) : add_row(tally, &record->row, err);
}

/* --- the answer ----------------------------------------------------------------------------------------- */

static int compare(const struct line *a, const struct line *b)
{
    int order = (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
    order = order != 0 ? order : strcmp(a->project, b->project);
    order = order != 0 ? order : strcmp(a->owner, b->owner);
    order = order != 0 ? order : strcmp(a->pool, b->pool);
    order = order != 0 ? order : strcmp(a->gpu_type, b->gpu_type);
    return order != 0 ? order : a->reserved - b->reserved;
}

static void write_thousandths(struct text *out, const char *key, int64_t value)
{
    text_printf(out, "%s%lld.%03d", key, (long long)(value / 1000), (int)(value % 1000));
}

static void write_sums(const struct tally *tally, const struct sums *sums, struct text *out)
{
    write_thousandths(out, "\"gpu_seconds\":", sums->gpu_ms);
    write_thousandths(out, ",\"measured_gpu_seconds\":", sums->measured_ms);
    write_thousandths(out, ",\"idle_gpu_seconds\":", sums->idle_ms);
    write_thousandths(out, ",\"energy_joules\":", sums->energy_mj);
    member_write_int(out, ",\"attempts\":", sums->attempts);
    if (tally->prices->count > 0) {
        text_printf(out, ",\"cost\":%.6f", sums->cost);
    }
}

static void write_line(const struct tally *tally, const struct line *line, struct text *out)
{
    const struct use_question *question = tally->question;
    member_separate(out);
    member_write_time(out, "{\"at\":", line->at_ms);
    if (question->by_project) {
        member_write_text(out, ",\"project\":", line->project);
    }
    if (question->by_owner) {
        member_write_text(out, ",\"owner\":", line->owner);
    }
    if (tally->by.pool) {
        member_write_text(out, ",\"pool\":", line->pool);
    }
    if (tally->by.gpu_type) {
        member_write_text(out, ",\"gpu_type\":", line->gpu_type);
    }
    if (question->by_reserved) {
        member_write_bool(out, ",\"reserved\":", line->reserved);
    }
    text_append(out, ",");
    write_sums(tally, &line->sums, out);
    text_append(out, "}");
}

void tally_write(struct tally *tally, struct text *out)
{
    HASH_SORT(tally->lines, compare);
    text_append(out, "\"usage\":[");
    for (const struct line *line = tally->lines; line != NULL; line = line->hh.next) {
        write_line(tally, line, out);
    }
    text_append(out, "],\"total\":{");
    write_sums(tally, &tally->total, out);
    text_append(out, "}");
}
