/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP exchange: sets it up for libcurl, passes its bytes on, and explains its end. It promises that
 * every failure is an err with a remedy, and that no reply takes more memory than CLIENT_REPLY_BYTES. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/transport/api_parts.h"
#include "client/cli/show/print.h"
#include "client/cli/show/terminal.h"
#include "proto/base/cleanup.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"
#include "proto/trace_context.h"
#include "proto/wire/token.h"
#include "proto/wire/views.h"

struct transfer {
    struct api *api;
    CURL *easy;
    struct curl_slist *headers;
    char *url;
    bool (*on_bytes)(const char *bytes, size_t length, void *closure);
    void *closure;
    FILE *sink;
    struct terminal terminal; /* where the sink is one */
    struct text body;
    bool too_large, sink_failed;
    bool done;
    CURLcode result;
    char fault[CURL_ERROR_SIZE];
};

static long status_of(const struct transfer *transfer)
{
    long status = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool keep(struct transfer *transfer, const char *bytes, size_t length)
{
    transfer->too_large = transfer->body.length + length > CLIENT_REPLY_BYTES;
    if (!transfer->too_large) {
        text_append_bytes(&transfer->body, bytes, length);
    }
    return !transfer->too_large;
}

/* libcurl's write function. */
static size_t take_bytes(char *bytes, size_t size, size_t count, void *closure)
{
    struct transfer *transfer = closure;
    size_t length = size * count;
    bool good = status_of(transfer) < 400;
    transfer->api->active = true;
    if (good && transfer->on_bytes != NULL) {
        return transfer->on_bytes(bytes, length, transfer->closure) ? length : CURL_WRITEFUNC_PAUSE;
    }
    if (good && transfer->sink != NULL) {
        transfer->sink_failed = !terminal_write(&transfer->terminal, transfer->sink, bytes, length);
        return transfer->sink_failed ? 0 : length;
    }
    return keep(transfer, bytes, length) ? length : 0;
}

static void add_header(struct transfer *transfer, const char *name, const char *value)
{
    if (value == NULL) {
        return;
    }
    autofree char *line = xprintf("%s: %s", name, value);
    transfer->headers = curl_use_append(transfer->headers, line);
}

/* Of a variable that is not sound nothing is sent. */
static void add_trace(struct transfer *transfer)
{
    const char *parent = getenv("TRACEPARENT"), *state = getenv("TRACESTATE");
    struct trace_parent unused;
    if (parent != NULL && trace_parent_read(parent, &unused)) {
        add_header(transfer, "traceparent", parent);
        add_header(transfer, "tracestate", state != NULL && trace_state_is_sound(state) ? state : NULL);
    }
}

static void set_headers(struct transfer *transfer, const struct request *request)
{
    autofree char *bearer = xprintf("Bearer %s", transfer->api->context.token);
    add_header(transfer, "Authorization", request->url == NULL ? bearer : NULL);
    add_header(transfer, "Content-Type", request->content_type);
    add_header(transfer, "Idempotency-Key", request->key);
    add_header(transfer, "Accept", request->accept);
    add_header(transfer, "Last-Event-ID", request->last_id);
    add_header(transfer, "Range", request->range);
    if (request->traced) {
        add_trace(transfer);
    }
    add_header(transfer, "Expect", ""); /* no pause before large bodies */
    explicit_bzero(bearer, strlen(bearer));
    curl_use_set(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
}

static void set_body(CURL *easy, const struct request *request)
{
    if (request->upload != NULL) {
        curl_use_set(easy, CURLOPT_UPLOAD, 1L);
        curl_use_set(easy, CURLOPT_READDATA, request->upload);
        curl_use_set(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->length);
    } else if (request->body != NULL) {
        curl_use_set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
        curl_use_set(easy, CURLOPT_POSTFIELDS, request->body);
    }
    if (request->head) {
        curl_use_set(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_use_set(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

static void set_limits(CURL *easy, int64_t timeout_ms)
{
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    if (timeout_ms >= 0) {
        curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)(timeout_ms > 0 ? timeout_ms : CLIENT_REPLY_MS));
    } else {
        curl_use_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_use_set(easy, CURLOPT_LOW_SPEED_TIME, (long)CLIENT_STREAM_IDLE_S);
    }
}

static void set_connection_to(CURL *easy, const char *url)
{
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_use_set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    if (strncmp(url, "http://", 7) == 0) {
        curl_use_set(easy, CURLOPT_PROXY, ""); /* plain text goes to its host and nowhere else */
    }
}

void api_set_connection(const struct api *api, CURL *easy)
{
    const struct context *context = &api->context;
    set_connection_to(easy, context->url);
    if (context->cacert != NULL) {
        curl_use_set(easy, CURLOPT_CAINFO, context->cacert);
    }
}

static void set_connection(struct transfer *transfer, const struct request *request)
{
    CURL *easy = transfer->easy;
    if (request->url != NULL) {
        set_connection_to(easy, request->url);
        curl_use_authorities(easy);
    } else {
        api_set_connection(transfer->api, easy);
    }
    curl_use_set(easy, CURLOPT_URL, transfer->url);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, transfer->fault);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_use_set(easy, CURLOPT_WRITEDATA, transfer);
    curl_use_set(easy, CURLOPT_PRIVATE, transfer);
}

struct transfer *transfer_start(struct api *api, const struct request *request,
                                bool (*on_bytes)(const char *bytes, size_t length, void *closure),
                                void *closure)
{
    struct transfer *transfer = xzalloc(sizeof *transfer);
    transfer->api = api;
    transfer->on_bytes = on_bytes;
    transfer->closure = closure;
    transfer->sink = request->sink;
    transfer->url =
        request->url != NULL ? xstrdup(request->url) : xprintf("%s%s", api->context.url, request->path);
    transfer->easy = curl_use_easy();
    set_connection(transfer, request);
    set_headers(transfer, request);
    set_body(transfer->easy, request);
    set_limits(transfer->easy, request->timeout_ms);
    curl_use_must_multi(curl_multi_add_handle(api->multi, transfer->easy));
    return transfer;
}

bool transfer_done(const struct transfer *transfer)
{
    return transfer->done;
}

static bool explain(const struct transfer *transfer, struct err *err)
{
    const struct context *context = &transfer->api->context;
    const char *why = transfer->fault[0] != '\0' ? transfer->fault : curl_easy_strerror(transfer->result);
    err_set(err, ERR_UNREACHABLE, "the controller at %s cannot be reached: %s", context->url, why);
    if (transfer->result == CURLE_PEER_FAILED_VERIFICATION || transfer->result == CURLE_SSL_CACERT_BADFILE) {
        return err_hint(err, "name the certificate that signs it with --cacert, or pin it with gpuctl login; "
                             "if that was done, see whether the clock of this machine is right");
    }
    return err_hint(err, "%s",
                    context->embedded ? "start it with `gpuctl up`"
                                      : "is gpuctld running there? name another with --url");
}

static void warn(const struct transfer *transfer)
{
    struct curl_header *header;
    bool *warned = &transfer->api->warned;
    if (!*warned &&
        curl_easy_header(transfer->easy, TOKEN_EXPIRES_HEADER, 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
        *warned = true;
        print_note(
            "your token ends at %s: ask an administrator for a new one (gpuctl token create --owner YOU)",
            header->value);
    }
}

bool transfer_result(struct transfer *transfer, struct err *err)
{
    if (transfer->too_large) {
        return err_set(err, ERR_TOO_LARGE, "the controller's reply is larger than %lld bytes",
                       (long long)CLIENT_REPLY_BYTES);
    }
    if (transfer->sink_failed) {
        return err_errno(err, "cannot write what the controller sent");
    }
    if (transfer->result != CURLE_OK) {
        return explain(transfer, err);
    }
    warn(transfer);
    long status = status_of(transfer);
    if (status >= 400) {
        problem_decode(transfer->body.bytes != NULL ? transfer->body.bytes : "", transfer->body.length,
                       (int)status, err);
        return false;
    }
    return true;
}

char *transfer_content_range(const struct transfer *transfer)
{
    struct curl_header *header;
    bool has = curl_easy_header(transfer->easy, "Content-Range", 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
    return has ? xstrdup(header->value) : NULL;
}

char *transfer_location(const struct transfer *transfer)
{
    const char *url = NULL;
    curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_URL, &url);
    return url != NULL ? xstrdup(url) : NULL;
}

int64_t transfer_again_ms(const struct transfer *transfer)
{
    curl_off_t seconds = 0;
    if (status_of(transfer) == err_http(ERR_TOO_MANY)) {
        curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
    }
    return (seconds < CLIENT_RETRY_MS / 1000 ? seconds : CLIENT_RETRY_MS / 1000) * 1000;
}

void transfer_resume(struct transfer *transfer)
{
    curl_easy_pause(transfer->easy, CURLPAUSE_CONT);
}

void transfer_destroy(struct transfer *transfer)
{
    if (transfer == NULL) {
        return;
    }
    curl_multi_remove_handle(transfer->api->multi, transfer->easy);
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    text_finish(&transfer->body);
    free(transfer->url);
    free(transfer);
}

void transfer_end(CURL *easy, CURLcode result)
{
    char *private = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct transfer *transfer = (struct transfer *)(void *)private;
    transfer->done = true;
    transfer->result = result;
}

const struct text *transfer_body(const struct transfer *transfer)
{
    return &transfer->body;
}
