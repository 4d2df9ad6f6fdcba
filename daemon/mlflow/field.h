/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of one member of a request of MLflow. Each returns false with INVALID_PARAMETER_VALUE, naming the
 * member, when it is there with another type; an absent or null member leaves *ret_value as it is. Texts and
 * values are borrowed from the request. */
#ifndef MLFLOW_FIELD_H
#define MLFLOW_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

bool field_text(const json_t *body, const char *name, const char **ret_value, struct tracking_error *error);
/* Whole numbers may come as text. */
bool field_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error);
/* The value of a metric: a number, or a text with one, "NaN", "Infinity" or "-Infinity". */
bool field_double(const json_t *body, const char *name, double *ret_value, struct tracking_error *error);
/* One of the words, by itself or by its number, which counts from 1. */
bool field_word(const json_t *body, const char *name, const char *const *words, size_t count,
                size_t *ret_index, struct tracking_error *error);
/* An array of objects. */
bool field_objects(const json_t *body, const char *name, const json_t **ret_value,
                   struct tracking_error *error);
/* An array of texts; a single text is one of one. The caller owns *ret_value. */
bool field_texts(const json_t *body, const char *name, json_t **ret_value, struct tracking_error *error);

/* The same where an absent member is an error, too. */
bool field_need_text(const json_t *body, const char *name, const char **ret_value,
                     struct tracking_error *error);
bool field_need_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error);

/* run_id, or run_uuid, as older clients call it. */
bool field_need_run_id(const json_t *body, const char **ret_run_id, struct tracking_error *error);
/* The words of TRACKING_STATUSES. */
bool field_status(const json_t *body, const char **ret_status, struct tracking_error *error);

/* The member max_results, from 1 to the limit, else the default. */
bool field_max_results(const json_t *body, int64_t standard, int64_t limit, int64_t *ret_value,
                       struct tracking_error *error);

#endif
