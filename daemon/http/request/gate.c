/* SPDX-License-Identifier: Apache-2.0 */
/* Checks requests before routing. The HTTP library takes the first of two Content-Lengths, prefers chunks
 * to a length, decodes %2e and ends a path at %00. A proxy in front of us may read the same bytes
 * differently, and bytes that two readers understand differently can carry a second request past the
 * first. So a request that passes the gate has one meaning: a path of plain characters without dotted
 * parts, one Host that is ours, one length. The gate reads text and answers yes or no. */
#include "daemon/http/request/gate.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

/* --- the URI -------------------------------------------------------------------------------------------- */

static bool is_alnum(char c)
{
    return isalnum((unsigned char)c) != 0;
}

static bool path_character(char c)
{
    return is_alnum(c) || c == '/' || c == '_' || c == '.' || c == '~' || c == '-' || c == ':';
}

void gate_unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        uint8_t byte = (uint8_t)*in;
        const char hex[] = {*in == '%' ? in[1] : '\0', *in == '%' && in[1] != '\0' ? in[2] : '\0', '\0'};
        if (text_from_hex(hex, &byte, 1)) {
            in += 2;
        }
        *out++ = (char)byte;
    }
    *out = '\0';
}

/* "." and ".." as a whole part, and an empty part that is not the last. */
static bool part_allowed(const char *part, size_t length, bool last)
{
    if (length == 0) {
        return last;
    }
    return !(length == 1 && part[0] == '.') && !(length == 2 && part[0] == '.' && part[1] == '.');
}

static bool parts_allowed(const char *path, size_t length, struct err *err)
{
    size_t start = path[0] == '/';
    for (size_t i = start; i <= length; i++) {
        if (i == length || path[i] == '/') {
            if (!part_allowed(path + start, i - start, i == length)) {
                return err_set(err, ERR_MALFORMED, "the request's path has an empty or dotted part");
            }
            start = i + 1;
        }
    }
    return true;
}

/* Names of files may have more characters, and escapes for those that a path cannot carry. An escape of a
 * separator or a NUL stands for nothing that a name may have. */
static bool name_allowed(const char *path, size_t length, struct err *err)
{
    for (size_t i = 0; i < length; i++) {
        if (path[i] == '%') {
            uint8_t byte;
            char hex[] = {i + 1 < length ? path[i + 1] : '\0', i + 2 < length ? path[i + 2] : '\0', '\0'};
            if (!text_from_hex(hex, &byte, 1)) {
                return err_set(err, ERR_MALFORMED, "the request's path has a '%%' without two hex digits");
            }
            if (byte == '\0' || byte == '/') {
                return err_set(err, ERR_MALFORMED, "the request's path has an escaped separator");
            }
            i += 2;
        } else if (!path_character(path[i]) && strchr("!$&'()*+,;=:@", path[i]) == NULL) {
            return err_set(err, ERR_MALFORMED, "the request's path has a character that must be escaped");
        }
    }
    return true;
}

bool gate_file_path(const char *path, struct err *err)
{
    autojson json_t *utf8 = json_string(path);
    bool plain = utf8 != NULL;
    for (const char *c = path; *c != '\0'; c++) {
        plain = plain && (unsigned char)*c >= ' ' && *c != 0x7f && *c != '\\';
    }
    if (!plain) {
        return err_set(err, ERR_MALFORMED,
                       "a path of a file is UTF-8 without control characters and backslashes");
    }
    return parts_allowed(path, strlen(path), err);
}

/* Without the escapes a part must not be empty or dotted either. */
static bool names_allowed(const char *path, size_t length, struct err *err)
{
    if (!name_allowed(path, length, err)) {
        return false;
    }
    autofree char *plain = xstrndup(path, length);
    gate_unescape(plain);
    return gate_file_path(plain, err);
}

