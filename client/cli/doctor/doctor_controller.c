/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `gpuctl doctor` from the settings to the controller and its nodes. Each one that fails leaves
 * out those that need it. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "client/cli/controller/connect.h"
#include "client/cli/doctor/findings.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "client/cli/transport/context.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/authority.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_client.h"

#define CLOCK_WARN_MS (5 * 1000LL)
#define CLOCK_FAIL_MS (5 * 60 * 1000LL)
#define DAY_MS        (24 * 60 * 60 * 1000LL)
#define END_WARN_MS   (7 * DAY_MS) /* of a token, as elsewhere; of a certificate */
#define NODES_SHOWN   20           /* that are not ready */
#define NODES_LISTED  10000        /* more than a controller is tested with */

/* --- the name and the connection ------------------------------------------------------------------------ */

static bool check_name(const struct context *context, struct findings *findings)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    struct addrinfo *found = NULL;
    char address[INET6_ADDRSTRLEN] = "?";
    if (curl_url_set(parts, CURLUPART_URL, context->url, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK) {
        curl_url_cleanup(parts);
        return true; /* the settings were checked */
    }
    size_t length = strlen(host);
    bool bare = host[0] == '[' && length > 2;
    autofree char *name = bare ? xstrndup(host + 1, length - 2) : xstrdup(host);
    int failure = getaddrinfo(name, NULL, &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found);
    if (failure != 0) {
        findings_add(findings, FINDING_FAIL, "name", "correct the URL, or see your DNS and /etc/hosts",
                     "%s does not resolve: %s", name, gai_strerror(failure));
    } else {
        getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
        findings_add(findings, FINDING_OK, "name", NULL, "%s is %s", name, address);
        freeaddrinfo(found);
    }
    curl_free(host);
    curl_url_cleanup(parts);
    return failure == 0;
}

static size_t drop(char *bytes, size_t size, size_t count, void *closure)
{
    return size * count;
}

/* As curl with GnuTLS writes it, "2027-01-31 12:00:00 GMT", or with OpenSSL; -1: it is neither. */
static int64_t read_date(const char *text)
{
    struct tm parts = {0};
    if (sscanf(text, "%d-%d-%d %d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour,
               &parts.tm_min, &parts.tm_sec) == 6) {
        parts.tm_year -= 1900;
        parts.tm_mon -= 1;
        return 1000 * (int64_t)timegm(&parts);
    }
    time_t at = curl_getdate(text, NULL);
    return at < 0 ? -1 : 1000 * (int64_t)at;
}

/* The end of the controller's certificate by its own words, wall clock; -1: not known. */
static int64_t certificate_end(const struct context *context)
{
    struct curl_certinfo *info = NULL;
    int64_t end_ms = -1;
    CURL *curl = curl_easy_init();
    autofree char *url = xprintf("%s/healthz", context->url);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    curl_easy_setopt(curl, CURLOPT_CAINFO, context->cacert);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    if (curl_easy_perform(curl) == CURLE_OK &&
        curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info) == CURLE_OK && info->num_of_certs > 0) {
        for (struct curl_slist *line = info->certinfo[0]; line != NULL; line = line->next) {
            if (strncasecmp(line->data, "Expire date:", 12) == 0) {
                end_ms = read_date(line->data + 12);
            }
        }
    }
    curl_easy_cleanup(curl);
    return end_ms;
}

static void check_certificate(const struct context *context, struct findings *findings)
{
    if (strncmp(context->url, "https://", 8) != 0) {
        bool here = context_is_loopback(context->url);
        findings_add(findings, here ? FINDING_OK : FINDING_WARN, "tls",
                     here ? NULL : "serve https: gpuctld init makes the certificate",
                     here ? "not needed on this machine alone" : "what is sent can be read on the way");
        return;
    }
    int64_t end_ms = certificate_end(context);
    char at[32];
    print_time(end_ms, at);
    if (end_ms <= 0) {
        findings_add(findings, FINDING_OK, "tls", NULL, "the certificate is trusted");
        return;
    }
    bool soon = end_ms - clock_wall_ms() < END_WARN_MS;
    findings_add(findings, soon ? FINDING_WARN : FINDING_OK, "tls",
                 soon ? "renew it on the controller" : NULL, "the certificate is trusted until %s", at);
}

