/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as they arrive: encoded, sent as text, and parsed. */
#ifndef TESTS_OVER_THE_WIRE_H
#define TESTS_OVER_THE_WIRE_H

#include <check.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"

#define ATTEMPT_ID UINT64_C(12884901889) /* incarnation 3, attempt 1 */

/* The bytes of a message on the wire, parsed as the receiver does; takes over json. */
static inline json_t *over_the_wire(json_t *json)
{
    autofree char *text = json_text(json);
    json_decref(json);
    struct err err;
    json_t *received = json_parse(text, strlen(text), &err);
    ck_assert_msg(received != NULL, "%s", err.text);
    return received;
}

/* Sends a message and reads it into `copy`, whose own encoding must be the same. */
#define SEND(type, message, copy)                                                                            \
    struct type copy;                                                                                        \
    do {                                                                                                     \
        struct err err = {0};                                                                                \
        ck_assert_msg(type##_decode(over_the_wire(type##_encode(message)), &copy, &err), "%s", err.text);    \
        autojson json_t *first = type##_encode(message);                                                     \
        autojson json_t *second = type##_encode(&copy);                                                      \
        ck_assert(json_equal(first, second));                                                                \
    } while (0)

#endif
