/* SPDX-License-Identifier: Apache-2.0 */
/* Saves stored bytes in a file. It promises that the file then holds all of them, checked and on disk, or
 * what it held before; and that nothing else is left behind, not even after Ctrl-C. */
#include "client/cli/common/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/limits_client.h"

/* One transfer on its way. */
struct sink {
    FILE *file;
    struct hash *hash;
    int64_t length;
    int fault; /* errno of a failed write; 0: none */
};

static bool is_stdout(const char *place)
{
    return strcmp(place, "-") == 0;
}

bool save_check(const char *place, struct err *err)
{
    struct stat status;
    if (is_stdout(place)) {
        return !isatty(STDOUT_FILENO) ||
               err_field(err, ERR_USAGE, "save", "name a file, or pipe it elsewhere",
                         "a pickle is no text for a terminal");
    }
    if (place[0] == '\0' || (stat(place, &status) == 0 && S_ISDIR(status.st_mode))) {
        return err_field(err, ERR_USAGE, "save", "name the file that is to be written",
                         "\"%s\" is not the name of a file", place);
    }
    return true;
}

/* --- the transfer --- */

static bool take_bytes(const char *bytes, size_t length, void *closure)
{
    struct sink *sink = closure;
    if (sink->fault == 0 && fwrite(bytes, 1, length, sink->file) != length) {
        sink->fault = errno;
    }
    hash_update(sink->hash, bytes, length);
    sink->length += (int64_t)length;
    return true;
}

static bool judge(struct api *api, struct transfer *transfer, const struct sink *sink, struct err *err)
{
    if (sink->fault != 0) {
        errno = sink->fault;
        return err_errno(err, "cannot write what the controller sent");
    }
    if (api_interrupts(api) > 0) {
        return err_set(err, ERR_IO, "interrupted before all bytes had come");
    }
    return transfer_result(transfer, err);
}

static bool check(struct sink *sink, const struct stored *stored, struct err *err)
{
    uint8_t hash[HASH_BYTES];
    char hex[HASH_HEX + 1];
    hash_finish(give(sink->hash), hash);
    text_to_hex(hash, sizeof hash, hex);
    if (stored->size >= 0 && sink->length != stored->size) {
        return err_set(err, ERR_IO, "%lld bytes have come, not %lld", (long long)sink->length,
                       (long long)stored->size);
    }
    if (stored->sha256 != NULL && strcmp(hex, stored->sha256) != 0) {
        err_set(err, ERR_IO, "the bytes that came hash to %s, not to %s", hex, stored->sha256);
        return err_hint(err, "what the controller stores is damaged, or what lies between has changed it");
    }
    return true;
}

/* Everything into the file, checked; the file stays open. link NULL: from the controller. */
static bool fetch(struct api *api, const struct stored *stored, const char *link, FILE *file, struct err *err)
{
    struct sink sink = {.file = file, .hash = hash_create()};
    struct transfer *transfer = transfer_start(
        api, &(struct request){.method = "GET", .path = stored->path, .url = link, .timeout_ms = -1},
        take_bytes, &sink);
    while (!transfer_done(transfer) && sink.fault == 0 && api_interrupts(api) == 0) {
        api_turn(api, CLIENT_REPLY_MS);
    }
    bool whole = judge(api, transfer, &sink, err);
    transfer_destroy(transfer);
    bool right = check(&sink, stored, whole ? err : NULL);
    return whole && right && (fflush(file) == 0 || err_errno(err, "cannot write what the controller sent"));
}

/* --- the object store --- */

/* By https, or by http to this host if the controller is here, too. */
static bool may_go(const struct api *api, const char *link)
{
    return strncmp(link, "https://", 8) == 0 ||
           (context_is_loopback(link) && context_is_loopback(api_context(api)->url));
}

/* Where the controller redirects for a blob; the caller frees it. NULL: nowhere. */
static char *find_link(struct api *api, const struct stored *stored)
{
    struct err ignored;
    autofree char *path = xprintf("%s?redirect=1", stored->path);
    struct transfer *transfer =
        transfer_start(api, &(struct request){.method = "HEAD", .head = true, .path = path}, NULL, NULL);
    while (!transfer_done(transfer) && api_interrupts(api) == 0) {
        api_turn(api, CLIENT_REPLY_MS);
    }
    char *link = transfer_result(transfer, &ignored) ? transfer_location(transfer) : NULL;
    transfer_destroy(transfer);
    return link;
}

/* Into an empty file: bytes that the store does not give, or gives wrong, come from the controller. */
static bool fetch_where_it_is(struct api *api, const struct stored *stored, FILE *file, struct err *err)
{
    struct err ignored;
    autofree char *link = stored->sha256 != NULL ? find_link(api, stored) : NULL;
    if (link != NULL && may_go(api, link) && fetch(api, stored, link, file, &ignored)) {
        return true;
    }
    rewind(file);
    return (ftruncate(fileno(file), 0) == 0 || err_errno(err, "cannot empty the file")) &&
           fetch(api, stored, NULL, file, err);
}

/* --- places --- */

/* Bytes as they come, into a pipe or a device. */
static bool fetch_into(struct api *api, const struct stored *stored, const char *place, struct err *err)
{
    autofclose FILE *file = fopen(place, "we");
    return file != NULL ? fetch(api, stored, NULL, file, err) : err_errno(err, "cannot open %s", place);
}

static bool fetch_beside(struct api *api, const struct stored *stored, const char *place, struct err *err)
{
    autofree char *real = realpath(place, NULL); /* a link stays one */
    const char *target = real != NULL ? real : place;
    char suffix[ID_LENGTH + 1];
    random_id(suffix);
    autofree char *part = xprintf("%s.%s.part", target, suffix);
    FILE *file = fopen(part, "wxe");
    if (file == NULL) {
        return err_errno(err, "cannot make %s", part);
    }
    bool saved = fetch_where_it_is(api, stored, file, err) &&
                 (fsync(fileno(file)) == 0 || err_errno(err, "cannot sync %s", part));
    fclose(file);
    saved = saved && (rename(part, target) == 0 || err_errno(err, "cannot replace %s", target));
    if (!saved) {
        unlink(part);
    }
    return saved;
}

bool save_stored(struct api *api, const struct stored *stored, const char *place, struct err *err)
{
    struct stat status;
    if (!api_catch_interrupts(api, err)) {
        return false;
    }
    if (is_stdout(place)) {
        return fetch(api, stored, NULL, stdout, err);
    }
    bool other = stat(place, &status) == 0 && !S_ISREG(status.st_mode);
    return other ? fetch_into(api, stored, place, err) : fetch_beside(api, stored, place, err);
}

bool save_blob(struct api *api, const char *sha256, const char *place, struct err *err)
{
    autofree char *path = xprintf("/v1/blobs/%s", sha256);
    return save_stored(api, &(struct stored){path, sha256, -1}, place, err);
}