static void check_clock(int64_t date_ms, struct findings *findings)
{
    char by[32];
    int64_t ahead_ms = clock_wall_ms() - date_ms, off_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    if (date_ms == 0) {
        findings_add(findings, FINDING_WARN, "clock", NULL, "the controller does not say its time");
        return;
    }
    text_from_duration_ms(off_ms, by, sizeof by);
    enum finding state = off_ms < CLOCK_WARN_MS   ? FINDING_OK
                         : off_ms < CLOCK_FAIL_MS ? FINDING_WARN
                                                  : FINDING_FAIL;
    if (state == FINDING_OK) {
        findings_add(findings, state, "clock", NULL, "within 5 s of the controller's");
    } else {
        findings_add(findings, state, "clock", "set it by NTP on both machines: timedatectl set-ntp true",
                     "this machine's is %s %s the controller's", by, ahead_ms > 0 ? "ahead of" : "behind");
    }
}

static bool check_connection(const struct context *context, struct findings *findings)
{
    const struct contact contact = {.url = context->url,
                                    .path = "/healthz",
                                    .cacert = context->cacert,
                                    .user_agent = "gpuctl/" GPUCTL_VERSION};
    struct contact_reply reply;
    struct err err;
    bool answered = contact_send(&contact, &reply, &err);
    text_finish(&reply.body);
    if (!answered && err.code == ERR_UNAUTHENTICATED) {
        findings_add_error(findings, "tls", &err);
    } else if (!answered) {
        findings_add(findings, FINDING_FAIL, "controller",
                     context->embedded ? "see controller.log in the state folder; start it with gpuctl up"
                                       : "is gpuctld running, and the port open in the firewall?",
                     "%s", err.text);
    } else if (reply.status != 200) {
        findings_add(findings, FINDING_FAIL, "controller",
                     "is this the URL of gpuctld, or of something else?", "%s answers with status %ld",
                     context->url, reply.status);
    } else {
        findings_add(findings, FINDING_OK, "controller", NULL, "%s serves", context->url);
        check_certificate(context, findings);
        check_clock(reply.date_ms, findings);
    }
    return answered && reply.status == 200;
}

/* --- with the token ------------------------------------------------------------------------------------- */

static bool check_token(struct api *api, struct findings *findings)
{
    struct err err;
    autojson json_t *session = api_get(api, &err, "/v1/session");
    if (session == NULL) {
        findings_add_error(findings, "token", &err);
        return false;
    }
    int64_t end_ms = print_time_of(session, "expires_at");
    char at[32];
    print_time(end_ms, at);
    bool soon = end_ms != 0 && end_ms - clock_wall_ms() < END_WARN_MS && !api_context(api)->embedded;
    findings_add(findings, soon ? FINDING_WARN : FINDING_OK, "token",
                 soon ? "log in again, or ask an administrator for another: gpuctl token create" : NULL,
                 "of %s, role %s, valid %s%s", print_text_of(session, "owner"),
                 print_text_of(session, "role"), end_ms != 0 ? "until " : "without an end",
                 end_ms != 0 ? at : "");
    return true;
}

static void check_versions(struct api *api, struct findings *findings)
{
    struct err err;
    autojson json_t *version = api_get(api, &err, "/version");
    const char *theirs = json_string_of(version, "version");
    if (theirs == NULL) {
        findings_add_error(findings, "versions", &err);
        return;
    }
    bool same = strcmp(theirs, GPUCTL_VERSION) == 0;
    findings_add(findings, same ? FINDING_OK : FINDING_WARN, "versions",
                 same ? NULL : "install the version of the controller here, or the newer one there",
                 "gpuctl " GPUCTL_VERSION ", gpuctld %s", theirs);
}

