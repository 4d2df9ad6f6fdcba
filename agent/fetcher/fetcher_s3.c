/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches an object, or all objects below a prefix as files of a folder, from the operator's server of S3,
 * else from Amazon's. Requests are signed by libcurl where the job has named a secret, which has the lines of
 * ~/.aws/credentials. The version of a folder is a hash of its keys and their tags. */
#include <stdlib.h>
#include <string.h>

#include "agent/fetcher/fetcher_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/limits_agent.h"
#include "proto/s3/s3_credentials.h"
#include "proto/s3/s3_escape.h"
#include "proto/s3/s3_listing.h"
#include "proto/spec/jobspec_parts.h"

#define BY_TAG "etag:"

struct bucket {
    char *base;      /* owned: URL of the bucket */
    char *name;      /* owned */
    const char *key; /* or prefix */
    struct s3_credentials credentials;
    const char *region; /* of the credentials, else the node's */
    bool trusted;
};

static void finish(struct bucket *bucket)
{
    free(bucket->base);
    free(bucket->name);
    s3_credentials_finish(&bucket->credentials);
}

static bool take_credentials(const struct fetcher *fetcher, struct bucket *bucket)
{
    const char *text = fetcher->credentials;
    bool good = text == NULL || s3_credentials_parse(text, &bucket->credentials);
    bucket->region = bucket->credentials.region != NULL ? bucket->credentials.region : fetcher->region;
    return good ||
           fetcher_fail(
               fetcher, FAULT_JOB,
               "the secret of %s has no lines aws_access_key_id = ... and aws_secret_access_key = ..., as "
               "~/.aws/credentials has them before any section or in [default]",
               fetcher->url);
}

static bool find_bucket(const struct fetcher *fetcher, struct bucket *bucket)
{
    size_t length = strcspn(fetcher->place, "/");
    *bucket = (struct bucket){.name = xstrndup(fetcher->place, length),
                              .key = fetcher->place + length + (fetcher->place[length] == '/'),
                              .trusted = fetcher->endpoint != NULL};
    if (!take_credentials(fetcher, bucket)) {
        return false;
    }
    bucket->base = fetcher->endpoint != NULL
                       ? xprintf("%s/%s", fetcher->endpoint, bucket->name)
                       : xprintf("https://s3.%s.amazonaws.com/%s", bucket->region, bucket->name);
    return true;
}

/* --- URLs ----------------------------------------------------------------------------------------------- */

static struct http_remote remote_of(const struct bucket *bucket, const char *url)
{
    const struct s3_credentials *credentials = &bucket->credentials;
    bool signs = credentials->key_id != NULL;
    return (struct http_remote){.url = url,
                                .login = {.region = signs ? bucket->region : NULL,
                                          .key_id = credentials->key_id,
                                          .secret = credentials->secret,
                                          .session = credentials->token,
                                          .trusted = bucket->trusted}};
}

static char *object_url(const struct bucket *bucket, const char *key)
{
    struct text url = {0};
    text_printf(&url, "%s/", bucket->base);
    s3_escape(&url, key, true);
    return text_take(&url);
}

/* Its parameters are sorted, because a signature counts them in that order. */
static char *list_url(const struct bucket *bucket, const char *next)
{
    struct text url = {0};
    text_printf(&url, "%s?", bucket->base);
    if (next != NULL) {
        text_append(&url, "continuation-token=");
        s3_escape(&url, next, false);
        text_append(&url, "&");
    }
    text_append(&url, "encoding-type=url&list-type=2&prefix=");
    s3_escape(&url, bucket->key, false);
    return text_take(&url);
}

/* --- one object ----------------------------------------------------------------------------------------- */

static bool serve_object(struct fetcher *fetcher, const struct bucket *bucket)
{
    autofree char *url = object_url(bucket, bucket->key);
    const struct http_remote remote = remote_of(bucket, url);
    autofree char *version = NULL;
    int64_t size = -1;
    if (fetcher->fetches) {
        return http_fetch(fetcher, &remote, fetcher->version, true, fetcher->entry);
    }
    return http_probe(fetcher, &remote, &version, &size) &&
           (version != NULL ||
            fetcher_fail(fetcher, FAULT_JOB, "%s has no entity tag, as objects have", fetcher->url)) &&
           fetcher_check_size(fetcher, size) && fetcher_found(version, size, false);
}

