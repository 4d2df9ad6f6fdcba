/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the authority's certificate from a controller that cannot be authenticated yet. The returned
 * certificate always matches the pin. Of the reply, only the certificate and the time are used. */
#include "proto/base/authority.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/curl_use.h"
#include "proto/base/pin.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define PEM_BYTES    (64 * 1024)
#define CLOCK_OFF_MS (5LL * 60 * 1000) /* longer than a network delay, shorter than certificates allow */
#define HINT_LINE                                                                                            \
    "copy the whole line anew: gpuctl nodes join-command, or gpuctld init on its host, prints it"
#define SECOND_MS 1000

struct answer {
    struct text body;
    int64_t date_ms; /* from the Date header; 0: the reply had none */
};

static size_t take_body(char *bytes, size_t size, size_t count, void *closure)
{
    struct answer *answer = closure;
    if (answer->body.length + size * count > PEM_BYTES) {
        return 0;
    }
    text_append_bytes(&answer->body, bytes, size * count);
    return size * count;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *closure)
{
    struct answer *answer = closure;
    static const char name[] = "Date:";
    if (size * count > sizeof name && strncasecmp(bytes, name, sizeof name - 1) == 0) {
        autofree char *value = xstrndup(bytes + sizeof name - 1, size * count - (sizeof name - 1));
        time_t at = curl_getdate(value, NULL);
        answer->date_ms = at > 0 ? (int64_t)at * SECOND_MS : 0;
    }
    return size * count;
}

static bool ask(const char *url, struct answer *answer, long *ret_status, struct err *err)
{
    char fault[CURL_ERROR_SIZE] = "";
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/') {
        length--;
    }
    autofree char *path = xprintf("%.*s/v1/ca", (int)length, url);
    CURL *easy = curl_use_easy();
    curl_use_set(easy, CURLOPT_URL, path);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_SSL_VERIFYPEER, 0L); /* the pin authenticates the certificate */
    curl_use_set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_use_set(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)CLIENT_REPLY_MS);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, fault);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_use_set(easy, CURLOPT_WRITEDATA, answer);
    curl_use_set(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_use_set(easy, CURLOPT_HEADERDATA, answer);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, ret_status);
    curl_easy_cleanup(easy);
    if (code == CURLE_OK) {
        return true;
    }
    err_set(err, ERR_UNREACHABLE, "the controller at %s cannot be reached: %s", url,
            fault[0] != '\0' ? fault : curl_easy_strerror(code));
    return err_hint(err, "see that gpuctld serves there, and that no firewall is between");
}

bool authority_fetch(const char *url, const char *pin, char **ret_pem, int64_t *ret_ahead_ms, struct err *err)
{
    struct answer answer = {0};
    long status = 0;
    *ret_ahead_ms = 0;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    bool asked = ask(url, &answer, &status, err);
    if (answer.date_ms != 0) {
        *ret_ahead_ms = clock_wall_ms() - answer.date_ms;
    }
    bool fits = asked && status == 200 && answer.body.length > 0 && pin_fits(pin, answer.body.bytes);
    if (asked && status != 200) {
        err_set(err, ERR_UNREACHABLE, "what answers at %s shows no certificate authority (HTTP status %ld)",
                url, status);
        err_hint(err, "see that the address is right and a controller with TLS of its own serves there");
    } else if (asked && !fits) {
        err_set(err, ERR_UNAUTHENTICATED,
                "the controller at %s is not the one that is pinned: its authority "
                "has another certificate",
                url);
        err_hint(err, HINT_LINE);
    }
    if (fits) {
        *ret_pem = text_take(&answer.body);
    }
    text_finish(&answer.body);
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
