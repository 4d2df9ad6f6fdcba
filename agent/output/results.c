/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the results of ranks for the controller: values and exceptions, which the agent never unpickles.
 * Results inside a report stay within the report's limits. A larger pickle is uploaded before the report
 * lists it. A value that cannot be collected leaves a reason. uploads.c hashes and sends files. */
#include "agent/output/results.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/rank_file.h"
#include "agent/shim/shimwire.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define ROW_BYTES 300 /* the largest size of a row without its texts */

/* The result of one rank. */
struct item {
    const struct rank_exit *rank; /* of the record */
    bool found;                   /* a pickle exists */
    bool waits;                   /* the pickle is not with the controller yet */
    enum result_kind kind;
    int64_t size;
    char hash[HASH_HEX + 1]; /* "" until it is known */
    char *base64, *json;     /* or NULL */
};

struct results {
    struct uploads *uploads;
    char *logs;
    struct item *items; /* one for each rank of the record */
    size_t count;
    const struct mask *mask; /* or NULL */
    struct rank_exit *ranks;
    int64_t inline_bytes, json_bytes, error_bytes; /* space left in the report */
    struct upload *upload;                         /* under way ... */
    struct item *putting;                          /* ... of this one */
    char *problem;
    void (*ready)(void *closure);
    void *closure;
};

static void put_next(struct results *results);

/* --- reasons -------------------------------------------------------------------------------------------- */

/* Keeps the first problem. */
static void take_problem(struct results *results, const struct item *item, char *problem)
{
    if (item->kind == RESULT_VALUE && results->problem == NULL) {
        results->problem = problem;
    } else {
        free(problem);
    }
}

/* Rounded up to tenths of GiB, so that a result above the limit never looks as large as the limit. */
static char *too_large(const struct item *item)
{
    int64_t tenths = (item->size * 10 + GIB - 1) / GIB;
    return xprintf("the result of rank %lld is %lld.%lld GiB, the limit is %lld GiB",
                   (long long)item->rank->rank, (long long)tenths / 10, (long long)tenths % 10,
                   LIMIT_BLOB_BYTES / GIB);
}

static char *cannot_be_had(const struct item *item, const char *why)
{
    return xprintf("the result of rank %lld cannot be stored: %s", (long long)item->rank->rank, why);
}

/* --- one rank ------------------------------------------------------------------------------------------- */

static char *pickle_name(const struct item *item)
{
    return xprintf("%lld.%s", (long long)item->rank->rank,
                   item->kind == RESULT_VALUE ? "pickle" : "error.pickle");
}

/* A JSON text that the controller can parse; NULL when there is none within max bytes. */
static char *read_json(const struct results *results, const struct item *item, const char *folder,
                       int64_t max)
{
    autofree char *name = xprintf("%lld.json", (long long)item->rank->rank);
    size_t length = 0;
    autofree char *text = rank_file_read(results->logs, folder, name, max, &length);
    autojson json_t *json = text != NULL ? json_parse(text, length, NULL) : NULL;
    bool good = item->kind == RESULT_VALUE ? json != NULL : json_is_object(json);
    return good ? give(text) : NULL;
}

static void take_small(struct results *results, struct item *item, const char *name)
{
    size_t length;
    autofree char *bytes =
        rank_file_read(results->logs, SHIM_RESULTS_FOLDER, name, results->inline_bytes, &length);
    if (bytes != NULL) {
        hash_hex(bytes, length, item->hash);
        item->base64 = text_to_base64((const uint8_t *)bytes, length);
        item->size = (int64_t)length;
        item->waits = false;
        results->inline_bytes -= item->size;
    }
}

