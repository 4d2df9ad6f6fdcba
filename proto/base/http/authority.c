/* SPDX-License-Identifier: Apache-2.0 */
/* The first requests to a controller, by gpuctl login and by gpuagent join. The certificate of the authority
 * is fetched from a controller that cannot be authenticated yet: it always matches the pin, and of the reply
 * only the certificate and the time are used. */
#include "proto/base/http/authority.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/crypto/pin.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

#define REPLY_BYTES  (64 * 1024)
#define CLOCK_OFF_MS (5LL * 60 * 1000) /* longer than a network delay, shorter than certificates allow */
#define HINT_LINE                                                                                            \
    "copy the whole line anew: gpuctl nodes join-command, or gpuctld init on its host, prints it"
#define SECOND_MS 1000

static size_t take_body(char *bytes, size_t size, size_t count, void *closure)
{
    struct contact_reply *reply = closure;
    if (reply->body.length + size * count > REPLY_BYTES) {
        return 0;
    }
    text_append_bytes(&reply->body, bytes, size * count);
    return size * count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *closure)
{
    struct contact_reply *reply = closure;
    static const char name[] = "Date:";
    if (size * count > sizeof name && strncasecmp(bytes, name, sizeof name - 1) == 0) {
        autofree char *value = xstrndup(bytes + sizeof name - 1, size * count - (sizeof name - 1));
        time_t at = curl_getdate(value, NULL);
        reply->date_ms = at > 0 ? (int64_t)at * SECOND_MS : 0;
    }
    return size * count;
}

static void set_options(CURL *easy, const struct contact *contact)
{
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)CLIENT_REPLY_MS);
    if (contact->unverified) {
        curl_use_set(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_use_set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (contact->cacert != NULL) {
        curl_use_set(easy, CURLOPT_CAINFO, contact->cacert);
    }
    if (contact->user_agent != NULL) {
        curl_use_set(easy, CURLOPT_USERAGENT, contact->user_agent);
    }
    if (contact->body != NULL) {
        curl_use_set(easy, CURLOPT_POSTFIELDS, contact->body);
    }
}

bool contact_send(const struct contact *contact, struct contact_reply *ret_reply, struct err *err)
{
    char fault[CURL_ERROR_SIZE] = "";
    size_t length = strlen(contact->url);
    while (length > 0 && contact->url[length - 1] == '/') {
        length--;
    }
    autofree char *url = xprintf("%.*s%s", (int)length, contact->url, contact->path);
    struct curl_slist *headers = curl_use_append(NULL, "Content-Type: application/json");
    CURL *easy = curl_use_easy();
    *ret_reply = (struct contact_reply){0};
    set_options(easy, contact);
    curl_use_set(easy, CURLOPT_URL, url);
    curl_use_set(easy, CURLOPT_HTTPHEADER, headers);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, fault);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_use_set(easy, CURLOPT_WRITEDATA, ret_reply);
    curl_use_set(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_use_set(easy, CURLOPT_HEADERDATA, ret_reply);
    curl_off_t again_s = 0;
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &ret_reply->status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &again_s);
    ret_reply->again_ms =
        (again_s < CLIENT_RETRY_MS / SECOND_MS ? again_s : CLIENT_RETRY_MS / SECOND_MS) * SECOND_MS;
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return code == CURLE_OK ||
           err_set(err, code == CURLE_PEER_FAILED_VERIFICATION ? ERR_UNAUTHENTICATED : ERR_UNREACHABLE,
                   "the controller at %s cannot be reached: %s", contact->url,
                   fault[0] != '\0' ? fault : curl_easy_strerror(code));
}

bool authority_fetch(const char *url, const char *pin, char **ret_pem, int64_t *ret_ahead_ms, struct err *err)
{
    /* the pin authenticates the certificate */
    const struct contact contact = {.url = url, .path = "/v1/ca", .unverified = true};
    struct contact_reply reply;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    bool asked = contact_send(&contact, &reply, err) ||
                 err_hint(err, "see that gpuctld serves there, and that no firewall is between");
    *ret_ahead_ms = reply.date_ms != 0 ? clock_wall_ms() - reply.date_ms : 0;
    bool fits = asked && reply.status == 200 && reply.body.length > 0 && pin_fits(pin, reply.body.bytes);
    if (asked && reply.status != 200) {
        err_set(err, ERR_UNREACHABLE, "what answers at %s shows no certificate authority (HTTP status %ld)",
                url, reply.status);
        err_hint(err, "see that the address is right and a controller with TLS of its own serves there");
    } else if (asked && !fits) {
        err_set(err, ERR_UNAUTHENTICATED,
                "the controller at %s is not the one that is pinned: its authority "
                "has another certificate",
                url);
        err_hint(err, HINT_LINE);
    }
    if (fits) {
        *ret_pem = text_take(&reply.body);
    }
    text_finish(&reply.body);
    return fits;
}

void authority_blame_clock(int64_t ahead_ms, struct err *err)
{
    char by[32];
    int64_t off_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    if (off_ms < CLOCK_OFF_MS) {
        return;
    }
    text_from_duration_ms(off_ms, by, sizeof by);
    err_set(err, ERR_UNAUTHENTICATED, /* retrying does not help */
            "the clock of this machine is %s %s the controller's, so its certificate is not valid here", by,
            ahead_ms < 0 ? "behind" : "ahead of");
    err_hint(err, "set the clock, for instance with timedatectl set-ntp true, and repeat this");
}
