/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and finds prices. GPU types are the same in capitals and small letters, as everywhere. */
#include "daemon/http/usage/prices.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define SEPARATORS ", \t\n"

static bool refuse(const char *word, struct err *err)
{
    return err_field(err, ERR_FIELD, "prices",
                     "write GPU_TYPE=AMOUNT or GPU_TYPE/POOL=AMOUNT, with commas between",
                     "\"%.80s\" is no price", word);
}

static bool read_amount(const char *text, double *ret_amount)
{
    char *end;
    *ret_amount = strtod(text, &end);
    return end != text && *end == '\0' && *ret_amount >= 0 && *ret_amount <= LIMIT_PRICE;
}

/* Takes the word apart. */
static bool read_price(char *word, struct price *price, struct err *err)
{
    autofree char *whole = xstrdup(word);
    char *amount = strchr(word, '=');
    if (amount == NULL || amount == word) {
        return refuse(whole, err);
    }
    *amount++ = '\0';
    char *pool = strchr(word, '/');
    if (pool != NULL) {
        *pool++ = '\0';
    }
    if (!text_is_name(word, LIMIT_NAME_BYTES) || (pool != NULL && !text_is_name(pool, LIMIT_NAME_BYTES)) ||
        !read_amount(amount, &price->amount)) {
        return refuse(whole, err);
    }
    price->gpu_type = xstrdup(word);
    price->pool = pool != NULL ? xstrdup(pool) : NULL;
    return true;
}

bool prices_read(const char *text, struct prices *ret_prices, struct err *err)
{
    autofree char *copy = xstrdup(text != NULL ? text : "");
    char *rest = NULL;
    *ret_prices = (struct prices){0};
    for (char *word = strtok_r(copy, SEPARATORS, &rest); word != NULL;
         word = strtok_r(NULL, SEPARATORS, &rest)) {
        struct price price = {0};
        bool good =
            ret_prices->count < LIMIT_PRICES
                ? read_price(word, &price, err)
                : err_field(err, ERR_FIELD, "prices", NULL, "there are more than %d prices", LIMIT_PRICES);
        if (!good) {
            prices_finish(ret_prices);
            return false;
        }
        ret_prices->items = xrealloc(ret_prices->items, (ret_prices->count + 1) * sizeof price);
        ret_prices->items[ret_prices->count++] = price;
    }
    return true;
}

void prices_finish(struct prices *prices)
{
    for (size_t i = 0; i < prices->count; i++) {
        free(prices->items[i].gpu_type);
        free(prices->items[i].pool);
    }
    free(prices->items);
    *prices = (struct prices){0};
}

double prices_find(const struct prices *prices, const char *gpu_type, const char *pool)
{
    double found = 0;
    for (size_t i = 0; i < prices->count; i++) {
        const struct price *price = &prices->items[i];
        if (strcasecmp(price->gpu_type, gpu_type) != 0) {
            continue;
        }
        if (price->pool == NULL) {
            found = price->amount;
        } else if (strcmp(price->pool, pool) == 0) {
            return price->amount;
        }
    }
    return found;
}
