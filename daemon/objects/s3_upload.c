/* SPDX-License-Identifier: Apache-2.0 */
/* Stores objects: small ones by one request, larger ones in parts. The store keeps the parts of an upload
 * that broke off; the next call finds the upload there, and sends the parts that are missing or differ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/objects/s3.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "proto/limits_objects.h"
#include "proto/s3/s3_answer.h"
#include "proto/s3/s3_escape.h"

static bool read_at(int fd, char *bytes, size_t length, int64_t offset, struct err *err)
{
    while (length > 0) {
        ssize_t got = pread(fd, bytes, length, (off_t)offset);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return got == 0 ? err_set(err, ERR_IO, "a file became shorter while it was read")
                            : err_errno(err, "cannot read what goes to the object store");
        }
        bytes += got > 0 ? got : 0;
        offset += got > 0 ? got : 0;
        length -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool put_whole(struct s3 *s3, const char *key, int fd, int64_t size, const char *hash, struct err *err)
{
    autofree char *bytes = xalloc((size_t)size + 1);
    struct s3_request request = {
        .method = "PUT", .key = key, .body = bytes, .length = (size_t)size, .hash = hash, .fd = -1};
    bool ok = read_at(fd, bytes, (size_t)size, 0, err) && s3_send(s3, &request, err);
    text_finish(&request.answer);
    return ok;
}

/* --- parts ---------------------------------------------------------------------------------------------- */

struct upload {
    struct s3 *s3;
    const char *key;
    int fd;
    int64_t size;
    const char *hash;
    char *id;             /* as the store calls it, escaped */
    struct text known;    /* what the store says that it has of it */
    struct text complete; /* the parts, for the end */
};

/* Sends a request about the upload. The caller finishes *ret_answer. */
static bool ask(const struct upload *upload, const char *method, const char *key, const char *query,
                struct text *ret_answer, struct err *err)
{
    struct s3_request request = {.method = method, .key = key, .query = query, .fd = -1};
    request.hash = strcmp(method, "POST") == 0 ? upload->hash : NULL;
    bool ok = s3_send(upload->s3, &request, err);
    *ret_answer = request.answer;
    return ok;
}

static struct s3_element element_of(const struct text *text)
{
    return (struct s3_element){text->bytes, text->length};
}

static void take_id(struct upload *upload, const char *id)
{
    autotext struct text escaped = {0};
    s3_escape(&escaped, id, false);
    upload->id = text_take(&escaped);
}

/* The upload of this key that broke off, if there is one. */
static bool find_upload(struct upload *upload, struct err *err)
{
    autotext struct text answer = {0}, query = {0};
    struct s3_element found;
    autofree char *whole = s3_whole_key(upload->s3, upload->key);
    text_append(&query, "prefix=");
    s3_escape(&query, whole, false);
    text_append(&query, "&uploads=");
    if (!ask(upload, "GET", NULL, query.bytes, &answer, err)) {
        return err->code == ERR_NOT_FOUND; /* as some stores say that there is none */
    }
    struct s3_element rest = element_of(&answer);
    while (upload->id == NULL && s3_answer_next(&rest, "Upload", &found)) {
        autofree char *key = s3_answer_text(found, "Key");
        autofree char *id = s3_answer_text(found, "UploadId");
        if (key != NULL && id != NULL && strcmp(key, whole) == 0) {
            take_id(upload, id);
        }
    }
    return true;
}

static bool begin_upload(struct upload *upload, struct err *err)
{
    autotext struct text answer = {0};
    if (!ask(upload, "POST", upload->key, "uploads=", &answer, err)) {
        return false;
    }
    autofree char *id = s3_answer_text(element_of(&answer), "UploadId");
    if (id == NULL) {
        return err_set(err, ERR_UNAVAILABLE, "the object store begins no upload of %.200s", upload->key);
    }
    take_id(upload, id);
    return true;
}

/* Which parts the store has; appends all pages to known. */
static bool list_parts(struct upload *upload, struct err *err)
{
    autofree char *marker = NULL;
    do {
        autotext struct text answer = {0};
        autofree char *query = marker != NULL
                                   ? xprintf("part-number-marker=%s&uploadId=%s", marker, upload->id)
                                   : xprintf("uploadId=%s", upload->id);
        if (!ask(upload, "GET", upload->key, query, &answer, err)) {
            return false;
        }
        text_append_bytes(&upload->known, answer.bytes, answer.length);
        autofree char *truncated = s3_answer_text(element_of(&answer), "IsTruncated");
        bool more = truncated != NULL && strcmp(truncated, "true") == 0;
        int64_t next = s3_answer_int(element_of(&answer), "NextPartNumberMarker");
        free(give(marker));
        marker = more && next > 0 ? xprintf("%lld", (long long)next) : NULL;
    } while (marker != NULL);
    return true;
}

