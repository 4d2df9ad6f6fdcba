/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of one member of an MLflow request. Each returns false with INVALID_PARAMETER_VALUE, naming the
 * member, if the member has another type. An absent or null member leaves *ret_value as it is. Texts and
 * values are borrowed from the request. */
#ifndef MLFLOW_FIELD_H
#define MLFLOW_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/mlflow/tracking.h"

bool field_text(const json_t *body, const char *name, const char **ret_value, struct tracking_error *error);
/* Reads a whole number, also as text. */
bool field_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error);
/* The value of a metric: a number, or a text with one, "NaN", "Infinity" or "-Infinity". */
bool field_double(const json_t *body, const char *name, double *ret_value, struct tracking_error *error);
/* Reads one of the words, or its number, which counts from 1. */
bool field_word(const json_t *body, const char *name, const char *const *words, size_t count,
                size_t *ret_index, struct tracking_error *error);
/* An array of objects. */
bool field_objects(const json_t *body, const char *name, const json_t **ret_value,
                   struct tracking_error *error);
/* Reads an array of texts; a single text counts as an array of one. The caller owns *ret_value. */
bool field_texts(const json_t *body, const char *name, json_t **ret_value, struct tracking_error *error);

/* Like the readers above, but an absent member is an error, too. */
bool field_need_text(const json_t *body, const char *name, const char **ret_value,
                     struct tracking_error *error);
bool field_need_int(const json_t *body, const char *name, int64_t *ret_value, struct tracking_error *error);

/* Reads run_id, or run_uuid, its name in older clients. */
bool field_need_run_id(const json_t *body, const char **ret_run_id, struct tracking_error *error);
/* Reads one of the words of TRACKING_STATUSES. */
bool field_status(const json_t *body, const char **ret_status, struct tracking_error *error);

/* Reads the member max_results, from 1 to the limit; the default if it is absent. */
bool field_max_results(const json_t *body, int64_t standard, int64_t limit, int64_t *ret_value,
                       struct tracking_error *error);

#endif
