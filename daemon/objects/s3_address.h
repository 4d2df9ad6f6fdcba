/* SPDX-License-Identifier: Apache-2.0 */
/* Where an object store is, and with which credentials: s3://BUCKET[/PREFIX]?endpoint=URL&region=NAME. */
#ifndef OBJECTS_S3_ADDRESS_H
#define OBJECTS_S3_ADDRESS_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/s3/s3_credentials.h"

struct s3_address {
    char *bucket;
    char *prefix;   /* "" or one that ends with a slash */
    char *endpoint; /* scheme, host and port, without a slash at its end */
    char *host;     /* of the endpoint, with the port: the Host header */
    char *region;
};

/* Parses the text; ERR_USAGE that names --object-store. The caller finishes *ret_address. */
bool s3_address_parse(const char *text, struct s3_address *ret_address, struct err *err);
void s3_address_finish(struct s3_address *address);

/* Reads a file in the form of ~/.aws/credentials, of which the section [default] counts; file NULL: the
 * environment's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. The caller finishes
 * *ret_credentials. */
bool s3_credentials_read(const char *file, struct s3_credentials *ret_credentials, struct err *err);

#endif
