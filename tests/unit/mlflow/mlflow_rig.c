/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the tests of daemon/mlflow. Every answer is parsed strictly. */
#include "tests/unit/mlflow/mlflow_rig.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/json.h"

struct mlflow_rig mlflow;

void mlflow_setup(void)
{
    memset(&mlflow, 0, sizeof mlflow);
    strcpy(mlflow.folder, "/tmp/gpuctl-mlflow-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(mlflow.folder));
    mlflow.path = xprintf("%s/mlflow.db", mlflow.folder);
    mlflow.now_ms = 1700000000000;
    struct err err;
    mlflow.tracking = tracking_open(mlflow.path, &err);
    ck_assert_msg(mlflow.tracking != NULL, "%s", err.text);
}

void mlflow_teardown(void)
{
    struct err err;
    tracking_close(mlflow.tracking);
    for (size_t i = 0; i < mlflow.kept_count; i++) {
        json_decref(mlflow.kept[i]);
    }
    ck_assert(file_remove_tree(mlflow.folder, &err));
    free(mlflow.path);
}

void mlflow_reopen(void)
{
    struct err err;
    tracking_close(mlflow.tracking);
    mlflow.tracking = tracking_open(mlflow.path, &err);
    ck_assert_msg(mlflow.tracking != NULL, "%s", err.text);
}

void mlflow_meddle(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(mlflow.path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK, "%s", error);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static json_t *keep(json_t *value)
{
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_lt(mlflow.kept_count, sizeof mlflow.kept / sizeof mlflow.kept[0]);
    mlflow.kept[mlflow.kept_count++] = value;
    return value;
}

bool mlflow_serve(struct tracking *tracking, const char *call, const struct tracking_request *request,
                  struct text *out, struct tracking_error *error)
{
    autofree char *method = xstrdup(call);
    char *path = strchr(method, ' ');
    *path++ = '\0';
    const struct tracking_endpoint *endpoint = tracking_endpoint_find(method, path);
    ck_assert_msg(endpoint != NULL, "%s", call);
    return tracking_serve(tracking, endpoint, request, out, error);
}

static bool serve(const char *call, json_t *body, struct text *out)
{
    const struct tracking_request request = {.body = body,
                                             .rights = mlflow.rights,
                                             .owner = mlflow.sender != NULL ? mlflow.sender : "ada",
                                             .project = mlflow.project,
                                             .own_run = mlflow.own_run,
                                             .now_ms = mlflow.now_ms};
    return mlflow_serve(mlflow.tracking, call, &request, out, &mlflow.error);
}

json_t *mlflow_ask(const char *call, json_t *body)
{
    autojson json_t *owned = body;
    ck_assert_ptr_nonnull(owned);
    autotext struct text out = {0};
    struct err err;
    ck_assert_msg(serve(call, owned, &out), "%s: %s", tracking_code_name(mlflow.error.code),
                  mlflow.error.message);
    json_t *answer = json_parse(out.bytes, out.length, &err);
    ck_assert_msg(json_is_object(answer), "%s", out.bytes);
    return keep(answer);
}

void mlflow_refuse(const char *call, json_t *body, enum tracking_code code, const char *text)
{
    autojson json_t *owned = body;
    ck_assert_ptr_nonnull(owned);
    autotext struct text out = {0};
    text_append(&out, "before");
    ck_assert_msg(!serve(call, owned, &out), "%s", out.bytes);
    ck_assert_str_eq(out.bytes, "before");
    ck_assert_msg(mlflow.error.code == code, "%s: %s", tracking_code_name(mlflow.error.code),
                  mlflow.error.message);
    ck_assert_msg(strstr(mlflow.error.message, text) != NULL, "\"%s\" is not in \"%s\"", text,
                  mlflow.error.message);
}

const char *mlflow_run(const char *experiment_id, const char *name)
{
    json_t *answer = mlflow_ask("POST runs/create",
                                json_pack("{s:s, s:s*, s:I}", "experiment_id", experiment_id, "run_name",
                                          name, "start_time", (json_int_t)mlflow.now_ms++));
    return mlflow_text(answer, "run.info.run_id");
}

json_t *mlflow_get(const char *run_id)
{
    return mlflow_at(mlflow_ask("GET runs/get", json_pack("{s:s}", "run_id", run_id)), "run");
}

void mlflow_log(const char *run_id, const char *key, double value, int64_t at_ms, int64_t step)
{
    mlflow_ask("POST runs/log-metric",
               json_pack("{s:s, s:s, s:f, s:I, s:I}", "run_id", run_id, "key", key, "value", value,
                         "timestamp", (json_int_t)at_ms, "step", (json_int_t)step));
}

void mlflow_param(const char *run_id, const char *key, const char *value)
{
    mlflow_ask("POST runs/log-parameter",
               json_pack("{s:s, s:s, s:s}", "run_id", run_id, "key", key, "value", value));
}

void mlflow_tag(const char *run_id, const char *key, const char *value)
{
    mlflow_ask("POST runs/set-tag",
               json_pack("{s:s, s:s, s:s}", "run_id", run_id, "key", key, "value", value));
}

json_t *mlflow_at(json_t *value, const char *path)
{
    autofree char *copy = xstrdup(path);
    char *rest = copy;
    for (char *part; (part = strsep(&rest, ".")) != NULL;) {
        json_t *next =
            json_is_array(value) ? json_array_get(value, (size_t)atol(part)) : json_object_get(value, part);
        autofree char *shown = json_text(value);
        ck_assert_msg(next != NULL, "there is no \"%s\" of \"%s\" in %s", part, path, shown);
        value = next;
    }
    return value;
}

const char *mlflow_text(json_t *value, const char *path)
{
    const json_t *found = mlflow_at(value, path);
    if (json_is_string(found)) {
        return json_string_value(found);
    }
    autofree char *digits = json_is_integer(found) ? xprintf("%lld", (long long)json_integer_value(found))
                                                   : xprintf("%.17g", json_number_value(found));
    return json_string_value(keep(json_string(digits)));
}

json_t *mlflow_value(json_t *pairs, const char *key)
{
    size_t i;
    json_t *pair;
    json_array_foreach (pairs, i, pair) {
        if (strcmp(json_string_value(json_object_get(pair, "key")), key) == 0) {
            return json_object_get(pair, "value");
        }
    }
    return NULL;
}
