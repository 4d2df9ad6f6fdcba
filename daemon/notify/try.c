/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the requests of tries. It promises that a request goes to an allowed address or nowhere, whatever the
 * receiver's name resolves to; that it follows no redirect, uses no proxy, and ends within
 * WEBHOOK_TIMEOUT_MS; and that an answer costs no memory. */
#include "daemon/notify/try.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/notify/message.h"
#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"

/* Called with the address of the connection, after the name was resolved. */
static curl_socket_t open_socket(void *closure, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct try *try = closure;
    if (!networks_allow(try->allowed, &address->addr)) {
        try->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The status is enough; an endless answer is cut off, which makes it a failure. */
static size_t take_answer(char *bytes, size_t size, size_t count, void *closure)
{
    struct try *try = closure;
    try->answer_bytes += (int64_t)(size * count);
    return try->answer_bytes <= LIMIT_WEBHOOK_ANSWER_BYTES ? size * count : 0;
}

static void add_header(struct try *try, const char *name, const char *value)
{
    autofree char *line = xprintf("%s: %s", name, value);
    try->headers = curl_use_append(try->headers, line);
}

static void add_headers(struct try *try, const struct webhook_row *webhook, int64_t wall_ms)
{
    char id[MESSAGE_ID_BYTES], seconds[24];
    message_id(try->key, id);
    snprintf(seconds, sizeof seconds, "%" PRId64, wall_ms / 1000);
    autofree char *signature = message_sign(webhook->secret, id, wall_ms / 1000, &try->body);
    add_header(try, "Content-Type", "application/json");
    add_header(try, "Expect", "");
    add_header(try, "webhook-id", id);
    add_header(try, "webhook-timestamp", seconds);
    add_header(try, "webhook-signature", signature);
}

static void set_options(struct try *try, const char *url)
{
    CURL *easy = try->easy;
    curl_use_set(easy, CURLOPT_URL, url);
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_use_set(easy, CURLOPT_PROXY, "");
    curl_use_set(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_use_set(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)WEBHOOK_TIMEOUT_MS);
    curl_use_set(easy, CURLOPT_USERAGENT, "gpuctl/" GPUCTL_VERSION);
    curl_use_set(easy, CURLOPT_POST, 1L);
    curl_use_set(easy, CURLOPT_POSTFIELDS, try->body.bytes);
    curl_use_set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)try->body.length);
    curl_use_set(easy, CURLOPT_HTTPHEADER, try->headers);
    curl_use_set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_use_set(easy, CURLOPT_OPENSOCKETDATA, try);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_use_set(easy, CURLOPT_WRITEDATA, try);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, try->answer);
    curl_use_set(easy, CURLOPT_PRIVATE, try);
}

struct try *try_create(const struct delivery_row *row, const struct webhook_row *webhook, struct text *body,
                       const struct networks *allowed, int64_t wall_ms)
{
    struct try *try = xzalloc(sizeof *try);
    try->key = row->key;
    try->tries = row->tries + 1;
    try->webhook = xstrdup(webhook->id);
    try->allowed = allowed;
    try->body = *body;
    *body = (struct text){0};
    add_headers(try, webhook, wall_ms);
    try->easy = curl_use_easy();
    set_options(try, webhook->url);
    return try;
}

void try_destroy(struct try *try)
{
    if (try->easy != NULL) {
        curl_easy_cleanup(try->easy);
    }
    curl_slist_free_all(try->headers);
    text_finish(&try->body);
    free(try->webhook);
    free(try);
}

int64_t try_result(struct try *try, CURLcode code, const char **ret_error)
{
    long status = 0;
    if (code == CURLE_OK && curl_easy_getinfo(try->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK) {
        *ret_error = NULL;
        return status;
    }
    if (try->refused) {
        *ret_error = "the address is private: the operator may allow it by gpuctld --webhook-networks";
    } else if (try->answer_bytes > LIMIT_WEBHOOK_ANSWER_BYTES) {
        *ret_error = "the answer is too long";
    } else {
        *ret_error = try->answer[0] != '\0' ? try->answer : curl_easy_strerror(code);
    }
    return 0;
}
