/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON web tokens in compact form (RFC 7515, 7519). Nothing of a token is believed before its signature
 * fits, but for the name of the algorithm and the id of the key, which choose among ours. No URL and no key
 * in a token is ever looked at. */
#include "daemon/identity/id_token.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/identity/base64url.h"
#include "daemon/identity/groups.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/limits_controller.h"
#include "proto/spec/account_limits.h"

#define SIGNATURE_BYTES 1024 /* of RSA with 8,192 bits */
#define SUBJECT_BYTES   255  /* OpenID Connect Core, 2 */
#define SECOND_MS       1000
#define LAST_S          100000000000LL /* in the year 5138 */

void claims_finish(struct claims *claims)
{
    free(claims->name);
    free(claims->subject);
    text_finish(&claims->groups);
}

static bool refuse(struct err *err, const char *why)
{
    return err_field(err, ERR_UNAUTHENTICATED, "id_token", "log in again with gpuctl login",
                     "the ID token %s", why);
}

/* --- the parts ------------------------------------------------------------------------------------------ */

struct parts {
    const char *header, *payload, *signature;
    size_t header_length, payload_length, signature_length;
};

static bool split(const char *token, struct parts *parts)
{
    parts->header = token;
    parts->header_length = strcspn(token, ".");
    if (token[parts->header_length] == '\0') {
        return false;
    }
    parts->payload = token + parts->header_length + 1;
    parts->payload_length = strcspn(parts->payload, ".");
    if (parts->payload[parts->payload_length] == '\0') {
        return false;
    }
    parts->signature = parts->payload + parts->payload_length + 1;
    parts->signature_length = strlen(parts->signature);
    return strchr(parts->signature, '.') == NULL;
}

/* The object that a part is; NULL: it is none. */
static json_t *decode(const char *part, size_t length)
{
    struct err unused;
    autofree uint8_t *bytes = xalloc(length + 1);
    size_t count;
    if (!base64url_decode(part, length, bytes, length, &count)) {
        return NULL;
    }
    json_t *json = json_parse((const char *)bytes, count, &unused);
    if (json_is_object(json)) {
        return json;
    }
    json_decref(json);
    return NULL;
}

/* --- the signature -------------------------------------------------------------------------------------- */

static bool read_header(const json_t *header, enum signature *ret_signature, const char **ret_id,
                        struct err *err)
{
    const char *algorithm = json_string_of(header, "alg"), *type = json_string_of(header, "typ");
    const json_t *id = json_object_get(header, "kid");
    if (algorithm == NULL || !signature_from_text(algorithm, ret_signature)) {
        return refuse(err, "is not signed with RS256, PS256, ES256 or EdDSA");
    }
    if (json_object_get(header, "crit") != NULL || (type != NULL && strcasecmp(type, "JWT") != 0) ||
        (id != NULL && !json_is_string(id))) {
        return refuse(err, "has a header that is not understood");
    }
    *ret_id = json_string_value(id);
    return true;
}

static bool check_signature(const struct parts *parts, const struct keys *keys, bool *ret_unknown,
                            struct err *err)
{
    uint8_t signature[SIGNATURE_BYTES];
    size_t length;
    enum signature algorithm;
    const char *id = NULL;
    autojson json_t *header = decode(parts->header, parts->header_length);
    if (header == NULL ||
        !base64url_decode(parts->signature, parts->signature_length, signature, sizeof signature, &length)) {
        return refuse(err, "is not whole");
    }
    if (!read_header(header, &algorithm, &id, err)) {
        return false;
    }
    size_t signed_length = parts->header_length + 1 + parts->payload_length;
    switch (keys_check(keys, algorithm, id, parts->header, signed_length, signature, length)) {
    case KEYS_FIT:
        return true;
    case KEYS_UNKNOWN:
        *ret_unknown = true;
        return refuse(err, "is signed with a key that the identity provider does not name");
    case KEYS_WRONG:
        break;
    }
    return refuse(err, "has a signature that does not fit");
}

/* --- the claims ----------------------------------------------------------------------------------------- */

/* NumericDate, in ms. */
static bool read_date(const json_t *claims, const char *name, int64_t *ret_ms)
{
    const json_t *value = json_object_get(claims, name);
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0 && seconds < (double)LAST_S)) {
        return false;
    }
    *ret_ms = (int64_t)seconds * SECOND_MS;
    return true;
}

static bool check_dates(const json_t *claims, int64_t wall_ms, int64_t *ret_until_ms, struct err *err)
{
    int64_t end_ms, made_ms, begin_ms = 0;
    if (!read_date(claims, "exp", &end_ms) || !read_date(claims, "iat", &made_ms) ||
        (json_object_get(claims, "nbf") != NULL && !read_date(claims, "nbf", &begin_ms))) {
        return refuse(err, "does not say when it was made and when it ends");
    }
    if (wall_ms >= end_ms + ID_TOKEN_LEEWAY_MS) {
        return refuse(err, "has expired");
    }
    if (made_ms > wall_ms + ID_TOKEN_LEEWAY_MS || begin_ms > wall_ms + ID_TOKEN_LEEWAY_MS) {
        return refuse(err,
                      "is of the future: a clock, the controller's or the identity provider's, is wrong");
    }
    int64_t old_ms = made_ms + ID_TOKEN_AGE_MS;
    *ret_until_ms = (end_ms < old_ms ? end_ms : old_ms) + ID_TOKEN_LEEWAY_MS;
    return wall_ms < *ret_until_ms || refuse(err, "was made too long ago");
}