static bool path_allowed(const char *path, size_t length, struct err *err)
{
    static const char files[] = GATE_FILES;
    if (length == 0 || path[0] != '/') {
        return err_set(err, ERR_MALFORMED, "the request's path does not start with '/'");
    }
    if (strncmp(path, files, sizeof files - 1) == 0) {
        return names_allowed(path, length, err);
    }
    for (size_t i = 0; i < length; i++) {
        if (!path_character(path[i])) {
            return err_set(
                err, ERR_MALFORMED,
                "the request's path has a character that is not a letter, digit or one of / _ . ~ - :");
        }
    }
    return parts_allowed(path, length, err);
}

static bool query_allowed(const char *query, struct err *err)
{
    for (const char *c = query; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || *c == '#') {
            return err_set(err, ERR_MALFORMED, "the request's query has a character that must be escaped");
        }
        if (*c == '%') {
            if (!isxdigit((unsigned char)c[1]) || !isxdigit((unsigned char)c[2])) {
                return err_set(err, ERR_MALFORMED, "the request's query has a '%%' without two hex digits");
            }
            if (c[1] == '0' && c[2] == '0') {
                return err_set(err, ERR_MALFORMED, "the request's query has an escaped NUL");
            }
        }
    }
    return true;
}

bool gate_uri(const char *uri, struct err *err)
{
    if (strnlen(uri, LIMIT_URI_BYTES + 1) > LIMIT_URI_BYTES) {
        return err_set(err, ERR_URI_TOO_LONG, "the path and query are longer than %lld bytes",
                       (long long)LIMIT_URI_BYTES);
    }
    const char *question = strchr(uri, '?');
    size_t length = question != NULL ? (size_t)(question - uri) : strlen(uri);
    return path_allowed(uri, length, err) && (question == NULL || query_allowed(question + 1, err));
}

/* --- headers -------------------------------------------------------------------------------------------- */

static bool is_token(const char *name)
{
    if (*name == '\0') {
        return false;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!is_alnum(*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL) {
            return false;
        }
    }
    return true;
}

/* A lone CR is a character to some readers, and the end of a line to others. */
static bool is_plain(const char *value)
{
    for (const char *c = value; *c != '\0'; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

#define PLACE(name, member)                                                                                  \
    {                                                                                                        \
        name, sizeof name - 1, offsetof(struct headers, member)                                              \
    }

/* The headers that are looked at, and where their values are kept. */
static const struct place {
    const char *name;
    size_t length, offset;
} places[] = {
    PLACE("Host", host),
    PLACE("Cookie", cookie),
    PLACE("Range", range),
    PLACE("Expect", expect),
    PLACE("Accept", accept),
    PLACE("If-Match", if_match),
    PLACE("User-Agent", user_agent),
    PLACE("Content-Type", content_type),
    PLACE("tracestate", tracestate),
    PLACE("traceparent", traceparent),
    PLACE("Authorization", authorization),
    PLACE("If-None-Match", if_none_match),
    PLACE("Last-Event-ID", last_event_id),
    PLACE("Gpuctl-Session", session_proof),
    PLACE("Idempotency-Key", idempotency_key),
    PLACE("Accept-Encoding", accept_encoding),
    PLACE("Transfer-Encoding", transfer_encoding),
};

static const char **place_of(struct headers *headers, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].length == length && strcasecmp(places[i].name, name) == 0) {
            return (const char **)((char *)headers + places[i].offset);
        }
    }
    return NULL;
}

static bool refuse_second(const char *name, struct err *err)
{
    return err_set(err, ERR_MALFORMED, "the request has more than one %s header", name);
}

static bool add_content_length(struct headers *headers, const char *value, struct err *err)
{
    if (headers->content_length >= 0) {
        return refuse_second("Content-Length", err);
    }
    if (!isdigit((unsigned char)value[0]) || !text_to_int(value, 0, INT64_MAX, &headers->content_length)) {
        return err_set(err, ERR_MALFORMED, "the Content-Length is not a number");
    }
    return true;
}

