/* SPDX-License-Identifier: Apache-2.0 */
/* The search language of MLflow, which becomes SQL, and the bodies of its calls. */
#include <jansson.h>
#include <string.h>

#include "daemon/mlflow/call/call.h"
#include "daemon/mlflow/database/database.h"
#include "daemon/mlflow/search/filter.h"
#include "daemon/mlflow/search/subjects.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/fuzz/fuzz.h"

#define LIMIT_FUZZ_VALUES 4096

/* Each "?N" names a parameter of the statement itself, or a value, and each value is named. */
static void check_parameters(const struct filter *filter)
{
    const struct text *const parts[] = {&filter->joins, &filter->where, &filter->order};
    bool named[LIMIT_FUZZ_VALUES] = {0};
    size_t count = json_array_size(filter->values);
    FUZZ_MUST(count <= LIMIT_FUZZ_VALUES);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (size_t at = 0; at < parts[i]->length; at++) {
            FUZZ_MUST(parts[i]->bytes[at] != ';' && parts[i]->bytes[at] != '\0');
            if (parts[i]->bytes[at] == '?') {
                long number = strtol(&parts[i]->bytes[at + 1], NULL, 10);
                FUZZ_MUST(number >= 1 && number < FILTER_FIRST_PARAMETER + (long)count);
                if (number >= FILTER_FIRST_PARAMETER) {
                    named[number - FILTER_FIRST_PARAMETER] = true;
                }
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        FUZZ_MUST(named[i]);
    }
}

static bool read_filter(const uint8_t *bytes, size_t size,
                        void (*parse)(struct filter *filter, const char *text))
{
    static const struct subject *const subjects[] = {&subject_runs, &subject_experiments, &subject_models,
                                                     &subject_registry, &subject_versions};
    if (size == 0) {
        return false;
    }
    struct tracking_error error = {0};
    struct call call = {.error = &error};
    struct filter filter = {.call = &call, .subject = subjects[bytes[0] % 5]};
    autofree char *text = fuzz_text(bytes + 1, size - 1);
    parse(&filter, text);
    FUZZ_MUST(!call.failed || error.message[0] != '\0');
    if (!call.failed) {
        check_parameters(&filter);
    }
    filter_finish(&filter);
    return !call.failed;
}

bool fuzz_filter(const uint8_t *bytes, size_t size)
{
    return read_filter(bytes, size, filter_parse);
}

bool fuzz_order_by(const uint8_t *bytes, size_t size)
{
    return read_filter(bytes, size, filter_parse_order);
}

/* --- bodies of calls ------------------------------------------------------------------------------------ */

#define NOW_MS 1800000000000LL
#define RUN_ID "0123456789abcdef0123456789abcdef"

static struct tracking *tracking;
static sqlite3 *whole; /* what it begins with */

static bool serve(const char *call, const json_t *body, struct text *out, struct tracking_error *error)
{
    autofree char *method = xstrdup(call);
    char *path = method;
    strsep(&path, " ");
    const struct tracking_endpoint *endpoint = path != NULL ? tracking_endpoint_find(method, path) : NULL;
    if (endpoint == NULL || endpoint->work == NULL || !json_is_object(body)) {
        snprintf(error->message, sizeof error->message, "there is no such call");
        return false;
    }
    autojson json_t *arguments = json_deep_copy(body);
    tracking_endpoint_arguments(endpoint, path, arguments);
    const struct tracking_request request = {.body = arguments, .owner = "ada", .now_ms = NOW_MS};
    return tracking_serve(tracking, endpoint, &request, out, error);
}

static void make(const char *call, json_t *body)
{
    struct tracking_error error;
    autotext struct text out = {0};
    autojson json_t *owned = body;
    FUZZ_MUST(serve(call, owned, &out, &error));
}

static void copy(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    FUZZ_MUST(backup != NULL && sqlite3_backup_step(backup, -1) == SQLITE_DONE);
    FUZZ_MUST(sqlite3_backup_finish(backup) == SQLITE_OK);
}

/* An experiment with a run that has some of each, and a registered model. */
static void begin(void)
{
    struct err err;
    struct tracking_error error;
    const struct tracking_job job = {
        .run_id = RUN_ID, .owner = "ada", .job_id = "abcdefghijklmnop", .attempt = 1};
    autofree char *path = xprintf("%s/mlflow.db", fuzz_folder());
    tracking = tracking_open(path, &err);
    FUZZ_MUST(tracking != NULL && tracking_job_begin(tracking, &job, &error));
    make("POST runs/log-metric", json_pack("{ss,ss,sf,sI,si}", "run_id", RUN_ID, "key", "loss", "value", 0.5,
                                           "timestamp", NOW_MS, "step", 1));
    make("POST runs/log-parameter", json_pack("{ss,ss,ss}", "run_id", RUN_ID, "key", "lr", "value", "0.1"));
    make("POST runs/set-tag", json_pack("{ss,ss,ss}", "run_id", RUN_ID, "key", "team", "value", "vision"));
    make("POST registered-models/create", json_pack("{ss}", "name", "model"));
    make("POST model-versions/create",
         json_pack("{ss,ss,ss}", "name", "model", "source", "s3://bucket/model", "run_id", RUN_ID));
    FUZZ_MUST(sqlite3_open(":memory:", &whole) == SQLITE_OK);
    copy(tracking->db, whole);
}

/* The first line is a method and a path, the rest the body of the call. */
bool fuzz_tracking(const uint8_t *bytes, size_t size)
{
    struct tracking_error error = {0};
    autofree char *call = fuzz_line(&bytes, &size);
    autojson json_t *body = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL);
    if (call == NULL || body == NULL) {
        return false;
    }
    if (tracking == NULL) {
        begin();
    }
    int before = sqlite3_total_changes(tracking->db);
    autotext struct text out = {0};
    bool served = serve(call, body, &out, &error);
    if (served) {
        autojson json_t *answer = json_loadb(out.bytes, out.length, 0, NULL);
        FUZZ_MUST(json_is_object(answer));
    } else {
        FUZZ_MUST(out.length == 0 && error.message[0] != '\0' && error.code != TRACKING_INTERNAL_ERROR);
    }
    if (sqlite3_total_changes(tracking->db) != before) {
        copy(whole, tracking->db);
    }
    return served;
}
