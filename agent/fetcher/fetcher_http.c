/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches files by HTTP. The version of a file is its entity tag, else the time of its last change. A fetch
 * that was broken off goes on by Range, with If-Range where the tag is a strong one. Each connection, also
 * after a redirect, goes to an address that the operator allows. Credentials go to the host of the URL alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netdb.h>

#include "agent/fetcher/fetcher_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/http/curl_use.h"
#include "proto/limits_agent.h"

#define BY_TAG  "etag:"
#define BY_TIME "modified:"
#define BY_HASH "sha256:" /* where the server says neither */

struct answer {
    long status;
    char *tag, *modified; /* owned; or NULL */
    int64_t length;       /* of the body; -1: unknown */
    int64_t first, whole; /* of Content-Range; -1: none */
};

struct transfer {
    struct fetcher *fetcher;
    const struct http_remote *remote;
    CURL *easy;
    struct curl_slist *headers;
    struct answer answer;
    char problem[CURL_ERROR_SIZE];
    char refused[INET6_ADDRSTRLEN]; /* address that no connection may go to; "" if there was none */
    struct text text;               /* the body of an answer that is not a file, or of a short one */
    size_t text_limit;
    bool too_long;
    int piece;             /* where the file goes; -1: nowhere */
    int64_t offset;        /* of the piece that was there before */
    const char *version;   /* that the file must have */
    bool changed, stopped; /* it has another one; it has failed already */
    int64_t arrived;       /* of the file in this transfer */
};

static void finish_answer(struct answer *answer)
{
    free(answer->tag);
    free(answer->modified);
    *answer = (struct answer){.length = -1, .first = -1, .whole = -1};
}

/* --- connections ---------------------------------------------------------------------------------------- */

