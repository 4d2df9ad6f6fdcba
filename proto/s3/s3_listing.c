/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the elements of ListObjectsV2 that we need. Keys are escaped as in URLs where the server says so. */
#include "proto/s3/s3_listing.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"

static int digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* In place. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *c = text; *c != '\0'; c++, out++) {
        *out = *c == '+' ? ' ' : *c;
        if (*c == '%' && isxdigit((unsigned char)c[1]) && isxdigit((unsigned char)c[2])) {
            *out = (char)(digit(c[1]) * 16 + digit(c[2]));
            c += 2;
        }
    }
    *out = '\0';
}

static bool add(struct s3_element content, bool escaped, struct s3_listing *listing, struct err *err)
{
    autofree char *key = s3_answer_text(content, "Key"), *time = s3_answer_text(content, "LastModified");
    struct s3_object object = {.size = s3_answer_int(content, "Size"), .modified_ms = -1};
    if (key == NULL || object.size < 0) {
        return err_set(err, ERR_MALFORMED, "the list has an object without key or size");
    }
    if (escaped) {
        unescape(key);
    }
    if (time != NULL) {
        text_to_wall_ms(time, &object.modified_ms);
    }
    object.key = give(key);
    object.tag = s3_answer_text(content, "ETag");
    XGROW(listing->objects, listing->count, listing->room, 64);
    listing->objects[listing->count++] = object;
    return true;
}

static bool says(struct s3_element page, const char *name, const char *wanted)
{
    autofree char *text = s3_answer_text(page, name);
    return text != NULL && strcmp(text, wanted) == 0;
}

static bool has(struct s3_element in, const char *tag)
{
    return in.length > 0 && memmem(in.bytes, in.length, tag, strlen(tag)) != NULL;
}

bool s3_listing_read(struct s3_element page, size_t most, struct s3_listing *listing, struct err *err)
{
    struct s3_element rest = page, content;
    if (!has(page, "<ListBucketResult")) {
        return err_set(err, ERR_MALFORMED, "the answer is no list of objects");
    }
    bool escaped = says(page, "EncodingType", "url");
    free(listing->next);
    listing->next = says(page, "IsTruncated", "true") ? s3_answer_text(page, "NextContinuationToken") : NULL;
    while (s3_answer_next(&rest, "Contents", &content)) {
        if (listing->count >= most) {
            return err_set(err, ERR_MALFORMED, "there are more than %zu files", most);
        }
        if (!add(content, escaped, listing, err)) {
            return false;
        }
    }
    return !has(rest, "<Contents>") || err_set(err, ERR_MALFORMED, "the list breaks off");
}

void s3_listing_finish(struct s3_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->objects[i].key);
        free(listing->objects[i].tag);
    }
    free(listing->objects);
    free(listing->next);
    *listing = (struct s3_listing){0};
}
