/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the pages of a list of objects, as servers of S3 send it (ListObjectsV2). */
#ifndef PROTO_S3_LISTING_H
#define PROTO_S3_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/s3/s3_answer.h"

struct s3_object {
    char *key, *tag; /* owned; tag NULL: the server names none */
    int64_t size;
    int64_t modified_ms; /* wall clock; -1: the server does not say it */
};

struct s3_listing {
    struct s3_object *objects;
    size_t count, room;
    char *next; /* token of the next page, owned; NULL: this was the last one */
};

/* Adds the objects of a page. ERR_MALFORMED if it is none, or if there would be more than `most` objects. */
bool s3_listing_read(struct s3_element page, size_t most, struct s3_listing *listing, struct err *err);
void s3_listing_finish(struct s3_listing *listing);

#endif