static curl_socket_t open_socket(void *closure, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = closure;
    if (!transfer->remote->login.trusted && !networks_allow(&transfer->fetcher->networks, &address->addr)) {
        if (getnameinfo(&address->addr, (socklen_t)address->addrlen, transfer->refused,
                        sizeof transfer->refused, NULL, 0, NI_NUMERICHOST) != 0) {
            strcpy(transfer->refused, "an address");
        }
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static const char *value_of(const char *line, size_t length, const char *name, size_t *ret_length)
{
    size_t named = strlen(name);
    if (length <= named || line[named] != ':' || strncasecmp(line, name, named) != 0) {
        return NULL;
    }
    const char *value = line + named + 1, *end = line + length;
    while (value < end && (*value == ' ' || *value == '\t')) {
        value++;
    }
    while (end > value && strchr("\r\n \t", end[-1]) != NULL) {
        end--;
    }
    *ret_length = (size_t)(end - value);
    return value;
}

static void keep(char **text, const char *value, size_t length)
{
    free(*text);
    *text = length > 0 && length <= LIMIT_INPUT_VALIDATOR ? xstrndup(value, length) : NULL;
}

/* "bytes 5-9/10" */
static void take_range(struct answer *answer, const char *value, size_t length)
{
    autofree char *text = xstrndup(value, length);
    char *dash = strchr(text, '-'), *slash = strchr(text, '/');
    if (strncmp(text, "bytes ", 6) != 0 || slash == NULL) {
        return;
    }
    *slash = '\0';
    if (dash != NULL && dash < slash) {
        *dash = '\0';
        text_to_int(text + 6, 0, INT64_MAX, &answer->first);
    }
    text_to_int(slash + 1, 0, INT64_MAX, &answer->whole);
}

static size_t take_header(char *line, size_t size, size_t count, void *closure)
{
    struct transfer *transfer = closure;
    struct answer *answer = &transfer->answer;
    size_t length = size * count, got;
    const char *value;
    if (length > 5 && strncmp(line, "HTTP/", 5) == 0) {
        finish_answer(answer); /* of a redirect */
    } else if ((value = value_of(line, length, "etag", &got)) != NULL) {
        keep(&answer->tag, value, got);
    } else if ((value = value_of(line, length, "last-modified", &got)) != NULL) {
        keep(&answer->modified, value, got);
    } else if ((value = value_of(line, length, "content-range", &got)) != NULL) {
        take_range(answer, value, got);
    } else if ((value = value_of(line, length, "content-length", &got)) != NULL) {
        autofree char *text = xstrndup(value, got);
        text_to_int(text, 0, INT64_MAX, &answer->length);
    }
    return length;
}

/* The caller frees it; NULL: the file has none. */
static char *version_of(const struct answer *answer)
{
    return answer->tag != NULL        ? xprintf(BY_TAG "%s", answer->tag)
           : answer->modified != NULL ? xprintf(BY_TIME "%s", answer->modified)
                                      : NULL;
}

/* --- bodies --------------------------------------------------------------------------------------------- */

/* Before the first byte of a file: is it the one, and where does it go on? */
static bool begin_file(struct transfer *transfer)
{
    struct fetcher *fetcher = transfer->fetcher;
    autofree char *version = version_of(&transfer->answer);
    if (transfer->version != NULL && (version == NULL || strcmp(version, transfer->version) != 0)) {
        transfer->changed = true;
        return false;
    }
    bool goes_on = transfer->answer.status == 206 && transfer->answer.first == transfer->offset;
    if (!goes_on && transfer->answer.status == 206) {
        transfer->changed = true;
        return false;
    }
    if (!goes_on) {
        fetcher->done_bytes -= transfer->offset;
        transfer->offset = 0;
        if (ftruncate(transfer->piece, 0) != 0) {
            return fetcher_fail_errno(fetcher, "cannot write");
        }
    }
    return true;
}

static bool is_file(const struct transfer *transfer)
{
    return transfer->answer.status == 200 || transfer->answer.status == 206;
}

static bool take_file(struct transfer *transfer, const char *bytes, size_t length)
{
    if (transfer->arrived == 0 && !begin_file(transfer)) {
        transfer->stopped = !transfer->changed;
        return false;
    }
    transfer->arrived += (int64_t)length;
    transfer->stopped = !((file_write_all(transfer->piece, bytes, length) ||
                           fetcher_fail_errno(transfer->fetcher, "cannot write")) &&
                          fetcher_count(transfer->fetcher, (int64_t)length));
    return !transfer->stopped;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *closure)
{
    struct transfer *transfer = closure;
    size_t length = size * count;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->answer.status);
    bool good = is_file(transfer);
    if (good && transfer->piece >= 0) {
        return take_file(transfer, bytes, length) ? length : 0;
    }
    size_t room = transfer->text_limit - transfer->text.length;
    transfer->too_long = transfer->too_long || (good && length > room);
    text_append_bytes(&transfer->text, bytes, length < room ? length : room);
    return good && transfer->too_long ? 0 : length;
}

/* --- requests ------------------------------------------------------------------------------------------- */

static void log_in(struct transfer *transfer)
{
    const struct http_login *login = &transfer->remote->login;
    CURL *easy = transfer->easy;
    if (login->bearer != NULL) {
        curl_use_set(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_use_set(easy, CURLOPT_XOAUTH2_BEARER, login->bearer);
    }
    if (login->region != NULL) {
        autofree char *scope = xprintf("aws:amz:%s:s3", login->region);
        autofree char *pair = xprintf("%s:%s", login->key_id, login->secret);
        curl_use_set(easy, CURLOPT_AWS_SIGV4, scope);
        curl_use_set(easy, CURLOPT_USERPWD, pair);
    }
    if (login->session != NULL) {
        autofree char *header = xprintf("x-amz-security-token: %s", login->session);
        transfer->headers = curl_use_append(transfer->headers, header);
    }
}

static void begin(struct transfer *transfer, struct fetcher *fetcher, const struct http_remote *remote)
{
    *transfer = (struct transfer){.fetcher = fetcher,
                                  .remote = remote,
                                  .easy = curl_use_easy(),
                                  .piece = -1,
                                  .text_limit = LIMIT_FETCH_PROBLEM,
                                  .answer = {.length = -1, .first = -1, .whole = -1}};
    CURL *easy = transfer->easy;
    const char *schemes = fetcher->plain_http || remote->login.trusted ? "http,https" : "https";
    curl_use_set(easy, CURLOPT_URL, remote->url);
    curl_use_set(easy, CURLOPT_PROTOCOLS_STR, schemes);
    curl_use_set(easy, CURLOPT_REDIR_PROTOCOLS_STR, schemes);
    curl_use_set(easy, CURLOPT_FOLLOWLOCATION, remote->login.region == NULL ? 1L : 0L);
    curl_use_set(easy, CURLOPT_MAXREDIRS, (long)INPUT_REDIRECTS);
    curl_use_set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)INPUT_CONNECT_MS);
    curl_use_set(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_use_set(easy, CURLOPT_LOW_SPEED_TIME, (long)INPUT_SILENCE_S);
    curl_use_set(easy, CURLOPT_NOSIGNAL, 1L);
    curl_use_set(easy, CURLOPT_USERAGENT, "gpuctl/" GPUCTL_VERSION);
    curl_use_set(easy, CURLOPT_ERRORBUFFER, transfer->problem);
    curl_use_set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_use_set(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_use_set(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_use_set(easy, CURLOPT_HEADERDATA, transfer);
    curl_use_set(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_use_set(easy, CURLOPT_WRITEDATA, transfer);
    curl_use_authorities(easy);
    log_in(transfer);
}

static void finish(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    finish_answer(&transfer->answer);
    text_finish(&transfer->text);
}

static CURLcode perform(struct transfer *transfer)
{
    curl_use_set(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    CURLcode code = curl_easy_perform(transfer->easy);
    if (code == CURLE_OUT_OF_MEMORY) {
        out_of_memory();
    }
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->answer.status);
    return code;
}

/* What servers of S3 say of a failure is in <Message>. */
static void add_message(const struct text *text, struct text *out)
{
    static const char *const begin = "<Message>", *const end = "</Message>";
    const char *found = text->bytes != NULL ? strstr(text->bytes, begin) : NULL;
    const char *stop = found != NULL ? strstr(found, end) : NULL;
    if (stop != NULL) {
        found += strlen(begin);
        text_printf(out, " (%.*s)", (int)(stop - found), found);
    }
}

static bool fail_status(const struct transfer *transfer)
{
    static const struct {
        long status;
        const char *text;
    } known[] = {{401, "Unauthorized: name a secret with #secret=NAME"},
                 {403, "Forbidden: the credentials, or their absence, do not allow it"},
                 {404, "Not Found"},
                 {410, "Gone"}};
    autofree char *shown = fetcher_shown(transfer->remote->url);
    autotext struct text text = {0};
    long status = transfer->answer.status;
    text_printf(&text, "%s: the server answers %ld", shown, status);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        text_printf(&text, "%s%s", known[i].status == status ? " " : "",
                    known[i].status == status ? known[i].text : "");
    }
    add_message(&transfer->text, &text);
    bool passes = status == 408 || status == 425 || status == 429 || status >= 500;
    return fetcher_fail(transfer->fetcher, passes ? FAULT_TIMES : FAULT_JOB, "%s", text.bytes);
}

static bool fail_transfer(const struct transfer *transfer, CURLcode code)
{
    struct fetcher *fetcher = transfer->fetcher;
    autofree char *shown = fetcher_shown(transfer->remote->url);
    if (transfer->refused[0] != '\0') {
        return fetcher_fail(
            fetcher, FAULT_NODE,
            "%s leads to %s, which this node fetches nothing from: its operator can allow that "
            "by gpuagent --input-networks",
            shown, transfer->refused);
    }
    if (code == CURLE_UNSUPPORTED_PROTOCOL) {
        return fetcher_fail(
            fetcher, FAULT_NODE,
            "%s is fetched by https alone on this node: its operator can allow http by gpuagent "
            "--input-plain-http",
            shown);
    }
    return fetcher_fail(fetcher, code == CURLE_TOO_MANY_REDIRECTS ? FAULT_JOB : FAULT_TIMES, "%s: %s", shown,
                        transfer->problem[0] != '\0' ? transfer->problem : curl_easy_strerror(code));
}

/* --- a probe -------------------------------------------------------------------------------------------- */

/* Some servers allow no HEAD; a presigned URL allows nothing but its own method. */
static bool is_worth_a_get(long status)
{
    return status == 400 || status == 403 || status == 405 || status == 501;
}

static CURLcode ask_by_get(struct transfer *transfer)
{
    curl_use_set(transfer->easy, CURLOPT_HTTPGET, 1L);
    curl_use_set(transfer->easy, CURLOPT_RANGE, "0-0");
    finish_answer(&transfer->answer);
    text_clear(&transfer->text);
    CURLcode code = perform(transfer);
    bool known = transfer->answer.status == 200 || transfer->answer.status == 206;
    return code == CURLE_WRITE_ERROR && known ? CURLE_OK : code;
}

bool http_probe(struct fetcher *fetcher, const struct http_remote *remote, char **ret_version,
                int64_t *ret_size)
{
    struct transfer transfer;
    begin(&transfer, fetcher, remote);
    curl_use_set(transfer.easy, CURLOPT_NOBODY, 1L);
    CURLcode code = perform(&transfer);
    if (code == CURLE_OK && is_worth_a_get(transfer.answer.status)) {
        code = ask_by_get(&transfer);
    }
    const struct answer *answer = &transfer.answer;
    bool good = code == CURLE_OK && (answer->status == 200 || answer->status == 206);
    if (good) {
        *ret_version = version_of(answer);
        *ret_size = answer->status == 206 ? answer->whole : answer->length;
    } else if (code != CURLE_OK) {
        fail_transfer(&transfer, code);
    } else {
        fail_status(&transfer);
    }
    finish(&transfer);
    return good;
}

/* --- a fetch -------------------------------------------------------------------------------------------- */

/* If-Range takes strong tags and times alone. */
static const char *validator(const char *version)
{
    if (version == NULL) {
        return NULL;
    }
    if (strncmp(version, BY_TIME, strlen(BY_TIME)) == 0) {
        return version + strlen(BY_TIME);
    }
    const char *tag = version + strlen(BY_TAG);
    return strncmp(version, BY_TAG "\"", strlen(BY_TAG) + 1) == 0 ? tag : NULL;
}

enum end { END_DONE, END_BROKEN, END_FAILED };

static void ask_for_rest(struct transfer *transfer)
{
    autofree char *condition = xprintf("If-Range: %s", validator(transfer->version));
    autofree char *range = xprintf("%lld-", (long long)transfer->offset);
    transfer->headers = curl_use_append(transfer->headers, condition);
    curl_use_set(transfer->easy, CURLOPT_RANGE, range);
}

static enum end judge(struct transfer *transfer, CURLcode code, bool last)
{
    struct fetcher *fetcher = transfer->fetcher;
    bool whole = code == CURLE_OK && is_file(transfer);
    if (whole && transfer->arrived == 0 && !begin_file(transfer)) { /* it may be empty */
        transfer->stopped = !transfer->changed;
    }
    if (transfer->stopped) {
        return END_FAILED;
    }
    if (transfer->changed) {
        autofree char *shown = fetcher_shown(transfer->remote->url);
        fetcher_fail(fetcher, FAULT_TIMES, "%s has changed while it was fetched", shown);
        return END_FAILED;
    }
    if (whole) {
        return END_DONE;
    }
    if (code == CURLE_OK && transfer->answer.status == 416 && !last) {
        fetcher->done_bytes -= transfer->offset;
        return ftruncate(transfer->piece, 0) == 0 ? END_BROKEN : END_FAILED;
    }
    if (code == CURLE_OK) {
        fail_status(transfer);
        return END_FAILED;
    }
    if (last || transfer->refused[0] != '\0' || code == CURLE_UNSUPPORTED_PROTOCOL) {
        fail_transfer(transfer, code);
        return END_FAILED;
    }
    return END_BROKEN;
}

/* One try. The bytes that it brings stay, also when it breaks off; *ret_size: how many there are then. */
static enum end try(struct fetcher *fetcher, const struct http_remote *remote, const char *version, int piece,
                    bool last, int64_t *ret_size)
{
    struct transfer transfer;
    struct stat status;
    if (fstat(piece, &status) != 0) {
        fetcher_fail_errno(fetcher, "cannot read");
        return END_FAILED;
    }
    begin(&transfer, fetcher, remote);
    transfer.piece = piece;
    transfer.version = version;
    if (status.st_size > 0 && validator(version) == NULL && ftruncate(piece, 0) == 0) {
        fetcher->done_bytes -= status.st_size;
        status.st_size = 0;
    }
    transfer.offset = status.st_size;
    if (transfer.offset > 0) {
        ask_for_rest(&transfer);
    }
    enum end end = judge(&transfer, perform(&transfer), last);
    *ret_size = transfer.offset + transfer.arrived;
    finish(&transfer);
    return end;
}

static void pause_after(int failures)
{
    const struct timespec pause = {.tv_sec = 1L << failures};
    nanosleep(&pause, NULL);
}

static bool fetch_piece(struct fetcher *fetcher, const struct http_remote *remote, const char *version,
                        int piece)
{
    struct stat status;
    int64_t size = 0;
    if (fstat(piece, &status) != 0) {
        return fetcher_fail_errno(fetcher, "cannot read");
    }
    fetcher->done_bytes += status.st_size;
    /* a server without ranges sends the same bytes again */
    for (int64_t most = status.st_size, failures = 0;;) {
        enum end end = try(fetcher, remote, version, piece, failures + 1 == INPUT_TRIES, &size);
        if (end != END_BROKEN) {
            return end == END_DONE;
        }
        failures = size > most ? 0 : failures + 1;
        most = size > most ? size : most;
        pause_after((int)failures);
    }
}

bool http_fetch(struct fetcher *fetcher, const struct http_remote *remote, const char *version, bool again,
                const char *path)
{
    autoclose int piece = fetcher_piece_open(fetcher, again);
    return piece >= 0 && fetch_piece(fetcher, remote, version, piece) &&
           fetcher_piece_keep(fetcher, piece, path);
}

bool http_text(struct fetcher *fetcher, const struct http_remote *remote, size_t limit_bytes,
               struct text *ret_text)
{
    struct transfer transfer;
    begin(&transfer, fetcher, remote);
    transfer.text_limit = limit_bytes;
    CURLcode code = perform(&transfer);
    bool good = code == CURLE_OK && transfer.answer.status == 200;
    if (good) {
        *ret_text = transfer.text;
        transfer.text = (struct text){0};
    } else if (code != CURLE_OK) {
        fail_transfer(&transfer, code);
    } else {
        fail_status(&transfer);
    }
    finish(&transfer);
    return good;
}

/* --- the source ----------------------------------------------------------------------------------------- */

/* A token in a file often has a line end. */
static char *trimmed(const char *text)
{
    return text != NULL ? xstrndup(text, strcspn(text, " \t\r\n")) : NULL;
}

bool fetcher_http(struct fetcher *fetcher)
{
    autofree char *token = trimmed(fetcher->credentials);
    const struct http_remote remote = {.url = fetcher->url, .login = {.bearer = token}};
    autofree char *version = NULL;
    int64_t size = -1;
    if (fetcher->fetches) {
        const char *found =
            strncmp(fetcher->version, BY_HASH, strlen(BY_HASH)) != 0 ? fetcher->version : NULL;
        return http_fetch(fetcher, &remote, found, true, fetcher->entry);
    }
    if (!http_probe(fetcher, &remote, &version, &size)) {
        return false;
    }
    if (version == NULL && fetcher->sha256 == NULL) {
        autofree char *shown = fetcher_shown(fetcher->url);
        return fetcher_fail(
            fetcher, FAULT_JOB,
            "%s has neither ETag nor Last-Modified, so nobody knows when it changes: name its content "
            "with #sha256=HEX",
            shown);
    }
    if (version == NULL) {
        version = xprintf(BY_HASH "%s", fetcher->sha256);
    }
    return fetcher_check_size(fetcher, size) && fetcher_found(version, size, false);
}
