/* SPDX-License-Identifier: Apache-2.0 */
/* The specs of jobs that are being started, decoded: a submission leaves its own here, and orders take it. */
#ifndef HTTP_SPECS_H
#define HTTP_SPECS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"
#include "proto/base/err.h"

struct specs;

struct specs *specs_create(struct reader *reader);
void specs_destroy(struct specs *specs);

/* Keeps a reference for a while if the spec is small; length is that of its text. */
void specs_keep(struct specs *specs, int64_t job_key, json_t *spec, size_t length);

/* A new reference to the spec, from here or from the store; NULL with *err. */
json_t *specs_get(struct specs *specs, int64_t job_key, struct err *err);

/* The value of a variable that the spec sets, borrowed; NULL: it sets none of this name. */
const char *specs_variable(const json_t *spec, const char *name);

#endif
