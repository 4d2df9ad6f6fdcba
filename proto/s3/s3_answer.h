/* SPDX-License-Identifier: Apache-2.0 */
/* The XML in the answers of an S3 store. Its bytes are a stranger's: nothing is taken for granted. */
#ifndef PROTO_S3_ANSWER_H
#define PROTO_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The content of an element, with its own elements; within the answer. */
struct s3_element {
    const char *bytes;
    size_t length;
};

/* Finds the next element of this name in *rest, and moves *rest behind it; false: there is none. Elements of
 * one name are not in each other in any answer of S3. */
bool s3_answer_next(struct s3_element *rest, const char *name, struct s3_element *ret_element);

/* The text of the first element of this name, with its entities decoded; NULL: there is none, or it is no
 * text. The caller frees it. */
char *s3_answer_text(struct s3_element within, const char *name);

/* The same of a number; -1: it is none. */
int64_t s3_answer_int(struct s3_element within, const char *name);

#endif
