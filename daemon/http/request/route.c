/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the route of a method and a path, and checks the announced body against the route. It only reads; the
 * router has the table and answers for requests that fit no route. */
#include "daemon/http/request/route.h"

#include <string.h>
#include <strings.h>

/* --- matching ------------------------------------------------------------------------------------------- */

static const char *const method_names[METHOD_COUNT] = {"GET", "POST", "PUT", "DELETE", "PATCH"};

const char *method_text(enum method method)
{
    return method_names[method];
}

const char *route_method(const struct request *request)
{
    return request->head ? "HEAD" : method_names[request->route->method];
}

static bool method_from_text(const char *text, enum method *ret_method)
{
    if (strcmp(text, "HEAD") == 0) {
        *ret_method = METHOD_GET;
        return true;
    }
    for (int i = 0; i < METHOD_COUNT; i++) {
        if (strcmp(text, method_names[i]) == 0) {
            *ret_method = (enum method)i;
            return true;
        }
    }
    return false;
}

static bool path_fits(const char *template, const char *path, char argument[REQUEST_ARGUMENT_BYTES])
{
    while (*template != '\0' && *template != '{') {
        if (*template ++ != *path++) {
            return false;
        }
    }
    if (*template == '\0') {
        return *path == '\0';
    }
    if (template[1] == '+') {
        argument[0] = '\0';
        return *path != '\0';
    }
    size_t length = strcspn(path, "/");
    if (length == 0 || length >= REQUEST_ARGUMENT_BYTES ||
        strcmp(strchr(template, '}') + 1, path + length) != 0) {
        return false;
    }
    memcpy(argument, path, length);
    argument[length] = '\0';
    return true;
}

const char *route_tail(const struct request *request)
{
    const char *hole = strstr(request->route->path, "{+");
    return hole != NULL ? request->path + (hole - request->route->path) : "";
}

const struct route *route_match(const struct route *table, const char *method_name, const char *path,
                                char argument[REQUEST_ARGUMENT_BYTES], unsigned *ret_allowed)
{
    enum method method = METHOD_COUNT;
    bool known = method_from_text(method_name, &method);
    *ret_allowed = 0;
    for (const struct route *route = table; route->path != NULL; route++) {
        if (path_fits(route->path, path, argument)) {
            if (known && route->method == method) {
                return route;
            }
            *ret_allowed |= 1U << route->method;
        }
    }
    return NULL;
}

/* --- the body ------------------------------------------------------------------------------------------- */

static bool is_type(const char *content_type, const char *type)
{
    size_t length = strlen(type);
    if (content_type == NULL || strncasecmp(content_type, type, length) != 0) {
        return false;
    }
    const char *rest = content_type + length;
    rest += strspn(rest, " \t");
    return *rest == '\0' || *rest == ';';
}

bool headers_body_is_lines(const struct headers *headers)
{
    return is_type(headers->content_type, "application/x-ndjson");
}

static bool type_allowed(const struct route *route, const struct headers *headers, struct err *err)
{
    bool list = route->body == BODY_LIST;
    bool json = list || route->body == BODY_JSON || route->body == BODY_JSON_OR_EMPTY;
    if (!json || is_type(headers->content_type, "application/json") ||
        (list && headers_body_is_lines(headers))) {
        return true;
    }
    err_set(err, ERR_MEDIA_TYPE, "the body of this path is JSON%s", list ? " or NDJSON" : "");
    return err_hint(err, "send Content-Type: application/json%s", list ? " or application/x-ndjson" : "");
}

bool route_allows_body(const struct route *route, const struct headers *headers, struct err *err)
{
    bool announced = headers_announce_body(headers);
    if (!announced && headers->content_length < 0 && route->body != BODY_NONE &&
        route->body != BODY_JSON_OR_EMPTY) {
        return err_set(err, ERR_LENGTH_REQUIRED, "the request has neither Content-Length nor chunks");
    }
    if (headers->content_length > route->body_limit || (announced && route->body == BODY_NONE)) {
        return err_set(err, ERR_TOO_LARGE, "the body is longer than %lld bytes, the limit of this path",
                       (long long)route->body_limit);
    }
    return !announced || type_allowed(route, headers, err);
}
