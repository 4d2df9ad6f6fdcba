/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON web keys (RFC 7517, 7518, 8037) into keys of GnuTLS, which checks the signatures. A key serves
 * the algorithms of its kind alone, and only its own if it names one: so nothing that a token says can have a
 * key used in another way. */
#include "daemon/identity/keys.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/identity/base64url.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_controller.h"

#define NUMBER_BYTES 1024 /* RSA of 8,192 bits, which take 2 ms to check */
#define CURVE_BYTES  32
#define SIGNATURE_ES 64 /* two numbers of the curve */

enum kind { KIND_RSA, KIND_P256, KIND_ED25519 };

struct key {
    enum kind kind;
    char *id;               /* or NULL */
    bool any;               /* it names no algorithm */
    enum signature only;    /* that it names */
    gnutls_pubkey_t public; /* owned */
};

struct keys {
    struct key items[LIMIT_ISSUER_KEYS];
    size_t count;
};

static const struct {
    const char *text;
    enum kind kind;
    gnutls_sign_algorithm_t algorithm;
} signatures[SIGNATURE_COUNT] = {
    [SIGNATURE_RS256] = {"RS256", KIND_RSA, GNUTLS_SIGN_RSA_SHA256},
    [SIGNATURE_PS256] = {"PS256", KIND_RSA, GNUTLS_SIGN_RSA_PSS_RSAE_SHA256},
    [SIGNATURE_ES256] = {"ES256", KIND_P256, GNUTLS_SIGN_ECDSA_SHA256},
    [SIGNATURE_EDDSA] = {"EdDSA", KIND_ED25519, GNUTLS_SIGN_EDDSA_ED25519},
};

bool signature_from_text(const char *text, enum signature *ret_signature)
{
    for (int i = 0; i < SIGNATURE_COUNT; i++) {
        if (strcmp(signatures[i].text, text) == 0) {
            *ret_signature = (enum signature)i;
            return true;
        }
    }
    return false;
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct number {
    uint8_t bytes[NUMBER_BYTES];
    gnutls_datum_t datum;
};

/* exact 0: any length. */
static bool read_number(const json_t *jwk, const char *name, size_t exact, struct number *number)
{
    const char *text = json_string_of(jwk, name);
    size_t length = 0;
    bool sound = text != NULL && base64url_decode(text, strlen(text), number->bytes, NUMBER_BYTES, &length) &&
                 length > 0 && (exact == 0 || length == exact);
    number->datum = (gnutls_datum_t){number->bytes, (unsigned)length};
    return sound;
}

static bool read_rsa(const json_t *jwk, gnutls_pubkey_t public)
{
    struct number modulus, exponent;
    unsigned bits = 0;
    return read_number(jwk, "n", 0, &modulus) && read_number(jwk, "e", 0, &exponent) &&
           gnutls_pubkey_import_rsa_raw(public, &modulus.datum, &exponent.datum) >= 0 &&
           gnutls_pubkey_get_pk_algorithm(public, &bits) == GNUTLS_PK_RSA && bits >= ISSUER_RSA_BITS;
}

static bool read_p256(const json_t *jwk, gnutls_pubkey_t public)
{
    struct number x, y;
    return read_number(jwk, "x", CURVE_BYTES, &x) && read_number(jwk, "y", CURVE_BYTES, &y) &&
           gnutls_pubkey_import_ecc_raw(public, GNUTLS_ECC_CURVE_SECP256R1, &x.datum, &y.datum) >= 0;
}

static bool read_ed25519(const json_t *jwk, gnutls_pubkey_t public)
{
    struct number x;
    return read_number(jwk, "x", CURVE_BYTES, &x) &&
           gnutls_pubkey_import_ecc_raw(public, GNUTLS_ECC_CURVE_ED25519, &x.datum, NULL) >= 0;
}

static bool says(const json_t *jwk, const char *name, const char *value)
{
    const char *text = json_string_of(jwk, name);
    return text != NULL && strcmp(text, value) == 0;
}

static bool read_kind(const json_t *jwk, enum kind *ret_kind, gnutls_pubkey_t public)
{
    if (says(jwk, "kty", "RSA")) {
        *ret_kind = KIND_RSA;
        return read_rsa(jwk, public);
    }
    if (says(jwk, "kty", "EC") && says(jwk, "crv", "P-256")) {
        *ret_kind = KIND_P256;
        return read_p256(jwk, public);
    }
    *ret_kind = KIND_ED25519;
    return says(jwk, "kty", "OKP") && says(jwk, "crv", "Ed25519") && read_ed25519(jwk, public);
}

static bool is_for_signatures(const json_t *jwk)
{
    return json_object_get(jwk, "use") == NULL || says(jwk, "use", "sig");
}

/* false: the key is not one that can be used. */
static bool read_key(const json_t *jwk, struct key *key)
{
    const char *only = json_string_of(jwk, "alg"), *id = json_string_of(jwk, "kid");
    *key = (struct key){.any = only == NULL};
    if (!json_is_object(jwk) || !is_for_signatures(jwk) ||
        (only != NULL && !signature_from_text(only, &key->only)) || gnutls_pubkey_init(&key->public) < 0) {
        return false;
    }
    if (!read_kind(jwk, &key->kind, key->public) || (!key->any && signatures[key->only].kind != key->kind)) {
        gnutls_pubkey_deinit(key->public);
        return false;
    }
    key->id = id != NULL ? xstrdup(id) : NULL;
    return true;
}

struct keys *keys_parse(const char *bytes, size_t length, struct err *err)
{
    autojson json_t *json = json_parse(bytes, length, err);
    const json_t *list = json_object_get(json, "keys"), *jwk;
    struct keys *keys = xzalloc(sizeof *keys);
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, jwk) {
        keys->count += keys->count < LIMIT_ISSUER_KEYS && read_key(jwk, &keys->items[keys->count]);
    }
    if (keys->count > 0) {
        return keys;
    }
    keys_destroy(keys);
    err_set(err, ERR_UNAVAILABLE, "the identity provider has no key that can be used");
    err_hint(err, "have it sign ID tokens with RS256, PS256, ES256 or EdDSA, RSA with %d bits or more",
             ISSUER_RSA_BITS);
    return NULL;
}

