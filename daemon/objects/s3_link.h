/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of objects, and presigned ones with which anybody may fetch one object for a while. */
#ifndef OBJECTS_S3_LINK_H
#define OBJECTS_S3_LINK_H

#include <stdint.h>

#include "daemon/objects/s3_address.h"
#include "proto/s3/s3_credentials.h"

/* "/BUCKET/PREFIXkey", escaped; key NULL: "/BUCKET". The caller frees it. */
char *s3_path(const struct s3_address *address, const char *key);

/* A URL for GET that is valid for so many seconds from the time on. The caller frees it. */
char *s3_link(const struct s3_address *address, const struct s3_credentials *credentials, const char *key,
              int64_t wall_ms, int seconds);

#endif
