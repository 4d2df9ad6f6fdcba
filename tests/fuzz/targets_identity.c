/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller reads of an identity provider and of who says to come from there. */
#include <string.h>

#include "daemon/identity/groups.h"
#include "daemon/identity/id_token.h"
#include "proto/base/cleanup.h"
#include "proto/base/http/discovery.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/identity/signer.h"

#define ISSUER "https://login.example.org"
#define NOW_MS 1800000000000LL

static const struct id_token_rules rules = {
    .issuer = ISSUER, .client_id = "gpuctl", .user_claim = "preferred_username", .groups_claim = "groups"};

/* The provider, made once. */
static const struct signer *signer(struct keys **ret_keys)
{
    static struct signer one;
    static struct keys *keys;
    if (keys == NULL) {
        struct err err;
        signer_init(&one, SIGNER_ED25519, 0);
        autofree char *jwk = signer_jwk(&one, ",\"kid\":\"one\"");
        autofree char *set = xprintf("{\"keys\":[%s]}", jwk);
        keys = keys_parse(set, strlen(set), &err);
    }
    *ret_keys = keys;
    return &one;
}

/* The first line is a header, the rest claims, and our provider signs both: else no byte would get past the
 * signature. With '!' before it, all of it is a token. */
bool fuzz_id_token(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct keys *keys;
    struct claims claims;
    bool unknown;
    const struct signer *provider = signer(&keys);
    const uint8_t *end = size > 0 ? memchr(bytes, '\n', size) : NULL;
    bool raw = end == NULL || bytes[0] == '!';
    size_t first = raw ? size : (size_t)(end - bytes);
    autofree char *header = fuzz_text(bytes, first);
    autofree char *rest = raw ? xstrdup("") : fuzz_text(end + 1, size - first - 1);
    autofree char *token = raw ? xstrdup(header) : signer_token(provider, false, header, rest);
    if (!id_token_check(token, keys, &rules, NOW_MS, &claims, &unknown, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    FUZZ_MUST(!raw && strstr(header, "EdDSA") != NULL && strstr(rest, ISSUER) != NULL);
    FUZZ_MUST(text_is_name(claims.name, LIMIT_NAME_BYTES) &&
              strncmp(claims.subject, ISSUER " ", strlen(ISSUER " ")) == 0);
    FUZZ_MUST(claims.groups.length <= LIMIT_GROUPS_BYTES && claims.until_ms > NOW_MS);
    FUZZ_MUST(claims.groups.length == 0 ||
              (claims.groups.bytes[0] == '\n' && !groups_have(claims.groups.bytes, "")));
    claims_finish(&claims);
    return true;
}

/* A set of keys, and a description of the provider. */
bool fuzz_issuer(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct discovery discovery;
    struct keys *keys = keys_parse((const char *)bytes, size, &err);
    bool described = discovery_decode((const char *)bytes, size, ISSUER, &discovery, &err);
    if (described) {
        FUZZ_MUST(fetch_is_safe(discovery.keys) && fetch_is_safe(discovery.token));
        discovery_finish(&discovery);
    }
    if (keys != NULL) {
        FUZZ_MUST(keys_count(keys) > 0 && keys_count(keys) <= LIMIT_ISSUER_KEYS);
        keys_destroy(keys);
    } else if (!described) {
        FUZZ_REFUSED(err);
    }
    return keys != NULL || described;
}
