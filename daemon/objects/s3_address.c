/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the address of an object store and reads its credentials. Credentials come from a file or from the
 * environment, never from the command line, where every user of the host could read them. */
#include "daemon/objects/s3_address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/http/fetch.h"
#include "proto/base/text/text.h"
#include "proto/limits_objects.h"

#define FORM "write s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]"

static bool refuse(const char *text, const char *why, struct err *err)
{
    return err_field(err, ERR_USAGE, "--object-store", FORM, "--object-store \"%.128s\": %s", text, why);
}

/* What S3 allows in a bucket's name, or in that of a region. */
static bool is_plain(const char *name, size_t least, size_t most)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return name[length] == '\0' && length >= least && length <= most;
}

static bool is_prefix(const char *prefix)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
    return prefix[strspn(prefix, allowed)] == '\0' && *prefix != '/' && strstr(prefix, "//") == NULL &&
           strlen(prefix) <= LIMIT_OBJECT_PREFIX_BYTES;
}

static bool read_parameter(char *parameter, struct s3_address *address)
{
    char *value = parameter;
    const char *name = strsep(&value, "=");
    char **place = strcmp(name, "endpoint") == 0 ? &address->endpoint
                   : strcmp(name, "region") == 0 ? &address->region
                                                 : NULL;
    if (place == NULL || value == NULL || *value == '\0' || *place != NULL) {
        return false;
    }
    *place = xstrdup(value);
    return true;
}

static void cut_slash(char *text)
{
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '/') {
        text[length - 1] = '\0';
    }
}

/* Fills in what the text left out. */
static bool complete(const char *text, struct s3_address *address, struct err *err)
{
    if (address->region == NULL) {
        address->region = xstrdup("us-east-1");
    }
    if (!is_plain(address->region, 1, 63)) {
        return refuse(text, "the name of the region is not one", err);
    }
    if (address->endpoint == NULL) {
        address->endpoint = xprintf("https://s3.%s.amazonaws.com", address->region);
    }
    cut_slash(address->endpoint);
    if (!fetch_is_safe(address->endpoint)) {
        return refuse(text, "the endpoint is https://HOST[:PORT], or http:// on this host", err);
    }
    const char *host = strstr(address->endpoint, "://") + 3;
    if (strchr(host, '/') != NULL) {
        return refuse(text, "the endpoint has no path", err);
    }
    address->host = xstrdup(host);
    return true;
}

bool s3_address_parse(const char *text, struct s3_address *ret_address, struct err *err)
{
    *ret_address = (struct s3_address){0};
    if (strncmp(text, "s3://", 5) != 0) {
        return refuse(text, "that is no address of an object store", err);
    }
    autofree char *copy = xstrdup(text + 5);
    char *rest = copy;
    char *place = strsep(&rest, "?");
    const char *bucket = strsep(&place, "/");
    if (!is_plain(bucket, 3, 63)) {
        return refuse(text, "a bucket's name has 3 to 63 of a-z, 0-9, \".\" and \"-\"", err);
    }
    ret_address->bucket = xstrdup(bucket);
    if (place != NULL) {
        cut_slash(place);
    }
    if (place != NULL && !is_prefix(place)) {
        return refuse(text, "a prefix has letters, digits, \".\", \"_\", \"-\" and single slashes", err);
    }
    ret_address->prefix = place != NULL && *place != '\0' ? xprintf("%s/", place) : xstrdup("");
    for (char *parameter; (parameter = strsep(&rest, "&")) != NULL;) {
        if (!read_parameter(parameter, ret_address)) {
            return refuse(text, "the parameters are endpoint and region", err);
        }
    }
    return complete(text, ret_address, err);
}

void s3_address_finish(struct s3_address *address)
{
    free(address->bucket);
    free(address->prefix);
    free(address->endpoint);
    free(address->host);
    free(address->region);
    *address = (struct s3_address){0};
}

/* --- credentials ---------------------------------------------------------------------------------------- */

static bool read_file(const char *file, struct s3_credentials *credentials, bool *ret_whole, struct err *err)
{
    struct stat status;
    autofree char *text = NULL;
    if (stat(file, &status) == 0 && (status.st_mode & S_IRWXO) != 0) {
        return err_field(err, ERR_USAGE, "--object-store-credentials", "chmod o-rwx that file",
                         "all users of this host may read or write %s", file);
    }
    if (!file_read(file, LIMIT_OBJECT_CREDENTIALS_FILE_BYTES, &text, NULL, err)) {
        return false;
    }
    *ret_whole = s3_credentials_parse(text, credentials);
    explicit_bzero(text, strlen(text));
    return true;
}

static bool read_environment(struct s3_credentials *credentials)
{
    s3_credentials_take(&credentials->key_id, getenv("AWS_ACCESS_KEY_ID"));
    s3_credentials_take(&credentials->secret, getenv("AWS_SECRET_ACCESS_KEY"));
    s3_credentials_take(&credentials->token, getenv("AWS_SESSION_TOKEN"));
    return credentials->key_id != NULL && credentials->secret != NULL;
}

bool s3_credentials_read(const char *file, struct s3_credentials *ret_credentials, struct err *err)
{
    bool whole = false;
    *ret_credentials = (struct s3_credentials){0};
    if (file == NULL) {
        whole = read_environment(ret_credentials);
    } else if (!read_file(file, ret_credentials, &whole, err)) {
        return false;
    }
    if (whole) {
        return true;
    }
    s3_credentials_finish(ret_credentials);
    return err_field(err, ERR_USAGE, "--object-store-credentials",
                     "a line aws_access_key_id = ID and a line aws_secret_access_key = SECRET, or "
                     "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
                     "there are no credentials for the object store in %s",
                     file != NULL ? file : "the environment");
}