/* Takes the pickle of one kind; false when the rank left none. */
static bool take_pickle(struct results *results, struct item *item, enum result_kind kind)
{
    item->kind = kind;
    autofree char *name = pickle_name(item);
    autoclose int file = rank_file_open(results->logs, SHIM_RESULTS_FOLDER, name, &item->size);
    if (file < 0) {
        return false;
    }
    item->found = item->size <= LIMIT_BLOB_BYTES;
    item->waits = item->found;
    if (!item->found) {
        take_problem(results, item, too_large(item));
    } else if (item->size <= results->inline_bytes) {
        take_small(results, item, name);
    }
    return true;
}

static void take_value_json(struct results *results, struct item *item)
{
    item->json = item->found ? read_json(results, item, SHIM_RESULTS_FOLDER, results->json_bytes) : NULL;
    results->json_bytes -= item->json != NULL ? (int64_t)strlen(item->json) : 0;
}

static void look(struct results *results, struct item *item, bool is_function)
{
    if (is_function && take_pickle(results, item, RESULT_VALUE)) {
        take_value_json(results, item);
    } else if (is_function && item->rank->code != 0) {
        take_pickle(results, item, RESULT_EXCEPTION);
    }
}

/* --- error files ---------------------------------------------------------------------------------------- */

/* Sorts failures by their value for people: those that failed by themselves first, then the earliest. */
static int tells_more(const void *left, const void *right)
{
    const struct rank_exit *a = (*(struct item *const *)left)->rank,
                           *b = (*(struct item *const *)right)->rank;
    if (a->by_us != b->by_us) {
        return a->by_us ? 1 : -1;
    }
    return a->at_ms != b->at_ms ? (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms)
                                : (a->rank > b->rank) - (a->rank < b->rank);
}

static void take_error_file(struct results *results, struct item *item)
{
    int64_t most =
        results->error_bytes < LIMIT_ERROR_FILE_BYTES ? results->error_bytes : LIMIT_ERROR_FILE_BYTES;
    item->kind = RESULT_EXCEPTION;
    item->json = mask_text(results->mask, read_json(results, item, SHIM_ERRORS_FOLDER, most));
    results->error_bytes -= item->json != NULL ? (int64_t)strlen(item->json) : 0;
}

static void take_error_files(struct results *results)
{
    autofree struct item **failed = xzalloc((results->count + 1) * sizeof(struct item *));
    size_t count = 0;
    for (size_t i = 0; i < results->count; i++) {
        struct item *item = &results->items[i];
        bool value = item->found && item->kind == RESULT_VALUE;
        if (item->rank->code != 0 && !value) {
            failed[count++] = item;
        }
    }
    qsort(failed, count, sizeof(struct item *), tells_more);
    for (size_t i = 0; i < count; i++) {
        take_error_file(results, failed[i]);
    }
}

/* --- putting -------------------------------------------------------------------------------------------- */

static void lose(struct results *results, struct item *item, const char *why)
{
    item->found = item->waits = false;
    take_problem(results, item, cannot_be_had(item, why));
}

static void put_done(void *closure, const char *hash, const struct err *err)
{
    struct results *results = closure;
    struct item *item = results->putting;
    results->upload = NULL;
    results->putting = NULL;
    if (hash != NULL) {
        snprintf(item->hash, sizeof item->hash, "%s", hash);
        item->waits = false;
    } else {
        lose(results, item, err->text);
    }
    put_next(results);
    if (results_ready(results)) {
        results->ready(results->closure);
    }
}

static bool put(struct results *results, struct item *item)
{
    autofree char *name = pickle_name(item);
    int file = rank_file_open(results->logs, SHIM_RESULTS_FOLDER, name, &item->size);
    if (file < 0) {
        lose(results, item, "the file is gone");
        return false;
    }
    if (item->size > LIMIT_BLOB_BYTES) {
        close(file);
        lose(results, item, "the file is still growing");
        return false;
    }
    results->putting = item;
    results->upload = upload_begin(results->uploads, file, item->size, put_done, results);
    return true;
}

/* One upload at a time, so that attempts which end together take turns. */
static void put_next(struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->items[i].waits && put(results, &results->items[i])) {
            return;
        }
    }
}

