/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an identity provider's own description. Each place in it must be as safe as the issuer's URL, because
 * what is sent there gives access. */
#include "proto/base/http/discovery.h"

#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define PATH "/.well-known/openid-configuration"

static bool read_place(const json_t *json, const char *name, bool needed, const char **ret_url,
                       struct err *err)
{
    *ret_url = json_string_of(json, name);
    if (*ret_url == NULL && json_object_get(json, name) == NULL) {
        return !needed || err_set(err, ERR_UNAVAILABLE, "the identity provider does not say its %s", name);
    }
    return (*ret_url != NULL && fetch_is_safe(*ret_url)) ||
           err_set(err, ERR_UNAVAILABLE, "the %s of the identity provider is no https URL", name);
}

bool discovery_decode(const char *bytes, size_t length, const char *issuer, struct discovery *ret_discovery,
                      struct err *err)
{
    struct discovery discovery = {.json = json_parse(bytes, length, err)};
    const char *told = json_string_of(discovery.json, "issuer");
    bool good = told != NULL && strcmp(told, issuer) == 0;
    if (!good) {
        err_set(err, ERR_UNAVAILABLE, "what answers at %.200s is not that issuer%s%.200s", issuer,
                told != NULL ? ", but " : "", told != NULL ? told : "");
        err_hint(err, "write the issuer as its own description has it, up to the last slash");
    }
    good = good && read_place(discovery.json, "jwks_uri", true, &discovery.keys, err) &&
           read_place(discovery.json, "token_endpoint", true, &discovery.token, err) &&
           read_place(discovery.json, "device_authorization_endpoint", false, &discovery.device, err);
    if (!good) {
        discovery_finish(&discovery);
        return false;
    }
    *ret_discovery = discovery;
    return true;
}

bool discovery_fetch(const char *issuer, const struct fetch *fetch, struct discovery *ret_discovery,
                     struct err *err)
{
    size_t length = strlen(issuer);
    autotext struct text body = {0};
    struct fetch own = *fetch;
    long status;
    length -= length > 0 && issuer[length - 1] == '/';
    autofree char *url = xprintf("%.*s" PATH, (int)length, issuer);
    own.url = url;
    own.form = NULL;
    if (!fetch_send(&own, &body, &status, err)) {
        return false;
    }
    if (status != 200) {
        return err_set(err, ERR_UNAVAILABLE, "%.200s answers with HTTP status %ld", url, status);
    }
    return discovery_decode(body.bytes != NULL ? body.bytes : "", body.length, issuer, ret_discovery, err);
}

void discovery_finish(struct discovery *discovery)
{
    json_decref(discovery->json);
}
