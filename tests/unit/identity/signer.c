/* SPDX-License-Identifier: Apache-2.0 */
/* Signs with GnuTLS. Ends the process where that fails, because then the test is wrong. */
#include "tests/unit/identity/signer.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define HALF 32 /* bytes of a number of the curve */

static void must(int code)
{
    if (code < 0) {
        abort();
    }
}

void signer_init(struct signer *signer, enum signer_kind kind, unsigned bits)
{
    static const gnutls_pk_algorithm_t kinds[] = {GNUTLS_PK_RSA, GNUTLS_PK_ECDSA, GNUTLS_PK_EDDSA_ED25519};
    static const unsigned usual[] = {2048, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
                                     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519)};
    signer->kind = kind;
    must(gnutls_privkey_init(&signer->key));
    must(gnutls_privkey_generate(signer->key, kinds[kind], bits != 0 ? bits : usual[kind], 0));
}

void signer_finish(struct signer *signer)
{
    gnutls_privkey_deinit(signer->key);
}

void signer_encode(const void *bytes, size_t length, struct text *out)
{
    autofree char *plain = text_to_base64(bytes, length);
    for (char *at = plain; *at != '\0' && *at != '='; at++) {
        char c = *at == '+' ? '-' : *at == '/' ? '_' : *at;
        text_append_bytes(out, &c, 1);
    }
}

static void add(struct text *out, const char *name, const gnutls_datum_t *number)
{
    text_printf(out, ",\"%s\":\"", name);
    signer_encode(number->data, number->size, out);
    text_append(out, "\"");
    gnutls_free(number->data);
}

/* Numbers of a curve have their whole length. */
static void add_half(struct text *out, const char *name, const gnutls_datum_t *number)
{
    gnutls_datum_t whole = {gnutls_malloc(HALF), HALF};
    size_t skip = number->size > HALF ? number->size - HALF : 0, length = number->size - skip;
    memset(whole.data, 0, HALF);
    memcpy(whole.data + HALF - length, number->data + skip, length);
    gnutls_free(number->data);
    add(out, name, &whole);
}

char *signer_jwk(const struct signer *signer, const char *more)
{
    struct text out = {0};
    gnutls_datum_t a, b;
    gnutls_ecc_curve_t curve;
    if (signer->kind == SIGNER_RSA) {
        must(gnutls_privkey_export_rsa_raw2(signer->key, &a, &b, NULL, NULL, NULL, NULL, NULL, NULL,
                                            GNUTLS_EXPORT_FLAG_NO_LZ));
        text_append(&out, "{\"kty\":\"RSA\"");
        add(&out, "n", &a);
        add(&out, "e", &b);
    } else if (signer->kind == SIGNER_P256) {
        must(gnutls_privkey_export_ecc_raw(signer->key, &curve, &a, &b, NULL));
        text_append(&out, "{\"kty\":\"EC\",\"crv\":\"P-256\"");
        add_half(&out, "x", &a);
        add_half(&out, "y", &b);
    } else {
        must(gnutls_privkey_export_ecc_raw(signer->key, &curve, &a, NULL, NULL));
        text_append(&out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"");
        add(&out, "x", &a);
    }
    text_printf(&out, "%s}", more);
    return text_take(&out);
}

static void add_signature(const struct signer *signer, bool pss, struct text *token)
{
    static const gnutls_sign_algorithm_t algorithms[] = {GNUTLS_SIGN_RSA_SHA256, GNUTLS_SIGN_ECDSA_SHA256,
                                                         GNUTLS_SIGN_EDDSA_ED25519};
    gnutls_sign_algorithm_t algorithm = pss ? GNUTLS_SIGN_RSA_PSS_RSAE_SHA256 : algorithms[signer->kind];
    gnutls_datum_t text = {(unsigned char *)token->bytes, (unsigned)token->length}, signature, r, s;
    must(gnutls_privkey_sign_data2(signer->key, algorithm, 0, &text, &signature));
    text_append(token, ".");
    if (signer->kind != SIGNER_P256) {
        signer_encode(signature.data, signature.size, token);
    } else {
        uint8_t both[2 * HALF] = {0};
        must(gnutls_decode_rs_value(&signature, &r, &s));
        const gnutls_datum_t *halves[] = {&r, &s};
        for (size_t i = 0; i < 2; i++) {
            size_t skip = halves[i]->size > HALF ? halves[i]->size - HALF : 0,
                   length = halves[i]->size - skip;
            memcpy(both + (i + 1) * HALF - length, halves[i]->data + skip, length);
        }
        gnutls_free(r.data);
        gnutls_free(s.data);
        signer_encode(both, sizeof both, token);
    }
    gnutls_free(signature.data);
}

char *signer_token(const struct signer *signer, bool pss, const char *header, const char *claims)
{
    struct text token = {0};
    signer_encode(header, strlen(header), &token);
    text_append(&token, ".");
    signer_encode(claims, strlen(claims), &token);
    add_signature(signer, pss, &token);
    return text_take(&token);
}