/* --- from outside --------------------------------------------------------------------------------------- */

/* A record lists ranks by their ends, a report lists results by rank. */
static int by_rank(const void *left, const void *right)
{
    const struct rank_exit *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

struct results *results_collect(struct uploads *uploads, const char *logs, const struct record *record,
                                const struct mask *mask, void (*ready)(void *closure), void *closure)
{
    struct results *results = xzalloc(sizeof *results);
    int64_t ignored;
    autoclose int function = rank_file_open(logs, NULL, SHIM_FUNCTION_FILE, &ignored);
    *results = (struct results){.uploads = uploads,
                                .logs = xstrdup(logs),
                                .inline_bytes = LIMIT_EXIT_RESULT_BYTES,
                                .json_bytes = LIMIT_EXIT_JSON_BYTES,
                                .error_bytes = LIMIT_EXIT_ERROR_BYTES,
                                .count = record->rank_count,
                                .mask = mask,
                                .ready = ready,
                                .closure = closure};
    results->items = xzalloc((results->count + 1) * sizeof *results->items);
    results->ranks = xzalloc((results->count + 1) * sizeof *results->ranks);
    for (size_t i = 0; i < results->count; i++) {
        results->ranks[i] = record->ranks[i];
    }
    qsort(results->ranks, results->count, sizeof *results->ranks, by_rank);
    for (size_t i = 0; i < results->count; i++) {
        results->items[i].rank = &results->ranks[i];
        look(results, &results->items[i], function >= 0);
    }
    take_error_files(results);
    put_next(results);
    return results;
}

static void forget_items(struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        free(results->items[i].base64);
        free(results->items[i].json);
        results->items[i] = (struct item){.rank = &results->ranks[i]};
    }
}

void results_destroy(struct results *results)
{
    if (results != NULL) {
        upload_cancel(results->upload);
        forget_items(results);
        free(results->items);
        free(results->ranks);
        free(results->logs);
        free(results->problem);
        free(results);
    }
}

bool results_ready(const struct results *results)
{
    return results->upload == NULL;
}

void results_cut(struct results *results)
{
    upload_cancel(results->upload);
    results->upload = NULL;
    results->putting = NULL;
    for (size_t i = 0; i < results->count; i++) {
        results->items[i].found = results->items[i].found && !results->items[i].waits;
        results->items[i].waits = false;
    }
}

/* A value needs its pickle; for an exception the error file is enough for a row. */
static bool is_row(const struct item *item)
{
    return item->found || (item->kind == RESULT_EXCEPTION && item->json != NULL);
}

bool results_refuse(struct results *results, const char *reason)
{
    size_t count;
    free(results_list(results, &count));
    if (count == 0) {
        return false;
    }
    forget_items(results);
    free(results->problem);
    results->problem = xprintf("the controller does not take the results: %s", reason);
    return true;
}

struct rank_result *results_list(const struct results *results, size_t *ret_count)
{
    struct rank_result *rows = xzalloc((results->count + 1) * sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct item *item = &results->items[i];
        if (is_row(item)) {
            rows[count++] = (struct rank_result){.rank = item->rank->rank,
                                                 .kind = item->kind,
                                                 .size = item->found ? item->size : 0,
                                                 .hash = item->found ? item->hash : NULL,
                                                 .base64 = item->found ? item->base64 : NULL,
                                                 .json = item->json};
        }
    }
    *ret_count = count;
    return rows;
}

const char *results_problem(const struct results *results)
{
    return results->problem;
}

/* JSON is a string in the report: in the worst case each of its bytes is escaped. */
size_t results_weight(const struct results *results)
{
    size_t weight = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct item *item = &results->items[i];
        weight += ROW_BYTES + (item->base64 != NULL ? strlen(item->base64) : 0) +
                  (item->json != NULL ? 2 * strlen(item->json) : 0);
    }
    return weight;
}
