/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one request by libcurl. What comes back is a stranger's: the caller reads it as such. */
#include "proto/base/http/fetch.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/http/curl_use.h"

/* --- URLs ----------------------------------------------------------------------------------------------- */

static bool is_this_host(const char *host)
{
    struct in_addr four;
    if (inet_pton(AF_INET, host, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* NULL: it has none. curl_free frees it. */
static char *part(CURLU *url, CURLUPart which)
{
    char *text = NULL;
    return curl_url_get(url, which, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool is_plain(CURLU *url)
{
    static const CURLUPart none[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT};
    bool plain = true;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char *text = part(url, none[i]);
        plain = plain && text == NULL;
        curl_free(text);
    }
    return plain;
}

bool fetch_is_safe(const char *text)
{
    CURLU *url = curl_url();
    bool sound = curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK && is_plain(url);
    char *scheme = part(url, CURLUPART_SCHEME), *host = part(url, CURLUPART_HOST);
    bool safe = sound && scheme != NULL && host != NULL && strpbrk(text, " \t\r\n\\") == NULL &&
                (strcmp(scheme, "https") == 0 || (strcmp(scheme, "http") == 0 && is_this_host(host)));
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(url);
    return safe;
}

/* --- forms ---------------------------------------------------------------------------------------------- */

void fetch_add(struct text *form, const char *name, const char *value)
{
    text_printf(form, "%s%s=", form->length > 0 ? "&" : "", name);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     strchr("-._~", c) != NULL;
        text_printf(form, plain ? "%c" : "%%%02X", c);
    }
}

/* --- requests ------------------------------------------------------------------------------------------- */

struct taking {
    const struct fetch *fetch;
    struct text *body;
};

static size_t take(char *bytes, size_t size, size_t count, void *closure)
{
    const struct taking *taking = closure;
    if ((int64_t)(taking->body->length + size * count) > taking->fetch->limit_bytes) {
        return 0;
    }
    text_append_bytes(taking->body, bytes, size * count);
    return size * count;
}

static int ask_stop(void *closure, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct taking *taking = closure;
    return taking->fetch->stop != NULL && atomic_load(taking->fetch->stop);
}

static void set_options(CURL *easy, const struct fetch *fetch, struct taking *taking)
{
    curl_use_set(easy, CURLOPT_URL, fetch->url);
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_use_set(easy, CURLOPT_USERAGENT, fetch->user_agent);
    curl_use_set(easy, CURLOPT_TIMEOUT_MS, (long)fetch->timeout_ms);
    curl_use_set(easy, CURLOPT_NOPROGRESS, 0L);
    curl_use_set(easy, CURLOPT_XFERINFOFUNCTION, ask_stop);
    curl_use_set(easy, CURLOPT_XFERINFODATA, taking);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take);
    curl_use_set(easy, CURLOPT_WRITEDATA, taking);
    if (fetch->form != NULL) {
        curl_use_set(easy, CURLOPT_POSTFIELDS, fetch->form);
    }
}

bool fetch_send(const struct fetch *fetch, struct text *ret_body, long *ret_status, struct err *err)
{
    char fault[CURL_ERROR_SIZE] = "";
    struct taking taking = {fetch, ret_body};
    *ret_body = (struct text){0};
    if (!fetch_is_safe(fetch->url)) {
        return err_set(err, ERR_USAGE, "%.200s is no https URL", fetch->url);
    }
    CURL *easy = curl_use_easy();
    struct curl_slist *headers = curl_use_append(NULL, "Accept: application/json");
    set_options(easy, fetch, &taking);
    curl_use_set(easy, CURLOPT_HTTPHEADER, headers);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, fault);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, ret_status);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    if (code == CURLE_WRITE_ERROR) {
        return err_set(err, ERR_UNREACHABLE, "%.200s answers with more than %lld bytes", fetch->url,
                       (long long)fetch->limit_bytes);
    }
    return code == CURLE_OK || err_set(err, ERR_UNREACHABLE, "%.200s does not answer: %s", fetch->url,
                                       fault[0] != '\0' ? fault : curl_easy_strerror(code));
}
