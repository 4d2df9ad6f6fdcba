/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the URLs of objects. libcurl signs headers; a presigned URL has its signature in the query (AWS
 * Signature Version 4), which libcurl does not make. */
#include "daemon/objects/s3_link.h"

#include <string.h>
#include <time.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/s3/s3_escape.h"

char *s3_path(const struct s3_address *address, const char *key)
{
    autotext struct text path = {0};
    text_printf(&path, "/%s", address->bucket);
    if (key != NULL) {
        text_printf(&path, "/%s", address->prefix);
        s3_escape(&path, key, true);
    }
    return text_take(&path);
}

struct moment {
    char day[9];   /* 20261129 */
    char time[17]; /* 20261129T120140Z */
};

static struct moment moment_of(int64_t wall_ms)
{
    struct moment moment;
    const time_t seconds = wall_ms / 1000;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(moment.day, sizeof moment.day, "%Y%m%d", &parts);
    strftime(moment.time, sizeof moment.time, "%Y%m%dT%H%M%SZ", &parts);
    return moment;
}

/* The key of a day, region and service, which the secret does not follow from. */
static void signing_key(const struct s3_address *address, const struct s3_credentials *credentials,
                        const char *day, uint8_t out[HASH_BYTES])
{
    autofree char *secret = xprintf("AWS4%s", credentials->secret);
    const char *const words[] = {day, address->region, "s3", "aws4_request"};
    hash_keyed(secret, strlen(secret), words[0], strlen(words[0]), out);
    for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
        uint8_t key[HASH_BYTES];
        memcpy(key, out, sizeof key);
        hash_keyed(key, sizeof key, words[i], strlen(words[i]), out);
        explicit_bzero(key, sizeof key);
    }
    explicit_bzero(secret, strlen(secret));
}

/* Its parameters are in the order of their names, as the signature wants them. */
static void write_query(const struct s3_address *address, const struct s3_credentials *credentials,
                        const struct moment *moment, int seconds, struct text *query)
{
    autofree char *scope =
        xprintf("%s/%s/%s/s3/aws4_request", credentials->key_id, moment->day, address->region);
    text_append(query, "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=");
    s3_escape(query, scope, false);
    text_printf(query, "&X-Amz-Date=%s&X-Amz-Expires=%d", moment->time, seconds);
    if (credentials->token != NULL) {
        text_append(query, "&X-Amz-Security-Token=");
        s3_escape(query, credentials->token, false);
    }
    text_append(query, "&X-Amz-SignedHeaders=host");
}

char *s3_link(const struct s3_address *address, const struct s3_credentials *credentials, const char *key,
              int64_t wall_ms, int seconds)
{
    const struct moment moment = moment_of(wall_ms);
    autofree char *path = s3_path(address, key);
    autotext struct text query = {0};
    char digest[HASH_HEX + 1], signature[HASH_HEX + 1];
    uint8_t signing[HASH_BYTES], signed_bytes[HASH_BYTES];
    write_query(address, credentials, &moment, seconds, &query);
    autofree char *request =
        xprintf("GET\n%s\n%s\nhost:%s\n\nhost\nUNSIGNED-PAYLOAD", path, query.bytes, address->host);
    hash_hex(request, strlen(request), digest);
    autofree char *text = xprintf("AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", moment.time, moment.day,
                                  address->region, digest);
    signing_key(address, credentials, moment.day, signing);
    hash_keyed(signing, sizeof signing, text, strlen(text), signed_bytes);
    explicit_bzero(signing, sizeof signing);
    text_to_hex(signed_bytes, sizeof signed_bytes, signature);
    return xprintf("%s%s?%s&X-Amz-Signature=%s", address->endpoint, path, query.bytes, signature);
}
