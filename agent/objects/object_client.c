/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to the object store. They carry neither the agent's token nor any other header of the agent,
 * follow no further redirect, and bring no more bytes than a blob may have. The URL is a secret while it is
 * valid: only its scheme and host are logged. The caller checks the hash of what has come, and asks the
 * controller when the store cannot be used. */
#include "agent/objects/object_client.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "agent/base/address.h"
#include "agent/base/curl_loop.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/limits_objects.h"
#include "proto/s3/s3_answer.h"

struct object_client {
    struct curl_loop *curl;
    bool beside_controller; /* the controller is on this host */
    char *store;            /* that was asked last: scheme, host and port; NULL: none yet */
    bool away;              /* it could not be used when it was judged last */
    int64_t away_ms, closed_until_ms;
    struct object_request *requests;
};

struct object_request {
    struct object_client *client;
    CURL *easy;
    int64_t arrived;  /* bytes of the object */
    struct text said; /* the begin of another answer */
    object_arrive *arrive;
    object_done *done;
    void *closure;
    struct object_request *prev, *next;
};

/* --- URLs ----------------------------------------------------------------------------------------------- */

/* "https://host:port" of a URL; the caller frees it. */
static char *place_of(const char *url)
{
    const char *host = strstr(url, "://");
    size_t scheme = host != NULL ? (size_t)(host - url) + 3 : 0;
    return xstrndup(url, scheme + strcspn(url + scheme, "/?#"));
}

static bool is_on_this_host(const char *url)
{
    char *host = NULL;
    CURLU *parts = curl_url();
    bool found = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
                 curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    bool bracketed = found && host[0] == '[';
    autofree char *name = found ? xstrndup(host + bracketed, strcspn(host + bracketed, "]")) : xstrdup("");
    curl_free(host);
    curl_url_cleanup(parts);
    return address_is_loopback(name);
}

/* As the controller: https, or http to this host. The loopback of another host is not that of this one. */
static bool may_go_to(const struct object_client *client, const char *url)
{
    return strncmp(url, "https://", 8) == 0 ||
           (strncmp(url, "http://", 7) == 0 && client->beside_controller && is_on_this_host(url));
}

/* --- one request ---------------------------------------------------------------------------------------- */

static long status_of(const struct object_request *request)
{
    long status = 0;
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *closure)
{
    struct object_request *request = closure;
    size_t length = size * count;
    if (status_of(request) != 200) {
        size_t room = LIMIT_FETCH_PROBLEM - request->said.length;
        text_append_bytes(&request->said, bytes, length < room ? length : room);
        return length < room ? length : 0;
    }
    bool first = request->arrived == 0;
    request->arrived += (int64_t)length;
    return request->arrived <= LIMIT_BLOB_BYTES && request->arrive(request->closure, bytes, length, first)
               ? length
               : 0;
}

static void destroy_request(struct object_request *request)
{
    curl_multi_remove_handle(curl_loop_multi(request->client->curl), request->easy);
    curl_easy_cleanup(request->easy);
    DL_DELETE(request->client->requests, request);
    text_finish(&request->said);
    free(request);
}

void object_client_cancel(struct object_request *request)
{
    if (request != NULL) {
        destroy_request(request);
    }
}

static void explain(const struct object_request *request, CURLcode result, struct err *err)
{
    const struct s3_element said = {request->said.bytes, request->said.length};
    long status = status_of(request);
    if (status == 0) {
        err_set(err, ERR_UNREACHABLE, "%s", curl_easy_strerror(result));
    } else if (status != 200) {
        autofree char *code = s3_answer_text(said, "Code");
        err_set(err, ERR_UNAVAILABLE, "it answers %ld%s%.64s", status, code != NULL ? " " : "",
                code != NULL ? code : "");
    } else if (request->arrived > LIMIT_BLOB_BYTES) {
        err_set(err, ERR_UNAVAILABLE, "it sends more than %lld bytes", (long long)LIMIT_BLOB_BYTES);
    } else {
        err_set(err, ERR_UNAVAILABLE, "its answer breaks off: %s", curl_easy_strerror(result));
    }
}

static void transfer_done(void *closure, CURL *easy, CURLcode result)
{
    void *found;
    struct err err;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
    struct object_request *request = found;
    object_done *done = request->done;
    void *done_closure = request->closure;
    bool whole = result == CURLE_OK && status_of(request) == 200;
    if (!whole) {
        explain(request, result, &err);
    }
    destroy_request(request);
    done(done_closure, whole ? NULL : &err);
}

static void set_up(struct object_request *request, const char *url)
{
    CURL *easy = request->easy;
    curl_use_set(easy, CURLOPT_URL, url);
    curl_use_set(easy, CURLOPT_PRIVATE, request);
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_use_set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_use_set(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)OBJECT_CONNECT_MS);
    curl_use_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_use_set(easy, CURLOPT_LOW_SPEED_TIME, (long)OBJECT_SILENT_S);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)TRANSFER_TIMEOUT_MS);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_use_set(easy, CURLOPT_WRITEDATA, request);
    curl_use_set(easy, CURLOPT_BUFFERSIZE, (long)BLOB_BUFFER_BYTES);
    curl_use_authorities(easy);
}

struct object_request *object_client_get(struct object_client *client, const char *url, object_arrive *arrive,
                                         object_done *done, void *closure, struct err *err)
{
    free(client->store);
    client->store = place_of(url);
    if (!may_go_to(client, url)) {
        err_set(err, ERR_UNREACHABLE, "plain http leads no further than the host of the controller");
        return NULL;
    }
    struct object_request *request = xzalloc(sizeof *request);
    *request = (struct object_request){
        .client = client, .easy = curl_use_easy(), .arrive = arrive, .done = done, .closure = closure};
    set_up(request, url);
    DL_APPEND(client->requests, request);
    curl_use_must_multi(curl_multi_add_handle(curl_loop_multi(client->curl), request->easy));
    return request;
}

/* --- the store ------------------------------------------------------------------------------------------ */

bool object_client_is_open(const struct object_client *client)
{
    return !client->away || clock_boot_ms() >= client->closed_until_ms;
}

void object_client_judge(struct object_client *client, const struct err *err)
{
    if (err != NULL && !client->away) {
        log_warning("objects away", "store=%s problem=\"%s\" effect=\"the controller is asked instead\"",
                    client->store, err->text);
    } else if (err == NULL && client->away) {
        log_info("objects back", "store=%s", client->store);
    }
    client->away = err != NULL;
    client->closed_until_ms = clock_boot_ms() + client->away_ms;
}

struct object_client *object_client_create(const char *controller_url, int64_t away_ms, struct loop *loop)
{
    struct object_client *client = xzalloc(sizeof *client);
    client->away_ms = away_ms;
    client->beside_controller = is_on_this_host(controller_url);
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    client->curl = curl_loop_create(loop, transfer_done, client);
    curl_use_must_multi(curl_multi_setopt(curl_loop_multi(client->curl), CURLMOPT_MAX_HOST_CONNECTIONS,
                                          (long)LIMIT_OBJECT_FETCHES));
    return client;
}

void object_client_destroy(struct object_client *client)
{
    if (client == NULL) {
        return;
    }
    while (client->requests != NULL) {
        destroy_request(client->requests);
    }
    curl_loop_destroy(client->curl);
    curl_global_cleanup();
    free(client->store);
    free(client);
}
