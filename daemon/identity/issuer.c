/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keys of the identity provider. They come from where its own description says, and the description
 * from the configured issuer: never from where a token says. A provider that does not answer is left alone
 * for a while, so that logins fail fast and do not wait for each other. */
#include "daemon/identity/issuer.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/http/discovery.h"
#include "proto/base/log.h"
#include "proto/limits_controller.h"

struct issuer {
    const struct issuer_config *config;
    atomic_bool stop;
    struct keys *keys; /* NULL: not fetched yet */
    int64_t keys_ms;   /* when they were, CLOCK_BOOTTIME */
    int64_t asked_ms;  /* when a token whose key was not known had them fetched; 0: none had */
    int64_t failed_ms; /* when that failed last; 0: it did not, since it worked */
    struct err failure;
};

struct issuer *issuer_create(const struct issuer_config *config)
{
    struct issuer *issuer = xzalloc(sizeof *issuer);
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    issuer->config = config;
    return issuer;
}

void issuer_destroy(struct issuer *issuer)
{
    if (issuer != NULL) {
        keys_destroy(issuer->keys);
        free(issuer);
    }
}

void issuer_stop(struct issuer *issuer)
{
    atomic_store(&issuer->stop, true);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static bool fetch_body(const struct fetch *fetch, struct text *body, struct err *err)
{
    long status;
    return fetch_send(fetch, body, &status, err) &&
           (status == 200 ||
            err_set(err, ERR_UNAVAILABLE, "%.200s answers with HTTP status %ld", fetch->url, status));
}

static struct keys *fetch_keys(const struct issuer *issuer, struct err *err)
{
    struct fetch fetch = {.user_agent = "gpuctld/" GPUCTL_VERSION,
                          .limit_bytes = LIMIT_ISSUER_BYTES,
                          .timeout_ms = ISSUER_REPLY_MS,
                          .stop = &issuer->stop};
    struct discovery discovery;
    if (!discovery_fetch(issuer->config->rules.issuer, &fetch, &discovery, err)) {
        return NULL;
    }
    autotext struct text body = {0};
    fetch.url = discovery.keys;
    struct keys *keys = fetch_body(&fetch, &body, err)
                            ? keys_parse(body.bytes != NULL ? body.bytes : "", body.length, err)
                            : NULL;
    discovery_finish(&discovery);
    return keys;
}

static bool refuse_away(const struct issuer *issuer, struct err *err)
{
    err_set(err, ERR_UNAVAILABLE, "the identity provider cannot be asked: %.300s", issuer->failure.text);
    return err_hint(err, "tokens that exist are valid; try again, or have an administrator make you a token");
}

static bool refresh(struct issuer *issuer, struct err *err)
{
    int64_t now_ms = clock_boot_ms();
    if (issuer->failed_ms != 0 && now_ms < issuer->failed_ms + ISSUER_REST_MS) {
        return refuse_away(issuer, err);
    }
    struct keys *keys = fetch_keys(issuer, &issuer->failure);
    if (keys == NULL) {
        issuer->failed_ms = clock_boot_ms();
        log_warning("identity provider away", "issuer=%s reason=\"%s\"", issuer->config->rules.issuer,
                    issuer->failure.text);
        return refuse_away(issuer, err);
    }
    keys_destroy(issuer->keys);
    issuer->keys = keys;
    issuer->keys_ms = now_ms;
    issuer->failed_ms = 0;
    log_info("identity provider keys", "issuer=%s keys=%zu", issuer->config->rules.issuer, keys_count(keys));
    return true;
}

static bool are_older(const struct issuer *issuer, int64_t age_ms)
{
    return issuer->keys == NULL || clock_boot_ms() >= issuer->keys_ms + age_ms;
}

/* --- checks --------------------------------------------------------------------------------------------- */

bool issuer_check(struct issuer *issuer, const char *token, int64_t wall_ms, struct claims *ret_claims,
                  struct err *err)
{
    const struct id_token_rules *rules = &issuer->config->rules;
    bool unknown;
    if (are_older(issuer, ISSUER_KEYS_OLD_MS) && !refresh(issuer, err)) {
        return false;
    }
    bool good = id_token_check(token, issuer->keys, rules, wall_ms, ret_claims, &unknown, err);
    if (!unknown || (issuer->asked_ms != 0 && clock_boot_ms() < issuer->asked_ms + ISSUER_KEYS_MS)) {
        return good;
    }
    issuer->asked_ms = clock_boot_ms();
    return refresh(issuer, err) &&
           id_token_check(token, issuer->keys, rules, wall_ms, ret_claims, &unknown, err);
}
