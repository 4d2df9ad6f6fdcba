/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to an S3 store by libcurl, which signs them, and says in one line what went wrong. A request
 * that may be sent again is; s3_upload.c sends objects in parts. */
#include "daemon/objects/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "daemon/objects/s3_link.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/text.h"
#include "proto/limits_objects.h"
#include "proto/s3/s3_answer.h"
#include "proto/s3/s3_escape.h"
#include "proto/s3/s3_listing.h"

struct s3 {
    const struct s3_address *address;
    const char *credentials_file;
    const atomic_bool *stop;
    CURL *easy; /* keeps its connection between requests */
};

struct s3 *s3_open(const struct s3_address *address, const char *credentials_file, const atomic_bool *stop)
{
    struct s3 *s3 = xzalloc(sizeof *s3);
    *s3 = (struct s3){address, credentials_file, stop, curl_use_easy()};
    return s3;
}

void s3_close(struct s3 *s3)
{
    if (s3 != NULL) {
        curl_easy_cleanup(s3->easy);
        free(s3);
    }
}

/* --- one try -------------------------------------------------------------------------------------------- */

/* A request while it is sent. */
struct sending {
    const struct s3 *s3;
    struct s3_request *request;
    size_t sent;
    bool disk_failed;
};

static size_t send_body(char *buffer, size_t size, size_t count, void *closure)
{
    struct sending *sending = closure;
    size_t left = sending->request->length - sending->sent;
    size_t length = size * count < left ? size * count : left;
    memcpy(buffer, (const char *)sending->request->body + sending->sent, length);
    sending->sent += length;
    return length;
}