static bool is_known(const struct upload *upload, int64_t number, size_t length, const char *md5)
{
    struct s3_element rest = element_of(&upload->known), part;
    while (s3_answer_next(&rest, "Part", &part)) {
        if (s3_answer_int(part, "PartNumber") == number && s3_answer_int(part, "Size") == (int64_t)length) {
            autofree char *etag = s3_answer_text(part, "ETag");
            return etag != NULL && strstr(etag, md5) != NULL;
        }
    }
    return false;
}

static bool send_part(struct upload *upload, int64_t number, const char *bytes, size_t length,
                      struct err *err)
{
    char md5[HASH_MD5_HEX + 1];
    autofree char *query = xprintf("partNumber=%lld&uploadId=%s", (long long)number, upload->id);
    struct s3_request request = {
        .method = "PUT", .key = upload->key, .query = query, .body = bytes, .length = length, .fd = -1};
    hash_md5_hex(bytes, length, md5);
    bool known = is_known(upload, number, length, md5);
    bool ok = known || s3_send(upload->s3, &request, err);
    text_finish(&request.answer);
    text_printf(&upload->complete, "<Part><PartNumber>%lld</PartNumber><ETag>&quot;%s&quot;</ETag></Part>",
                (long long)number, known ? md5 : request.etag);
    return ok;
}

static bool send_parts(struct upload *upload, struct err *err)
{
    autofree char *bytes = xalloc(OBJECT_PART_BYTES);
    int64_t number = 1;
    for (int64_t at = 0; at < upload->size; at += OBJECT_PART_BYTES, number++) {
        size_t length =
            (size_t)(upload->size - at < OBJECT_PART_BYTES ? upload->size - at : OBJECT_PART_BYTES);
        if (!read_at(upload->fd, bytes, length, at, err) || !send_part(upload, number, bytes, length, err)) {
            return false;
        }
    }
    return true;
}

/* An upload that broke off may have been of earlier bytes, whose sum then stands beside these. */
static bool check_sum(const struct upload *upload, struct err *err)
{
    struct s3_request request = {.method = "HEAD", .key = upload->key, .fd = -1};
    struct err ignored;
    bool ok = s3_send(upload->s3, &request, err);
    text_finish(&request.answer);
    if (ok && request.named[0] != '\0' && strcmp(request.named, upload->hash) != 0) {
        s3_delete(upload->s3, upload->key, &ignored);
        return err_set(err, ERR_UNAVAILABLE, "%.200s is sent again: it has changed while it was sent",
                       upload->key);
    }
    return ok;
}

/* The store may say only in its answer that it has failed. */
static bool end_upload(struct upload *upload, struct err *err)
{
    autofree char *query = xprintf("uploadId=%s", upload->id);
    autofree char *body =
        xprintf("<CompleteMultipartUpload>%s</CompleteMultipartUpload>", upload->complete.bytes);
    struct s3_request request = {
        .method = "POST", .key = upload->key, .query = query, .body = body, .length = strlen(body), .fd = -1};
    bool ok = s3_send(upload->s3, &request, err);
    struct s3_element rest = element_of(&request.answer), failure;
    if (ok && s3_answer_next(&rest, "Error", &failure)) {
        autofree char *code = s3_answer_text(failure, "Code");
        ok = err_set(err, ERR_UNAVAILABLE, "the object store cannot put %.200s together: %.64s", upload->key,
                     code != NULL ? code : "no reason");
    }
    text_finish(&request.answer);
    return ok && check_sum(upload, err);
}

static bool put_parts(struct upload *upload, struct err *err)
{
    bool ok = find_upload(upload, err) &&
              (upload->id != NULL ? list_parts(upload, err) : begin_upload(upload, err)) &&
              send_parts(upload, err) && end_upload(upload, err);
    free(upload->id);
    text_finish(&upload->known);
    text_finish(&upload->complete);
    return ok;
}

bool s3_put(struct s3 *s3, const char *key, int fd, int64_t size, const char *hash, struct err *err)
{
    if (size <= OBJECT_PART_BYTES) {
        return put_whole(s3, key, fd, size, hash, err);
    }
    struct upload upload = {.s3 = s3, .key = key, .fd = fd, .size = size, .hash = hash};
    return put_parts(&upload, err);
}
