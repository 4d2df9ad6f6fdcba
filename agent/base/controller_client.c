/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to the controller: connections, token, time limits and retries. A persistent request is
 * retried, after a random wait, until the controller has answered it. Nothing here blocks. The callers make
 * the requests and interpret the answers. A controller that was restored from a backup may not know the
 * newest token of the node: each of the earlier ones gets one try, the youngest first. */
#include "agent/base/controller_client.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/base/curl_loop.h"
#include "agent/base/node_tokens.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/views.h"

#define SPARE_COUNT 8 /* curl handles kept for the next requests */
#define BACKOFF_CAP 6 /* doublings from BACKOFF_FIRST_MS to above BACKOFF_MAX_MS */
/* a PUT that has moved no byte for so long is retried; the controller needs less to store a large blob */
#define STALL_S 120

struct controller_client {
    struct controller_client_config config;
    struct loop *loop;
    struct curl_loop *curl;
    char *token, *newest; /* that of the requests, and that of the token file */
    size_t earlier;       /* which of the earlier tokens it is; 0: the newest */
    unsigned changes;     /* of the token */
    bool refused_all;     /* the newest and all earlier ones, since one was taken */
    bool taken;           /* the controller has taken this one */
    struct curl_slist *json_headers, *bytes_headers;
    CURL *spares[SPARE_COUNT];
    size_t spare_count;
    struct controller_request *requests;
    bool lost; /* the last try of a request failed */
};

struct controller_request {
    struct controller_client *controller;
    struct controller_call call; /* its path is not kept */
    char *url;
    CURL *easy; /* NULL while it waits for its next try */
    char *sent; /* JSON body of this try */
    struct text received;
    bool arrived;     /* arrive has been called in this try */
    bool refused;     /* arrive or supply returned false */
    int64_t supplied; /* position of this try */
    int64_t sent_ms;
    unsigned failures;
    unsigned token; /* how often the token had changed before this try */
    struct loop_timer retry;
    struct controller_request *prev, *next;
};

/* --- one try -------------------------------------------------------------------------------------------- */

static size_t on_bytes(char *bytes, size_t size, size_t count, void *closure)
{
    struct controller_request *request = closure;
    size_t length = size * count;
    long status = 0;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    if (request->call.arrive != NULL && status == 200) {
        request->refused = !request->call.arrive(request->call.closure, bytes, length, !request->arrived);
        request->arrived = true;
        return request->refused ? 0 : length;
    }
    if (request->received.length + length > (size_t)LIMIT_AGENT_REPLY_BYTES) {
        return 0;
    }
    text_append_bytes(&request->received, bytes, length);
    return length;
}

static size_t on_room(char *buffer, size_t size, size_t count, void *closure)
{
    struct controller_request *request = closure;
    size_t room = size * count, left = request->call.length - (size_t)request->supplied;
    size_t length = room < left ? room : left;
    if (!request->call.supply(request->call.closure, request->supplied, buffer, length)) {
        request->refused = true;
        return CURL_READFUNC_ABORT;
    }
    request->supplied += (int64_t)length;
    return length;
}