static int rewind_body(void *closure, curl_off_t offset, int origin)
{
    struct sending *sending = closure;
    if (origin != SEEK_SET || offset < 0 || (size_t)offset > sending->request->length) {
        return CURL_SEEKFUNC_FAIL;
    }
    sending->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static bool is_content(const struct sending *sending)
{
    long status = 0;
    curl_easy_getinfo(sending->s3->easy, CURLINFO_RESPONSE_CODE, &status);
    return sending->request->fd >= 0 && (status == 200 || status == 206);
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *closure)
{
    struct sending *sending = closure;
    struct s3_request *request = sending->request;
    size_t length = size * count;
    if (!is_content(sending)) {
        bool fits = request->answer.length + length <= LIMIT_OBJECT_ANSWER_BYTES;
        text_append_bytes(&request->answer, bytes, fits ? length : 0);
        return fits ? length : 0;
    }
    if (!file_write_all(request->fd, bytes, length)) {
        sending->disk_failed = true;
        return 0;
    }
    hash_update(request->sum, bytes, length);
    request->written += (int64_t)length;
    return length;
}

/* The value of a header of this name, without quotes. */
static void keep_header(const char *line, size_t length, const char *name, char out[HASH_HEX + 1])
{
    size_t name_length = strlen(name);
    if (length <= name_length || strncasecmp(line, name, name_length) != 0) {
        return;
    }
    const char *begin = line + name_length, *end = line + length;
    while (begin < end && strchr(" \"", *begin) != NULL) {
        begin++;
    }
    while (end > begin && strchr(" \"\r\n", end[-1]) != NULL) {
        end--;
    }
    if (end - begin <= HASH_HEX) {
        snprintf(out, HASH_HEX + 1, "%.*s", (int)(end - begin), begin);
    }
}

static size_t take_header(char *line, size_t size, size_t count, void *closure)
{
    struct s3_request *request = ((struct sending *)closure)->request;
    keep_header(line, size * count, "ETag:", request->etag);
    keep_header(line, size * count, "x-amz-meta-sha256:", request->named);
    return size * count;
}

static int look_whether_to_stop(void *closure, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    return atomic_load(((const struct sending *)closure)->s3->stop) ? 1 : 0;
}

static struct curl_slist *headers_of(const struct s3_request *request, const struct s3_credentials *secrets)
{
    char digest[HASH_HEX + 1];
    hash_hex(request->body != NULL ? request->body : "", request->length, digest);
    autofree char *content = xprintf("x-amz-content-sha256: %s", digest);
    autofree char *hash = xprintf("x-amz-meta-sha256: %s", request->hash != NULL ? request->hash : "");
    autofree char *token = xprintf("x-amz-security-token: %s", secrets->token != NULL ? secrets->token : "");
    autofree char *range = xprintf("Range: bytes=%lld-", (long long)request->begin);
    struct curl_slist *list = curl_use_append(NULL, content);
    list = curl_use_append(list, "Content-Type: application/octet-stream");
    list = request->hash != NULL ? curl_use_append(list, hash) : list;
    list = secrets->token != NULL ? curl_use_append(list, token) : list;
    return request->begin > 0 ? curl_use_append(list, range) : list;
}

static void set_body(CURL *easy, struct sending *sending)
{
    const struct s3_request *request = sending->request;
    if (strcmp(request->method, "PUT") == 0 || strcmp(request->method, "POST") == 0) {
        curl_use_set(easy, CURLOPT_UPLOAD, 1L);
        curl_use_set(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->length);
        curl_use_set(easy, CURLOPT_READFUNCTION, send_body);
        curl_use_set(easy, CURLOPT_READDATA, sending);
        curl_use_set(easy, CURLOPT_SEEKFUNCTION, rewind_body);
        curl_use_set(easy, CURLOPT_SEEKDATA, sending);
    }
    if (strcmp(request->method, "HEAD") == 0) {
        curl_use_set(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_use_set(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

static void set_up(CURL *easy, struct sending *sending, const struct s3_credentials *credentials)
{
    const struct s3_address *address = sending->s3->address;
    autofree char *path = s3_path(address, sending->request->key);
    const char *query = sending->request->query;
    autofree char *url =
        xprintf("%s%s%s%s", address->endpoint, path, query != NULL ? "?" : "", query != NULL ? query : "");
    autofree char *user = xprintf("%s:%s", credentials->key_id, credentials->secret);
    autofree char *service = xprintf("aws:amz:%s:s3", address->region);
    curl_use_set(easy, CURLOPT_URL, url);
    curl_use_set(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_use_set(easy, CURLOPT_USERPWD, user);
    curl_use_set(easy, CURLOPT_AWS_SIGV4, service);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)OBJECT_CONNECT_MS);
    curl_use_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1024L);
    curl_use_set(easy, CURLOPT_LOW_SPEED_TIME, (long)OBJECT_SILENT_S);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_use_set(easy, CURLOPT_WRITEDATA, sending);
    curl_use_set(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_use_set(easy, CURLOPT_HEADERDATA, sending);
    curl_use_set(easy, CURLOPT_XFERINFOFUNCTION, look_whether_to_stop);
    curl_use_set(easy, CURLOPT_XFERINFODATA, sending);
    curl_use_set(easy, CURLOPT_NOPROGRESS, 0L);
    explicit_bzero(user, strlen(user));
    set_body(easy, sending);
}

static CURLcode try_once(const struct s3 *s3, struct sending *sending,
                         const struct s3_credentials *credentials)
{
    CURL *easy = s3->easy;
    struct curl_slist *headers = headers_of(sending->request, credentials);
    curl_easy_reset(easy);
    set_up(easy, sending, credentials);
    curl_use_set(easy, CURLOPT_HTTPHEADER, headers);
    sending->sent = 0;
    sending->request->status = 0;
    text_clear(&sending->request->answer);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &sending->request->status);
    curl_slist_free_all(headers);
    return code;
}

/* --- what went wrong ------------------------------------------------------------------------------------ */

struct refusal {
    const char *code;
    const char *text; /* "... store %s ..." */
    const char *hint;
};

/* The codes of S3 that a person can do something about. */
static const struct refusal refusals[] = {
    {"InvalidAccessKeyId", "does not know the access key", "see gpuctld --object-store-credentials"},
    {"SignatureDoesNotMatch", "refuses the secret of the access key",
     "see gpuctld --object-store-credentials and the region of --object-store"},
    {"ExpiredToken", "refuses the session token: it has expired",
     "put new credentials where gpuctld --object-store-credentials reads them"},
    {"AccessDenied", "refuses access to the bucket",
     "let the access key read, write, list and delete the bucket's objects"},
    {"RequestTimeTooSkewed", "refuses requests: its clock and that of this host differ too much",
     "set the clock of this host (NTP)"},
    {"NoSuchBucket", "has no such bucket", "make the bucket, or see gpuctld --object-store"},
};

static bool explain(const struct s3 *s3, const struct s3_request *request, const char *code, struct err *err)
{
    const struct s3_address *address = s3->address;
    for (size_t i = 0; code != NULL && i < sizeof refusals / sizeof *refusals; i++) {
        if (strcmp(code, refusals[i].code) == 0) {
            err_set(err, ERR_UNAVAILABLE, "the object store %s %s (bucket %s: %s)", address->endpoint,
                    refusals[i].text, address->bucket, code);
            return err_hint(err, "%s", refusals[i].hint);
        }
    }
    bool busy = request->status >= 500 || request->status == 429 || request->status == 403;
    err_set(err, busy ? ERR_UNAVAILABLE : ERR_IO, "the object store %s answers %ld%s%.64s to %s %.200s",
            address->endpoint, request->status, code != NULL ? " " : "", code != NULL ? code : "",
            request->method, request->key != NULL ? request->key : address->bucket);
    return busy ? err_hint(err, "gpuctld tries again by itself") : false;
}

static bool say_no_answer(const struct sending *sending, CURLcode code, struct err *err)
{
    if (sending->disk_failed) {
        return err_errno(err, "cannot write what the object store sends");
    }
    err_set(err, ERR_UNAVAILABLE, "the object store %s cannot be reached: %s", sending->s3->address->endpoint,
            curl_easy_strerror(code));
    return err_hint(err, "gpuctld tries again by itself");
}

static bool is_passing(CURLcode code, long status)
{
    return code != CURLE_OK ? code != CURLE_ABORTED_BY_CALLBACK && code != CURLE_PEER_FAILED_VERIFICATION
                            : status >= 500 || status == 429;
}

static void pause_before(int number, const atomic_bool *stop)
{
    const struct timespec step = {.tv_nsec = 20 * 1000000};
    int64_t left_ms = (int64_t)OBJECT_TRY_PAUSE_MS << number;
    for (; left_ms > 0 && !atomic_load(stop); left_ms -= 20) {
        nanosleep(&step, NULL);
    }
}

/* A GET goes on where it broke off. */
static void go_on(struct s3_request *request)
{
    request->begin += request->written;
    request->written = 0;
}

static bool judge(const struct s3 *s3, const struct s3_request *request, struct err *err)
{
    if (request->status >= 200 && request->status < 300) {
        return true;
    }
    struct s3_element answer = {request->answer.bytes, request->answer.length};
    autofree char *code = s3_answer_text(answer, "Code");
    bool gone = request->status == 404 && (code == NULL || strcmp(code, "NoSuchBucket") != 0);
    return gone ? err_set(err, ERR_NOT_FOUND, "the object store has no object %.300s",
                          request->key != NULL ? request->key : "")
                : explain(s3, request, code, err);
}

bool s3_send(struct s3 *s3, struct s3_request *request, struct err *err)
{
    struct sending sending = {.s3 = s3, .request = request};
    CURLcode code = CURLE_OK;
    for (int i = 0; i < LIMIT_OBJECT_TRIES; i++) {
        struct s3_credentials credentials;
        if (!s3_credentials_read(s3->credentials_file, &credentials, err)) {
            err->code = ERR_UNAVAILABLE;
            return false;
        }
        code = try_once(s3, &sending, &credentials);
        s3_credentials_finish(&credentials);
        if (sending.disk_failed || !is_passing(code, request->status) || i + 1 == LIMIT_OBJECT_TRIES) {
            break;
        }
        go_on(request);
        pause_before(i, s3->stop);
    }
    return code == CURLE_OK ? judge(s3, request, err) : say_no_answer(&sending, code, err);
}

char *s3_whole_key(const struct s3 *s3, const char *key)
{
    return xprintf("%s%s", s3->address->prefix, key);
}

/* --- objects -------------------------------------------------------------------------------------------- */

bool s3_get(struct s3 *s3, const char *key, int fd, struct s3_got *ret_got, struct err *err)
{
    uint8_t digest[HASH_BYTES];
    struct s3_request request = {.method = "GET", .key = key, .fd = fd, .sum = hash_create()};
    bool ok = s3_send(s3, &request, err);
    hash_finish(request.sum, digest);
    text_finish(&request.answer);
    *ret_got = (struct s3_got){.size = request.begin + request.written};
    text_to_hex(digest, sizeof digest, ret_got->hash);
    memcpy(ret_got->named, request.named, sizeof ret_got->named);
    return ok;
}

bool s3_delete(struct s3 *s3, const char *key, struct err *err)
{
    struct s3_request request = {.method = "DELETE", .key = key, .fd = -1};
    bool ok = s3_send(s3, &request, err) || err->code == ERR_NOT_FOUND;
    text_finish(&request.answer);
    return ok;
}

/* --- lists ---------------------------------------------------------------------------------------------- */

/* false: seen wants no more. */
static bool show_page(const struct s3 *s3, const struct s3_listing *page, s3_seen *seen, void *closure)
{
    size_t prefix = strlen(s3->address->prefix);
    for (size_t i = 0; i < page->count; i++) {
        const struct s3_object *object = &page->objects[i];
        bool ours = strncmp(object->key, s3->address->prefix, prefix) == 0 && object->modified_ms >= 0;
        if (ours && !seen(closure, object->key + prefix, object->size, object->modified_ms)) {
            return false;
        }
    }
    return true;
}

static char *list_query(const struct s3 *s3, const char *begin, const char *next)
{
    autotext struct text query = {0};
    autofree char *prefix = s3_whole_key(s3, begin);
    if (next != NULL) {
        text_append(&query, "continuation-token=");
        s3_escape(&query, next, false);
        text_append(&query, "&");
    }
    text_append(&query, "list-type=2&max-keys=1000&prefix=");
    s3_escape(&query, prefix, false);
    return text_take(&query);
}

static bool read_page(struct s3 *s3, const char *begin, const char *next, struct s3_listing *page,
                      struct err *err)
{
    autofree char *query = list_query(s3, begin, next);
    struct s3_request request = {.method = "GET", .query = query, .fd = -1};
    bool ok = s3_send(s3, &request, err) &&
              s3_listing_read((struct s3_element){request.answer.bytes, request.answer.length},
                              LIMIT_OBJECT_PAGE_KEYS, page, err);
    text_finish(&request.answer);
    return ok;
}

bool s3_list(struct s3 *s3, const char *begin, s3_seen *seen, void *closure, struct err *err)
{
    autofree char *next = NULL;
    for (bool more = true; more;) {
        struct s3_listing page = {0};
        bool ok = read_page(s3, begin, next, &page, err);
        free(give(next));
        more = ok && show_page(s3, &page, seen, closure) && page.next != NULL && *page.next != '\0';
        next = more ? xstrdup(page.next) : NULL;
        s3_listing_finish(&page);
        if (!ok) {
            return false;
        }
    }
    return true;
}