static void check_node(const json_t *node, struct findings *findings)
{
    const char *state = print_text_of(node, "state"), *reason = json_string_of(node, "reason");
    const char *name = print_text_of(node, "name");
    bool meant = strcmp(state, "DRAINED") == 0 || strcmp(state, "DRAINING") == 0;
    autofree char *remedy = meant ? xprintf("when it may work again: gpuctl nodes resume %.80s", name)
                                  : xprintf("on it: systemctl status gpuagent; journalctl -u gpuagent");
    findings_add(findings, FINDING_WARN, "node", remedy, "%s is %s%s%s", name, state,
                 reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

static void check_nodes(struct api *api, struct findings *findings)
{
    struct err err;
    autojson json_t *nodes = api_list(api, "/v1/nodes", "nodes", "cursor", NODES_LISTED, &err);
    size_t i, ready = 0, shown = 0;
    json_t *node;
    if (nodes == NULL) {
        findings_add_error(findings, "nodes", &err);
        return;
    }
    json_array_foreach (nodes, i, node) {
        ready += strcmp(print_text_of(node, "state"), "READY") == 0;
    }
    const char *remedy = json_array_size(nodes) == 0 ? "have one join: gpuctl nodes join-command"
                         : ready == 0                ? "see the lines of the nodes"
                                                     : NULL;
    findings_add(findings, ready > 0 ? FINDING_OK : FINDING_FAIL, "nodes", remedy, "%zu of %zu are ready",
                 ready, json_array_size(nodes));
    json_array_foreach (nodes, i, node) {
        if (strcmp(print_text_of(node, "state"), "READY") != 0 && shown++ < NODES_SHOWN) {
            check_node(node, findings);
        }
    }
    if (shown > NODES_SHOWN) {
        findings_add(findings, FINDING_WARN, "node", "gpuctl nodes lists them", "%zu more are not ready",
                     shown - NODES_SHOWN);
    }
}

/* The value of a metric without labels; -1: there is none. */
static int64_t metric(const struct text *page, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = page->bytes; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            return (int64_t)strtod(line + length + 1, NULL);
        }
    }
    return -1;
}

static void check_disk(struct api *api, struct findings *findings)
{
    struct err err;
    autotext struct text page = {0};
    const struct request request = {.method = "GET", .path = "/metrics", .accept = "text/plain"};
    if (!api_send(api, &request, &page, &err)) {
        findings_add_error(findings, "disk", &err);
        return;
    }
    int64_t free_bytes = metric(&page, "gpuctl_disk_free_bytes");
    int64_t margin_bytes = metric(&page, "gpuctl_disk_margin_bytes");
    char left[32];
    print_bytes(free_bytes, left);
    bool full = metric(&page, "gpuctl_disk_full") > 0 || free_bytes < margin_bytes;
    bool short_of = free_bytes < 2 * margin_bytes;
    findings_add(findings,
                 full       ? FINDING_FAIL
                 : short_of ? FINDING_WARN
                            : FINDING_OK,
                 "disk", short_of || full ? "make room on the controller: gpuctl admin retention" : NULL,
                 "%s free on the controller%s", left, full ? ", too little for new jobs" : "");
}

void findings_of_controller(const struct call *call, struct findings *findings)
{
    autoapi struct api *api = NULL;
    struct err err;
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    if (!connect_controller(call, false, &api, &err)) {
        findings_add_error(findings, "settings", &err);
        return;
    }
    const struct context *context = api_context(api);
    findings_add(findings, FINDING_OK, "settings", NULL, "%s, from %s", context->url, context->cause);
    if (check_name(context, findings) && check_connection(context, findings)) {
        if (check_token(api, findings)) {
            check_nodes(api, findings);
            check_disk(api, findings);
        }
        check_versions(api, findings);
    }
}
