/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes from one side of a stream to the other, as far as that one has not taken them yet. */
#ifndef HTTP_WAY_H
#define HTTP_WAY_H

#include <stdbool.h>
#include <stddef.h>

struct way {
    char *held; /* owned; NULL: none */
    size_t from, length;
    bool ended; /* nothing more comes */
};

/* Keeps a copy of bytes, where none are held. */
void way_hold(struct way *way, const char *bytes, size_t length);
/* The first of those that are held have been taken. */
void way_taken(struct way *way, size_t count);

#endif
