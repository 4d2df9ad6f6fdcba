/* SPDX-License-Identifier: Apache-2.0 */
/* An open tracking store in a folder of its own, and short ways to ask it. */
#ifndef MLFLOW_RIG_H
#define MLFLOW_RIG_H

#include <check.h>
#include <jansson.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

struct mlflow_rig {
    char folder[64];
    char *path; /* of the database */
    struct tracking *tracking;
    struct tracking_error error;            /* of the last refusal */
    int64_t now_ms;                         /* of requests */
    const char *sender, *project, *own_run; /* of requests; sender NULL: ada */
    const struct tracking_rights *rights;
    json_t *kept[4096]; /* answers and bodies, until the end of the test */
    size_t kept_count;
};
extern struct mlflow_rig mlflow;

/* For tcase_add_checked_fixture. */
void mlflow_setup(void);
void mlflow_teardown(void);
void mlflow_reopen(void);
/* Changes the closed database behind the store's back. */
void mlflow_meddle(const char *sql);

/* Has the store serve a call, as "POST runs/create". */
bool mlflow_serve(struct tracking *tracking, const char *call, const struct tracking_request *request,
                  struct text *out, struct tracking_error *error);
/* Makes a call with the body, which is taken over; the answer lives until the end of the test. */
json_t *mlflow_ask(const char *call, json_t *body);
/* Expects a refusal with the code and the text in its message; out stays untouched. */
void mlflow_refuse(const char *call, json_t *body, enum tracking_code code, const char *text);

/* Makes a run in the experiment and returns its id. */
const char *mlflow_run(const char *experiment_id, const char *name);
/* What runs/get shows. */
json_t *mlflow_get(const char *run_id);
void mlflow_log(const char *run_id, const char *key, double value, int64_t at_ms, int64_t step);
void mlflow_param(const char *run_id, const char *key, const char *value);
void mlflow_tag(const char *run_id, const char *key, const char *value);

/* The member of nested objects and arrays, as "run.info.status" or "runs.0.data"; fails where there is none.
 */
json_t *mlflow_at(json_t *value, const char *path);
/* The same as text, numbers in decimal. */
const char *mlflow_text(json_t *value, const char *path);
/* The value that an array of {key, value} has for a key; NULL: none. */
json_t *mlflow_value(json_t *pairs, const char *key);

#endif
