/* SPDX-License-Identifier: Apache-2.0 */
/* The error that every fallible function fills: a code of proto/errors.h and a sentence for people; where it
 * applies, also the field that is wrong and the remedy. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

#include "proto/errors.h"

struct err {
    enum err_code code;
    char text[384]; /* the fault, one sentence without a full stop */
    char field[64]; /* the field that is wrong; empty: no field */
    char hint[256]; /* the remedy; empty: none */
};

/* Fills *err and returns false, so that a caller can return it at once. err may be NULL. */
bool err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set, for a wrong field. field and hint may be NULL. */
bool err_field(struct err *err, enum err_code code, const char *field, const char *hint, const char *format,
               ...) __attribute__((format(printf, 5, 6)));

/* Like err_set, with errno's text appended: "cannot open /x: No such file or directory". ENOSPC and EDQUOT
 * become ERR_DISK_FULL. */
bool err_errno(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the remedy to an error that is already set; returns false. */
bool err_hint(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Columns of the error table. They never fail: a code outside the table is a defect and aborts. */
const char *err_slug(enum err_code code);
const char *err_title(enum err_code code);
int err_http(enum err_code code);
int err_exit(enum err_code code);
bool err_retryable(enum err_code code);

/* The code of a slug; ERR_INTERNAL for an unknown slug. */
enum err_code err_from_slug(const char *slug);

#endif