/* curl sends the body again if a kept connection turns out to be closed. */
static int on_rewind(void *closure, curl_off_t offset, int origin)
{
    struct controller_request *request = closure;
    request->supplied = (int64_t)offset;
    return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

static void set_supply(struct controller_request *request)
{
    CURL *easy = request->easy;
    request->supplied = 0;
    curl_use_set(easy, CURLOPT_UPLOAD, 1L);
    curl_use_set(easy, CURLOPT_HTTPHEADER, request->controller->bytes_headers);
    curl_use_set(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->call.length);
    curl_use_set(easy, CURLOPT_READFUNCTION, on_room);
    curl_use_set(easy, CURLOPT_READDATA, request);
    curl_use_set(easy, CURLOPT_SEEKFUNCTION, on_rewind);
    curl_use_set(easy, CURLOPT_SEEKDATA, request);
    curl_use_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_use_set(easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
}

static void set_body(struct controller_request *request)
{
    struct controller_client *controller = request->controller;
    CURL *easy = request->easy;
    if (request->call.arrive != NULL) {
        return;
    }
    if (request->call.supply != NULL) {
        set_supply(request);
        return;
    }
    const void *bytes = request->call.bytes;
    size_t length = request->call.length;
    if (request->call.body != NULL) {
        autojson json_t *body = request->call.body(request->call.closure);
        free(request->sent);
        request->sent = json_text(body);
        bytes = request->sent;
        length = strlen(request->sent);
    }
    curl_use_set(easy, CURLOPT_HTTPHEADER,
                 request->call.body != NULL ? controller->json_headers : controller->bytes_headers);
    curl_use_set(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
    curl_use_set(easy, CURLOPT_POSTFIELDS, length > 0 ? bytes : "");
}

static void set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_use_set(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

void controller_client_set(const struct controller_client *controller, CURL *easy)
{
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    set_protocols(easy);
    curl_use_set(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_use_set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    if (controller->config.cacert != NULL) {
        curl_use_set(easy, CURLOPT_CAINFO, controller->config.cacert);
    }
}

static void begin(struct controller_request *request)
{
    struct controller_client *controller = request->controller;
    CURL *easy =
        controller->spare_count > 0 ? controller->spares[--controller->spare_count] : curl_use_easy();
    request->easy = easy;
    request->token = controller->changes;
    request->arrived = false;
    text_clear(&request->received);
    curl_use_set(easy, CURLOPT_URL, request->url);
    curl_use_set(easy, CURLOPT_PRIVATE, request);
    controller_client_set(controller, easy);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)request->call.timeout_ms);
    curl_use_set(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_use_set(easy, CURLOPT_XOAUTH2_BEARER, controller->token);
    curl_use_set(easy, CURLOPT_USERAGENT, "gpuagent/" GPUCTL_VERSION);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_use_set(easy, CURLOPT_WRITEDATA, request);
    if (request->call.arrive != NULL) {
        curl_use_set(easy, CURLOPT_BUFFERSIZE, (long)BLOB_BUFFER_BYTES);
    }
    set_body(request);
    request->sent_ms = clock_boot_ms();
    curl_use_must_multi(curl_multi_add_handle(curl_loop_multi(controller->curl), easy));
}

static void end_try(struct controller_request *request)
{
    struct controller_client *controller = request->controller;
    if (request->easy == NULL) {
        return;
    }
    curl_multi_remove_handle(curl_loop_multi(controller->curl), request->easy);
    if (controller->spare_count < SPARE_COUNT) {
        curl_easy_reset(request->easy);
        controller->spares[controller->spare_count++] = request->easy;
    } else {
        curl_easy_cleanup(request->easy);
    }
    request->easy = NULL;
}

static void destroy_request(struct controller_request *request)
{
    end_try(request);
    loop_disarm(request->controller->loop, &request->retry);
    DL_DELETE(request->controller->requests, request);
    text_finish(&request->received);
    free(request->sent);
    free(request->url);
    free(request);
}

void controller_cancel(struct controller_request *request)
{
    if (request != NULL) {
        destroy_request(request);
    }
}

static json_t *no_body(void *closure)
{
    return json_object();
}

static void not_done(void *closure, const struct controller_answer *answer)
{
}

void controller_abandon(struct controller_request *request)
{
    if (request != NULL && request->easy == NULL) {
        destroy_request(request);
    } else if (request != NULL) {
        request->call = (struct controller_call){.body = no_body, .done = not_done};
    }
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* Takes the token over. */
static void use_token(struct controller_client *controller, char *token, size_t earlier)
{
    free(controller->token);
    controller->token = token;
    controller->earlier = earlier;
    controller->changes++;
    controller->taken = false;
}

static bool read_token(struct controller_client *controller, struct err *err)
{
    char *newest = node_tokens_newest(controller->config.token_file, err);
    if (newest == NULL) {
        return false;
    }
    free(controller->newest);
    controller->newest = newest;
    controller->refused_all = false;
    use_token(controller, xstrdup(newest), 0);
    return true;
}

bool controller_client_renew(struct controller_client *controller, struct err *err)
{
    return read_token(controller, err);
}

const char *controller_client_url(const struct controller_client *controller)
{
    return controller->config.url;
}

const char *controller_client_token(const struct controller_client *controller)
{
    return controller->token;
}

bool controller_client_is_behind(const struct controller_client *controller)
{
    return controller->earlier > 0;
}

/* None is left: that of the token file stays, until a person puts another one there. */
static void end_search(struct controller_client *controller)
{
    if (controller->earlier > 0) {
        log_error(
            "node tokens refused",
            "tried=%zu reason=\"the node was removed, or the controller was restored from a backup older "
            "than all of them: let the node join again, with gpuagent join\"",
            controller->earlier + 1);
    }
    controller->refused_all = true;
    use_token(controller, xstrdup(controller->newest), 0);
}

/* Requests under way may have an older token, whose refusal says nothing about this one. */
static void token_refused(const struct controller_request *request)
{
    struct controller_client *controller = request->controller;
    const char *file = controller->config.token_file;
    if (request->token != controller->changes) {
        return;
    }
    autofree char *newest = node_tokens_newest(file, NULL);
    if (newest != NULL && strcmp(newest, controller->newest) != 0) {
        read_token(controller, NULL);
    } else if (!controller->refused_all) {
        char *earlier = node_tokens_earlier(file, controller->earlier + 1);
        if (earlier != NULL) {
            use_token(controller, earlier, controller->earlier + 1);
        } else {
            end_search(controller);
        }
    }
}

static void token_taken(const struct controller_request *request)
{
    struct controller_client *controller = request->controller;
    if (request->token != controller->changes || controller->taken) {
        return;
    }
    controller->taken = true;
    controller->refused_all = false;
    if (controller->earlier > 0) {
        log_warning("earlier node token",
                    "number=%zu reason=\"the controller does not know those after it: it was restored\"",
                    controller->earlier);
    }
}

static void note_health(struct controller_client *controller, const struct err *problem)
{
    bool failed = problem != NULL;
    if (failed && !controller->lost) {
        log_warning("controller lost", "url=%s problem=\"%s\"", controller->config.url, problem->text);
    } else if (!failed && controller->lost) {
        log_info("controller found", "url=%s", controller->config.url);
    }
    controller->lost = failed;
}

/* Whether a later try may get another answer. */
static bool is_passing(int status)
{
    return status == 0 || status == 401 || status == 403 || status == 408 || status == 429 || status >= 500;
}

static int64_t backoff_ms(unsigned failures)
{
    int64_t most = BACKOFF_FIRST_MS << (failures < BACKOFF_CAP ? failures : BACKOFF_CAP);
    uint32_t chance;
    random_fill(&chance, sizeof chance);
    return chance % ((most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS) + 1);
}

static void retry_due(void *closure)
{
    begin(closure);
}

/* Whether the answer is the controller's. All its answers are JSON objects, except payloads. A proxy may
 * answer instead, with a login page or an error page. Taken as a success, such an answer would lose a report;
 * taken as a refusal, it would end live attempts. */
static bool is_ours(struct controller_request *request, long status, const json_t *json)
{
    char *type = NULL;
    if (request->call.arrive == NULL || status != 200) {
        return json_is_object(json);
    }
    curl_easy_getinfo(request->easy, CURLINFO_CONTENT_TYPE, &type);
    return type == NULL || strncasecmp(type, "text/html", strlen("text/html")) != 0;
}

static void answer_request(struct controller_request *request, struct controller_answer *answer)
{
    char *address = NULL, *redirect = NULL;
    if (request->easy != NULL) {
        curl_easy_getinfo(request->easy, CURLINFO_LOCAL_IP, &address);
        curl_easy_getinfo(request->easy, CURLINFO_REDIRECT_URL, &redirect);
    }
    autofree char *local_address = xstrdup(address != NULL ? address : "");
    autofree char *location = redirect != NULL ? xstrdup(redirect) : NULL;
    answer->local_address = local_address;
    answer->location = location;
    answer->sent_ms = request->sent_ms;
    struct controller_call call = request->call;
    destroy_request(request);
    call.done(call.closure, answer);
}

static void finish_try(struct controller_request *request, CURLcode result)
{
    struct controller_client *controller = request->controller;
    struct controller_answer answer = {0};
    autojson json_t *json = NULL;
    long status = 0;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    if (request->refused) {
        err_set(&answer.problem, ERR_IO,
                request->call.supply != NULL ? "its bytes could not be read"
                                             : "the bytes of the answer could not be stored");
        answer_request(request, &answer);
        return;
    }
    if (result == CURLE_OK && request->received.length > 0) {
        json = json_parse(request->received.bytes, request->received.length, NULL);
    }
    bool ours = result == CURLE_OK && is_ours(request, status, json);
    answer.status = ours ? (int)status : 0;
    answer.json = json;
    if (result != CURLE_OK) {
        err_set(&answer.problem, ERR_UNREACHABLE, "%s", curl_easy_strerror(result));
    } else if (!ours) {
        err_set(&answer.problem, ERR_UNREACHABLE, "what answers there is no controller (HTTP status %ld)",
                status);
    } else if (answer.status / 100 != 2) {
        problem_decode(request->received.bytes, request->received.length, answer.status, &answer.problem);
    }
    note_health(controller, is_passing(answer.status) ? &answer.problem : NULL);
    if (answer.status == 401) {
        token_refused(request);
    } else if (!is_passing(answer.status)) {
        token_taken(request);
    }
    if (!request->call.persistent || !is_passing(answer.status)) {
        answer_request(request, &answer);
        return;
    }
    end_try(request);
    loop_arm(controller->loop, &request->retry, clock_boot_ms() + backoff_ms(request->failures++));
}

static void transfer_done(void *closure, CURL *easy, CURLcode result)
{
    void *request;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
    finish_try(request, result);
}

/* --- from outside --------------------------------------------------------------------------------------- */

struct controller_client *controller_client_create(const struct controller_client_config *config,
                                                   struct loop *loop, struct err *err)
{
    struct controller_client *controller = xzalloc(sizeof *controller);
    controller->config = *config;
    controller->loop = loop;
    if (!read_token(controller, err)) {
        free(controller);
        return NULL;
    }
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    controller->curl = curl_loop_create(loop, transfer_done, controller);
    controller->json_headers = curl_use_append(NULL, "Content-Type: application/json");
    controller->json_headers = curl_use_append(controller->json_headers, "Expect:");
    controller->bytes_headers = curl_use_append(NULL, "Content-Type: application/octet-stream");
    controller->bytes_headers = curl_use_append(controller->bytes_headers, "Expect:");
    CURLM *multi = curl_loop_multi(controller->curl);
    curl_use_must_multi(curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)LIMIT_AGENT_CONNECTIONS));
    curl_use_must_multi(
        curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)LIMIT_AGENT_CONNECTIONS));
    return controller;
}

void controller_client_destroy(struct controller_client *controller)
{
    if (controller == NULL) {
        return;
    }
    while (controller->requests != NULL) {
        destroy_request(controller->requests);
    }
    while (controller->spare_count > 0) {
        curl_easy_cleanup(controller->spares[--controller->spare_count]);
    }
    curl_loop_destroy(controller->curl);
    curl_slist_free_all(controller->json_headers);
    curl_slist_free_all(controller->bytes_headers);
    curl_global_cleanup();
    free(controller->token);
    free(controller->newest);
    free(controller);
}

struct controller_request *controller_send(struct controller_client *controller,
                                           const struct controller_call *call)
{
    struct controller_request *request = xzalloc(sizeof *request);
    request->controller = controller;
    request->call = *call;
    request->call.path = NULL;
    size_t base = strlen(controller->config.url);
    while (base > 0 && controller->config.url[base - 1] == '/') {
        base--;
    }
    request->url = xprintf("%.*s%s", (int)base, controller->config.url, call->path);
    request->retry = (struct loop_timer){.due = retry_due, .closure = request};
    DL_APPEND(controller->requests, request);
    begin(request);
    return request;
}

struct controller_request *
controller_post(struct controller_client *controller, const char *path, json_t *(*body)(void *closure),
                void (*done)(void *closure, const struct controller_answer *answer), void *closure)
{
    const struct controller_call call = {.path = path,
                                         .body = body,
                                         .timeout_ms = REQUEST_TIMEOUT_MS,
                                         .persistent = true,
                                         .done = done,
                                         .closure = closure};
    return controller_send(controller, &call);
}
