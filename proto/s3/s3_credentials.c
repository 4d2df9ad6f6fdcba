/* SPDX-License-Identifier: Apache-2.0 */
/* Reads credentials from lines of any length: a session token has some 1,000 bytes. What is no line of ours
 * is passed over, as other programs read the same file. */
#include "proto/s3/s3_credentials.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_objects.h"

static void forget(char *secret)
{
    if (secret != NULL) {
        explicit_bzero(secret, strlen(secret));
        free(secret);
    }
}

void s3_credentials_take(char **place, const char *value)
{
    bool sound = value != NULL && *value != '\0' && strlen(value) <= LIMIT_S3_CREDENTIAL_BYTES;
    for (const char *c = value; sound && *c != '\0'; c++) {
        sound = *c > ' ' && *c < 127;
    }
    if (sound) {
        forget(*place);
        *place = xstrdup(value);
    }
}

/* The line without spaces around it. The caller frees it. */
static char *trim(const char *line, size_t length)
{
    while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL) {
        length--;
    }
    size_t begin = 0;
    while (begin < length && strchr(" \t", line[begin]) != NULL) {
        begin++;
    }
    return xstrndup(line + begin, length - begin);
}

static void read_setting(const char *line, struct s3_credentials *credentials)
{
    const struct {
        const char *name;
        char **place;
    } known[] = {{"aws_access_key_id", &credentials->key_id},
                 {"aws_secret_access_key", &credentials->secret},
                 {"aws_session_token", &credentials->token},
                 {"region", &credentials->region}};
    const char *equals = strchr(line, '=');
    autofree char *name = trim(line, equals != NULL ? (size_t)(equals - line) : 0);
    for (size_t i = 0; equals != NULL && i < sizeof known / sizeof *known; i++) {
        if (strcasecmp(name, known[i].name) == 0) {
            char *value = trim(equals + 1, strlen(equals + 1));
            s3_credentials_take(known[i].place, value);
            forget(value);
        }
    }
}

bool s3_credentials_parse(const char *text, struct s3_credentials *ret_credentials)
{
    bool counts = true;
    *ret_credentials = (struct s3_credentials){0};
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char *line = trim(text, length);
        if (*line == '[') {
            counts = strcmp(line, "[default]") == 0;
        } else if (counts && *line != '#' && *line != ';') {
            read_setting(line, ret_credentials);
        }
        forget(line);
        text += length + (text[length] == '\n');
    }
    return ret_credentials->key_id != NULL && ret_credentials->secret != NULL;
}

void s3_credentials_finish(struct s3_credentials *credentials)
{
    free(credentials->key_id);
    forget(credentials->secret);
    forget(credentials->token);
    free(credentials->region);
    *credentials = (struct s3_credentials){0};
}
