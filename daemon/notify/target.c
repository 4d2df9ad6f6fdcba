/* SPDX-License-Identifier: Apache-2.0 */
/* Checks URLs when webhooks are made, so that a mistake is told at once, and hides their credentials. Names
 * are not resolved here: the address that a name has is judged when a connection is made. */
#include "daemon/notify/target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "proto/base/http/curl_use.h"
#include "proto/limits_controller.h"

static bool refuse(struct err *err, const char *text)
{
    return err_field(err, ERR_FIELD, "url", "write https://HOST/PATH", "the URL %s", text);
}

/* A host that is an address, as curl writes it: [::1]. */
static bool read_address(const char *host, struct sockaddr_storage *ret_address)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    size_t length = strlen(host);
    memset(ret_address, 0, sizeof *ret_address);
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        memcpy(ret_address, &four, sizeof four);
        return true;
    }
    char inner[INET6_ADDRSTRLEN];
    if (length < 2 || length - 2 >= sizeof inner || host[0] != '[') {
        return false;
    }
    memcpy(inner, host + 1, length - 2);
    inner[length - 2] = '\0';
    if (inet_pton(AF_INET6, inner, &six.sin6_addr) != 1) {
        return false;
    }
    memcpy(ret_address, &six, sizeof six);
    return true;
}

/* curl takes other numbers of slashes for two, and then nobody sees where the user and the password are. */
static bool has_two_slashes(const char *url)
{
    const char *colon = strchr(url, ':');
    return colon != NULL && strncmp(colon, "://", 3) == 0 && colon[3] != '/';
}

static bool check_parts(CURLU *parts, const struct networks *networks, struct err *err)
{
    char *scheme = NULL, *host = NULL;
    struct sockaddr_storage address;
    bool ok = true;
    if (curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
        ok = refuse(err, "must begin with https:// or http://");
    } else if (curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK || *host == '\0') {
        ok = refuse(err, "names no host");
    } else if (read_address(host, &address) && !networks_allow(networks, (struct sockaddr *)&address)) {
        ok = err_field(err, ERR_FIELD, "url",
                       "name a public address, or have the operator allow it by gpuctld --webhook-networks",
                       "webhooks are not sent to the address %.64s", host);
    }
    curl_free(scheme);
    curl_free(host);
    return ok;
}

bool target_check(const char *url, const struct networks *networks, struct err *err)
{
    if (strlen(url) > LIMIT_WEBHOOK_URL_BYTES) {
        return err_field(err, ERR_FIELD, "url", NULL, "the URL is longer than %d bytes",
                         LIMIT_WEBHOOK_URL_BYTES);
    }
    CURLU *parts = curl_url();
    if (parts == NULL) {
        out_of_memory();
    }
    bool ok = (has_two_slashes(url) || refuse(err, "must begin with https:// or http:// and a host")) &&
              (curl_url_set(parts, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK ||
               refuse(err, "cannot be read")) &&
              check_parts(parts, networks, err);
    curl_url_cleanup(parts);
    return ok;
}

char *target_mask(const char *url)
{
    const char *begin = strstr(url, "://");
    begin = begin != NULL ? begin + 3 : url;
    size_t host = strcspn(begin, "/?#");
    const char *at = memrchr(begin, '@', host);
    return at != NULL ? xprintf("%.*s***%s", (int)(begin - url), url, at) : xstrdup(url);
}
