/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values in the URLs of a server of S3. */
#ifndef PROTO_S3_ESCAPE_H
#define PROTO_S3_ESCAPE_H

#include <stdbool.h>

#include "proto/base/text/text.h"

/* Appends the text with all but letters, digits and "-._~" as %XX; slashes stay if asked for. This is how a
 * signature counts it, too. */
void s3_escape(struct text *out, const char *text, bool keep_slashes);

#endif
