/* SPDX-License-Identifier: Apache-2.0 */
/* The pin of a certificate authority: "sha256:" and the SHA-256 of its certificate in DER, as hex. */
#ifndef BASE_PIN_H
#define BASE_PIN_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/crypto/hash.h"

#define PIN_PREFIX "sha256:"
#define PIN_BYTES  (sizeof PIN_PREFIX + HASH_HEX) /* with its NUL */

/* The pin of the first certificate of a text in PEM. false: the text has no certificate. */
bool pin_of(const char *pem, char out[PIN_BYTES]);

/* false with ERR_USAGE, naming field, when the text is no pin. */
bool pin_check_form(const char *pin, const char *field, struct err *err);

/* Whether the certificate is the pinned one; letter case does not count. */
bool pin_fits(const char *pin, const char *pem);

#endif