/* --- a folder ------------------------------------------------------------------------------------------- */

static bool list(struct fetcher *fetcher, const struct bucket *bucket, struct s3_listing *listing)
{
    struct err err;
    do {
        autofree char *url = list_url(bucket, listing->next);
        const struct http_remote remote = remote_of(bucket, url);
        autotext struct text xml = {0};
        if (!http_text(fetcher, &remote, LIMIT_S3_PAGE_BYTES, &xml)) {
            return false;
        }
        const struct s3_element page = {xml.bytes, xml.length};
        if (!s3_listing_read(page, LIMIT_INPUT_FILES, listing, &err)) {
            return fetcher_fail(fetcher, FAULT_JOB, "%s: %s", fetcher->url, err.text);
        }
    } while (listing->next != NULL);
    return listing->count > 0 ||
           fetcher_fail(fetcher, FAULT_JOB, "%s: there is no object below it", fetcher->url);
}

/* The path of an object below the prefix; NULL: it is the mark of a folder. */
static const char *path_of(const struct bucket *bucket, const struct s3_object *object)
{
    size_t length = strlen(bucket->key), whole = strlen(object->key);
    bool below = strncmp(object->key, bucket->key, length) == 0;
    return below && whole > length && object->key[whole - 1] != '/' ? object->key + length : NULL;
}

static bool check_objects(const struct fetcher *fetcher, const struct bucket *bucket,
                          const struct s3_listing *listing, char ret_version[HASH_HEX + 1], int64_t *ret_size)
{
    uint8_t sum[HASH_BYTES];
    struct hash *hash = hash_create();
    bool sound = true;
    *ret_size = 0;
    for (size_t i = 0; i < listing->count && sound; i++) {
        const struct s3_object *object = &listing->objects[i];
        const char *path = path_of(bucket, object);
        const char *tag = object->tag != NULL ? object->tag : "";
        autofree char *line = xprintf("%s\t%s\t%lld\n", object->key, tag, (long long)object->size);
        hash_update(hash, line, strlen(line));
        *ret_size += object->size;
        sound = ((path == NULL || jobspec_is_inner_path(path)) && *tag != '\0') ||
                fetcher_fail(fetcher, FAULT_JOB, "%s: the object %.200s cannot be a file", fetcher->url,
                             object->key);
    }
    hash_finish(hash, sum);
    text_to_hex(sum, sizeof sum, ret_version);
    return sound;
}

static bool fetch_objects(struct fetcher *fetcher, const struct bucket *bucket,
                          const struct s3_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct s3_object *object = &listing->objects[i];
        const char *path = path_of(bucket, object);
        autofree char *url = object_url(bucket, object->key);
        autofree char *version = xprintf(BY_TAG "%s", object->tag);
        const struct http_remote remote = remote_of(bucket, url);
        if (path == NULL) {
            continue;
        }
        bool there = fetcher_has(fetcher, path, object->size) && fetcher_count(fetcher, object->size);
        if (!there && !http_fetch(fetcher, &remote, version, false, path)) {
            return false;
        }
    }
    return true;
}

static bool serve_folder(struct fetcher *fetcher, const struct bucket *bucket)
{
    struct s3_listing listing = {0};
    char version[HASH_HEX + 1];
    int64_t size;
    bool good = list(fetcher, bucket, &listing) && check_objects(fetcher, bucket, &listing, version, &size);
    if (good && !fetcher->fetches) {
        good = fetcher_check_size(fetcher, size) && fetcher_found(version, size, true);
    } else if (good) {
        good = (strcmp(version, fetcher->version) == 0 ||
                fetcher_fail(fetcher, FAULT_TIMES, "%s has changed while it was fetched", fetcher->url)) &&
               fetch_objects(fetcher, bucket, &listing);
    }
    s3_listing_finish(&listing);
    return good;
}

bool fetcher_s3(struct fetcher *fetcher)
{
    struct bucket bucket;
    size_t length;
    bool good = find_bucket(fetcher, &bucket);
    length = strlen(bucket.key);
    bool folder = length == 0 || bucket.key[length - 1] == '/';
    good = good && (folder ? serve_folder(fetcher, &bucket) : serve_object(fetcher, &bucket));
    finish(&bucket);
    return good;
}
