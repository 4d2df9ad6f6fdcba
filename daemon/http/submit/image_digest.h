/* SPDX-License-Identifier: Apache-2.0 */
/* Which image a tag names now. */
#ifndef HTTP_IMAGE_DIGEST_H
#define HTTP_IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Asks the registry, and waits for it, IMAGE_ASK_MS at most. field: that names the image; auth: a file of
 * credentials in the form of registries; NULL: none. The caller frees *ret_image, the image with its digest.
 * ERR_FIELD where the registry has no such image for these credentials, ERR_UNAVAILABLE where it does not
 * answer. */
bool image_digest_find(const char *field, const char *image, const uint8_t *auth, size_t auth_size,
                       char **ret_image, struct err *err);

#endif