static bool is(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* For us; among several, made for us. */
static bool check_audience(const json_t *claims, const char *client_id)
{
    const json_t *audience = json_object_get(claims, "aud"), *party = json_object_get(claims, "azp"), *one;
    bool named = is(audience, client_id);
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)audience, i, one) {
        named = named || is(one, client_id);
    }
    bool alone = json_is_string(audience) || json_array_size(audience) == 1;
    return named && (party == NULL ? alone : is(party, client_id));
}

/* --- who it is ------------------------------------------------------------------------------------------ */

static bool refuse_name(struct err *err, const char *claim, const char *why)
{
    return err_field(err, ERR_FORBIDDEN, "id_token",
                     "see --oidc-user-claim and --oidc-user-domain of gpuctld",
                     "the claim %s of the ID token %s", claim, why);
}

/* "ann@example.org" of the domain example.org is ann. */
static char *without_domain(const char *name, const char *domain)
{
    size_t length = strcspn(name, "@");
    bool fits = domain == NULL || (name[length] == '@' && strcasecmp(name + length + 1, domain) == 0);
    return fits ? xstrndup(name, domain != NULL ? length : strlen(name)) : NULL;
}

static bool read_name(const json_t *claims, const struct id_token_rules *rules, char **ret_name,
                      struct err *err)
{
    const char *claim = rules->user_claim, *text = json_string_of(claims, claim);
    if (text == NULL) {
        return refuse_name(err, claim, "is missing");
    }
    if (strcmp(claim, "email") == 0 && !json_is_true(json_object_get(claims, "email_verified"))) {
        return refuse_name(err, claim, "was not verified by the identity provider");
    }
    autofree char *name = without_domain(text, rules->user_domain);
    if (name == NULL) {
        return refuse_name(err, claim, "is of another domain");
    }
    if (!text_is_name(name, LIMIT_NAME_BYTES)) {
        return refuse_name(err, claim, "has characters that no name here has, or too many");
    }
    *ret_name = give(name);
    return true;
}

/* The id there is printable, and its length is bounded. */
static bool read_subject(const json_t *claims, const char *issuer, char **ret_subject, struct err *err)
{
    const char *subject = json_string_of(claims, "sub");
    size_t length = 0;
    for (; subject != NULL && subject[length] > ' ' && subject[length] < 0x7f; length++) {
    }
    if (length == 0 || length > SUBJECT_BYTES || subject[length] != '\0') {
        return refuse(err, "does not say whose it is");
    }
    *ret_subject = xprintf("%s %s", issuer, subject);
    return true;
}

/* A name that cannot be written down anywhere here gives nothing, and is left out. */
static bool add_group(const json_t *value, struct text *groups)
{
    if (json_is_string(value) && member_group_is_sound(json_string_value(value))) {
        groups_add(groups, json_string_value(value));
    }
    return json_is_string(value) && groups->length <= LIMIT_GROUPS_BYTES;
}

static bool read_groups(const json_t *claims, const char *claim, struct text *groups, struct err *err)
{
    const json_t *value = json_object_get(claims, claim), *one;
    bool good = value == NULL || json_is_array(value) || add_group(value, groups);
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)value, i, one) {
        good = good && add_group(one, groups);
    }
    if (json_object_get(json_object_get(claims, "_claim_names"), claim) != NULL) {
        good = false; /* the provider says that it has left them out */
    }
    return good || err_field(err, ERR_FORBIDDEN, "id_token",
                             "have the identity provider send only groups that matter here",
                             "the claim %s of the ID token is no list of texts, or longer than %lld bytes",
                             claim, (long long)LIMIT_GROUPS_BYTES);
}

static bool read_claims(const json_t *json, const struct id_token_rules *rules, int64_t wall_ms,
                        struct claims *claims, struct err *err)
{
    if (!is(json_object_get(json, "iss"), rules->issuer)) {
        return refuse(err, "is of another issuer");
    }
    if (!check_audience(json, rules->client_id)) {
        return refuse(err, "was made for another client");
    }
    return check_dates(json, wall_ms, &claims->until_ms, err) &&
           read_subject(json, rules->issuer, &claims->subject, err) &&
           read_name(json, rules, &claims->name, err) &&
           read_groups(json, rules->groups_claim, &claims->groups, err);
}

bool id_token_check(const char *token, const struct keys *keys, const struct id_token_rules *rules,
                    int64_t wall_ms, struct claims *ret_claims, bool *ret_unknown, struct err *err)
{
    struct parts parts;
    *ret_unknown = false;
    if (strnlen(token, LIMIT_ID_TOKEN_BYTES + 1) > LIMIT_ID_TOKEN_BYTES || !split(token, &parts)) {
        return refuse(err, "is not whole");
    }
    if (!check_signature(&parts, keys, ret_unknown, err)) {
        return false;
    }
    struct claims claims = {.name = NULL};
    autojson json_t *json = decode(parts.payload, parts.payload_length);
    bool good = json != NULL ? read_claims(json, rules, wall_ms, &claims, err) : refuse(err, "is not whole");
    if (!good) {
        claims_finish(&claims);
        return false;
    }
    *ret_claims = claims;
    return true;
}
