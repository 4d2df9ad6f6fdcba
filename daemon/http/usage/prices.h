/* SPDX-License-Identifier: Apache-2.0 */
/* What an hour of a GPU costs, by its type and pool: gpuctld --prices "H100=2.5,H100/spot=1.2,A10=0.4". */
#ifndef HTTP_PRICES_H
#define HTTP_PRICES_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"

struct price {
    char *gpu_type;
    char *pool; /* NULL: in every pool that has no price of its own for the type */
    double amount;
};

struct prices {
    struct price *items;
    size_t count;
};

/* ERR_FIELD says which of them cannot be understood. text NULL: there are none. */
bool prices_read(const char *text, struct prices *ret_prices, struct err *err);
void prices_finish(struct prices *prices);

/* Of one GPU for an hour; 0: it has none. */
double prices_find(const struct prices *prices, const char *gpu_type, const char *pool);

#endif
