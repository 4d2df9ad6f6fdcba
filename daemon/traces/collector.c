/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to a collector with libcurl. It follows no redirect, so that headers with secrets reach the
 * configured host alone, and no error names a header's value. */
#include "daemon/traces/collector.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"

#define TRACES_PATH "/v1/traces"

struct collector {
    CURL *easy;
    struct curl_slist *headers;
    struct text reply;
    bool (*stop)(void *closure);
    void *closure;
};

bool collector_is_endpoint(const char *endpoint)
{
    const char *host = strncmp(endpoint, "https://", 8) == 0  ? endpoint + 8
                       : strncmp(endpoint, "http://", 7) == 0 ? endpoint + 7
                                                              : "";
    return *host != '\0' && *host != '/' && strpbrk(host, "@?# \t\r\n") == NULL;
}

/* --- headers -------------------------------------------------------------------------------------------- */

/* The next line without the spaces around it, which is empty for a comment; false: there is none. The caller
 * frees it. */
static bool next_line(const char **at, char **ret_line)
{
    if (**at == '\0') {
        return false;
    }
    size_t length = strcspn(*at, "\n");
    const char *begin = *at + strspn(*at, " \t\r");
    const char *end = *at + length;
    while (end > begin && strchr(" \t\r", end[-1]) != NULL) {
        end--;
    }
    bool text = begin < end && *begin != '#';
    *ret_line = text ? xstrndup(begin, (size_t)(end - begin)) : xstrdup("");
    *at += length + ((*at)[length] == '\n');
    return true;
}

static bool is_header(const char *line)
{
    static const char names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t name = strspn(line, names);
    return name > 0 && line[name] == ':' && line[name + 1 + strspn(line + name + 1, " \t")] != '\0';
}

bool collector_check_headers(const char *headers, struct err *err)
{
    char *line;
    for (int number = 1; next_line(&headers, &line); number++) {
        bool fine = *line == '\0' || is_header(line);
        free(line);
        if (!fine) {
            return err_field(err, ERR_USAGE, "--otlp-headers", "write NAME: VALUE, one a line",
                             "line %d of the file is no header", number);
        }
    }
    return true;
}

static void add_headers(struct collector *collector, const char *headers)
{
    char *line;
    collector->headers = curl_use_append(collector->headers, "Content-Type: application/json");
    collector->headers = curl_use_append(collector->headers, "Expect:"); /* no pause before large bodies */
    while (headers != NULL && next_line(&headers, &line)) {
        if (*line != '\0') {
            collector->headers = curl_use_append(collector->headers, line);
        }
        free(line);
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static size_t take_reply(char *bytes, size_t size, size_t count, void *closure)
{
    struct collector *collector = closure;
    if (collector->reply.length + count > LIMIT_TRACE_REPLY_BYTES) {
        return 0;
    }
    text_append_bytes(&collector->reply, bytes, count);
    return count;
}

static int ask_stop(void *closure, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct collector *collector = closure;
    return collector->stop(collector->closure);
}

struct collector *collector_create(const char *endpoint, const char *headers, bool (*stop)(void *closure),
                                   void *closure)
{
    struct collector *collector = xzalloc(sizeof *collector);
    size_t length = strlen(endpoint);
    length -= endpoint[length - 1] == '/';
    autofree char *url = xprintf("%.*s" TRACES_PATH, (int)length, endpoint);
    collector->stop = stop;
    collector->closure = closure;
    collector->easy = curl_use_easy();
    add_headers(collector, headers);
    curl_use_set(collector->easy, CURLOPT_URL, url);
    curl_use_set(collector->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_use_set(collector->easy, CURLOPT_HTTPHEADER, collector->headers);
    curl_use_set(collector->easy, CURLOPT_USERAGENT, "gpuctld/" GPUCTL_VERSION);
    curl_use_set(collector->easy, CURLOPT_POST, 1L);
    curl_use_set(collector->easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(collector->easy, CURLOPT_NOPROGRESS, 0L);
    curl_use_set(collector->easy, CURLOPT_XFERINFOFUNCTION, ask_stop);
    curl_use_set(collector->easy, CURLOPT_XFERINFODATA, collector);
    curl_use_set(collector->easy, CURLOPT_WRITEFUNCTION, take_reply);
    curl_use_set(collector->easy, CURLOPT_WRITEDATA, collector);
    curl_use_set(collector->easy, CURLOPT_TIMEOUT_MS, (long)TRACE_REPLY_MS);
    return collector;
}

void collector_destroy(struct collector *collector)
{
    if (collector != NULL) {
        curl_easy_cleanup(collector->easy);
        curl_slist_free_all(collector->headers);
        text_finish(&collector->reply);
        free(collector);
    }
}

/* A collector that takes a request may still reject some of its spans. */
static int64_t rejected(const struct collector *collector)
{
    struct err unused;
    const char *text = collector->reply.bytes != NULL ? collector->reply.bytes : "";
    autojson json_t *json = json_parse(text, collector->reply.length, &unused);
    const json_t *count = json_object_get(json_object_get(json, "partialSuccess"), "rejectedSpans");
    int64_t spans = json_integer_value(count); /* 64 bits are text in OTLP, and some write a number */
    if (json_is_string(count) && !text_to_int(json_string_value(count), 0, INT64_MAX, &spans)) {
        spans = 0;
    }
    return spans > 0 ? spans : 0;
}

enum collector_answer collector_send(struct collector *collector, const char *body, size_t length,
                                     int64_t *ret_rejected, int64_t *ret_again_ms, struct err *err)
{
    long status = 0;
    curl_off_t again_s = 0;
    *ret_rejected = *ret_again_ms = 0;
    text_clear(&collector->reply);
    curl_use_set(collector->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    curl_use_set(collector->easy, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(collector->easy);
    if (code != CURLE_OK) {
        err_set(err, ERR_UNAVAILABLE, "%s", curl_easy_strerror(code));
        return COLLECTOR_AGAIN;
    }
    curl_easy_getinfo(collector->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        *ret_rejected = rejected(collector);
        return COLLECTOR_TOOK;
    }
    err_set(err, ERR_UNAVAILABLE, "it answers with HTTP status %ld", status);
    if (status != 429 && status < 500) {
        return COLLECTOR_REFUSED;
    }
    curl_easy_getinfo(collector->easy, CURLINFO_RETRY_AFTER, &again_s);
    *ret_again_ms = again_s > TRACE_AGAIN_MAX_MS / 1000 ? TRACE_AGAIN_MAX_MS : (int64_t)again_s * 1000;
    return COLLECTOR_AGAIN;
}