bool headers_add(struct headers *headers, const char *name, const char *value, struct err *err)
{
    if (!is_token(name)) {
        return err_set(err, ERR_MALFORMED, "the request has a header whose name is not a token");
    }
    if (!is_plain(value)) {
        return err_set(err, ERR_MALFORMED, "the request has a header with a control character");
    }
    headers->bytes += strlen(name) + strlen(value) + 4;
    if (headers->bytes > LIMIT_HEADER_BYTES) {
        return err_set(err, ERR_HEADERS, "the headers are longer than %lld bytes",
                       (long long)LIMIT_HEADER_BYTES);
    }
    if (strcasecmp(name, "Content-Length") == 0) {
        return add_content_length(headers, value, err);
    }
    const char **place = place_of(headers, name);
    if (place == NULL) {
        return true;
    }
    if (*place == NULL) {
        *place = value;
        return true;
    }
    if (place == &headers->traceparent) {
        *place = ""; /* two of them are one that is malformed, which is ignored */
        return true;
    }
    /* Lists may be split over headers; the first part decides. */
    return place == &headers->accept || place == &headers->accept_encoding || place == &headers->user_agent ||
           place == &headers->tracestate || refuse_second(name, err);
}

bool headers_announce_body(const struct headers *headers)
{
    return headers->content_length > 0 || headers->transfer_encoding != NULL;
}

/* --- together ------------------------------------------------------------------------------------------- */

/* The length of the name in "name", "name:port" or "[v6]:port"; 0 when it is none of these. */
static size_t host_name_length(const char *host)
{
    const char *end;
    if (host[0] == '[') {
        end = strchr(host, ']');
        end = end != NULL ? end + 1 : host;
    } else {
        end = host + strcspn(host, ":");
    }
    if (*end != '\0' && (*end != ':' || end[1] == '\0' || strspn(end + 1, "0123456789") != strlen(end + 1))) {
        return 0;
    }
    return (size_t)(end - host);
}

static bool same_name(const char *host, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(host, name, length) == 0;
}

static bool host_allowed(const char *host, const struct host_names *names, struct err *err)
{
    size_t length = host_name_length(host);
    if (length > 0 && (same_name(host, length, "127.0.0.1") || same_name(host, length, "localhost") ||
                       same_name(host, length, "[::1]"))) {
        return true;
    }
    for (size_t i = 0; length > 0 && i < names->count; i++) {
        if (same_name(host, length, names->items[i])) {
            return true;
        }
    }
    err_set(err, ERR_MISDIRECTED, "this server does not answer to the name in the Host header");
    return err_hint(err, "name it with gpuctld --host-name");
}

bool gate_headers(const struct headers *headers, const char *version, const struct host_names *names,
                  struct err *err)
{
    bool old = strcmp(version, "HTTP/1.0") == 0;
    if (!old && strcmp(version, "HTTP/1.1") != 0) {
        return err_set(err, ERR_MALFORMED, "the protocol is neither HTTP/1.1 nor HTTP/1.0");
    }
    if (headers->host == NULL) {
        return err_set(err, ERR_MALFORMED, "the request has no Host header");
    }
    if (headers->transfer_encoding != NULL) {
        if (headers->content_length >= 0) {
            return err_set(err, ERR_MALFORMED, "the request has both Content-Length and Transfer-Encoding");
        }
        if (old || strcasecmp(headers->transfer_encoding, "chunked") != 0) {
            return err_set(err, ERR_MALFORMED, "the only Transfer-Encoding is chunked, and only in HTTP/1.1");
        }
    }
    if (headers->expect != NULL && strcasecmp(headers->expect, "100-continue") != 0) {
        return err_set(err, ERR_EXPECTATION, "the only expectation is 100-continue");
    }
    return host_allowed(headers->host, names, err);
}
