/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters after the '?' of a request. */
#ifndef HTTP_QUERY_H
#define HTTP_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/limits_controller.h"

struct query {
    struct {
        const char *name;
        const char *value;
    } items[LIMIT_QUERY_PARAMETERS];
    size_t count;
};

/* Splits and decodes text in place; the query borrows it. known lists the names that the route takes,
 * separated by spaces; another one is ERR_UNKNOWN_FIELD unless known is "*". NULL: it takes none. */
bool query_parse(char *text, const char *known, struct query *ret_query, struct err *err);

/* true when names, separated by spaces, has the name. */
bool query_lists(const char *names, const char *name);

/* The readers take query NULL as an empty one. Absent: they leave *ret_value as it is and return true
 * (query_text: NULL). A second value of one name is ERR_FIELD, and so is one of the wrong kind. */
const char *query_text(const struct query *query, const char *name);
bool query_int(const struct query *query, const char *name, int64_t min, int64_t max, int64_t *ret_value,
               struct err *err);
/* A name as jobs, projects and owners have one. */
bool query_name(const struct query *query, const char *name, const char **ret_value, struct err *err);
/* The parameter `owner`: a name, or that of a service account. */
bool query_owner(const struct query *query, const char **ret_owner, struct err *err);
/* Seconds, or a duration as people write it, in milliseconds; at most max_ms. */
bool query_duration(const struct query *query, const char *name, int64_t max_ms, int64_t *ret_ms,
                    struct err *err);
/* A moment: RFC 3339, or milliseconds since 1970. */
bool query_moment(const struct query *query, const char *name, int64_t *ret_wall_ms, struct err *err);

#endif
