/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of a server of S3, in the form of ~/.aws/credentials. */
#ifndef PROTO_S3_CREDENTIALS_H
#define PROTO_S3_CREDENTIALS_H

#include <stdbool.h>

struct s3_credentials {
    char *key_id;
    char *secret;
    char *token;  /* NULL: the credentials are not temporary */
    char *region; /* NULL: not named */
};

/* Takes a value over, if it is one: not empty, not long, and without spaces and control characters, which
 * would end a header. NULL is none. */
void s3_credentials_take(char **place, const char *value);

/* Reads lines NAME = VALUE, of which those before any section and those of [default] count. The caller
 * finishes *ret_credentials. false: the key or its secret is missing. */
bool s3_credentials_parse(const char *text, struct s3_credentials *ret_credentials);
void s3_credentials_finish(struct s3_credentials *credentials);

#endif
