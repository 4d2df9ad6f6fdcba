/* SPDX-License-Identifier: Apache-2.0 */
/* How a result reads that one rank left: the value that it returned, or the exception that ended it. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/show/print.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct result {
    int64_t rank;
    const char *kind;    /* "value" or "exception"; borrowed from the JSON, as the others */
    int64_t size;        /* of the pickle in bytes; 0: there is none */
    const char *sha256;  /* of the pickle; NULL: there is none */
    const json_t *shown; /* the value as JSON, or the error file; NULL: there is none */
};

/* Reads an object of the API's list `results`. ERR_FIELD where a member is missing or wrong. */
bool result_read(const json_t *json, struct result *ret_result, struct err *err);
/* The columns of a table of results. */
#define RESULT_COLUMNS 5
extern const struct column result_columns[RESULT_COLUMNS];

#endif