void keys_destroy(struct keys *keys)
{
    for (size_t i = 0; keys != NULL && i < keys->count; i++) {
        gnutls_pubkey_deinit(keys->items[i].public);
        free(keys->items[i].id);
    }
    free(keys);
}

size_t keys_count(const struct keys *keys)
{
    return keys->count;
}

/* --- checking ------------------------------------------------------------------------------------------- */

static bool serves(const struct key *key, enum signature signature, const char *id)
{
    return key->kind == signatures[signature].kind && (key->any || key->only == signature) &&
           (id == NULL || (key->id != NULL && strcmp(key->id, id) == 0));
}

/* NULL: none, or without an id more than one. */
static const struct key *find(const struct keys *keys, enum signature signature, const char *id)
{
    const struct key *found = NULL;
    for (size_t i = 0; i < keys->count; i++) {
        if (serves(&keys->items[i], signature, id)) {
            if (found != NULL) {
                return NULL;
            }
            found = &keys->items[i];
        }
    }
    return found;
}

/* JWS has the two numbers of ECDSA side by side, and GnuTLS takes them in DER. */
static bool is_made_by(const struct key *key, enum signature signature, const gnutls_datum_t *text,
                       const uint8_t *bytes, size_t length)
{
    gnutls_datum_t given = {(unsigned char *)(uintptr_t)bytes, (unsigned)length}, der = {NULL, 0};
    gnutls_sign_algorithm_t algorithm = signatures[signature].algorithm;
    if (key->kind != KIND_P256) {
        return gnutls_pubkey_verify_data2(key->public, algorithm, 0, text, &given) >= 0;
    }
    gnutls_datum_t r = {given.data, CURVE_BYTES}, s = {given.data + CURVE_BYTES, CURVE_BYTES};
    bool fits = length == SIGNATURE_ES && gnutls_encode_rs_value(&der, &r, &s) >= 0 &&
                gnutls_pubkey_verify_data2(key->public, algorithm, 0, text, &der) >= 0;
    gnutls_free(der.data);
    return fits;
}

enum keys_answer keys_check(const struct keys *keys, enum signature signature, const char *id,
                            const char *signed_bytes, size_t signed_length, const uint8_t *bytes,
                            size_t length)
{
    const struct key *key = find(keys, signature, id);
    const gnutls_datum_t text = {(unsigned char *)(uintptr_t)signed_bytes, (unsigned)signed_length};
    if (key == NULL) {
        return KEYS_UNKNOWN;
    }
    return is_made_by(key, signature, &text, bytes, length) ? KEYS_FIT : KEYS_WRONG;
}
