/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of blobs under STATE/payloads. The name of a file there is the hash of its content. A blob is
 * fetched once for all orders that wait for it. The cache stays below its limit; the least recently used blob
 * goes first. Each use reads the blob whole and compares its hash: one that is damaged, or that somebody has
 * altered, is fetched again. Large blobs do not block the loop. A job gets a copy, so that it cannot change
 * the cache. */
#include "agent/environment/payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/objects/download.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define STEP_BYTES  MIB /* hashed and copied at once: 1 to 3 ms */
#define PIECE_BYTES (64 * KIB)
#define PART        ".part"

/* One blob that is being fetched. */
struct fetch {
    struct payloads *payloads;
    char hash[HASH_HEX + 1];
    int file;
    int64_t length;
    struct download *download;
    struct err err; /* why the blob could not be stored */
    struct fetch *prev, *next;
};

struct payload_order {
    struct payloads *payloads;
    char hash[HASH_HEX + 1];
    int from, to;     /* from: -1 until the blob is in the cache; to: -1 if there is no file to fill */
    struct hash *sum; /* of the bytes that were read */
    int64_t length;   /* their number */
    bool again;       /* what the cache had was wrong, and the blob was fetched once more */
    payload_done *done;
    void *closure;
    struct payload_order *prev, *next;
};

struct payloads {
    char *path;
    int folder;
    struct controller_client *controller;
    struct object_client *objects;
    struct fetch *fetches;
    struct payload_order *orders;
};

/* --- the cache ------------------------------------------------------------------------------------------ */

/* Removes the unfinished files of a killed agent. */
static void remove_parts(const struct payloads *payloads)
{
    autonames struct file_names names;
    file_list(payloads->path, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        if (strstr(names.items[i], PART) != NULL) {
            unlinkat(payloads->folder, names.items[i], 0);
        }
    }
}

struct payloads *payloads_create(const char *folder, struct controller_client *controller,
                                 struct object_client *objects, struct err *err)
{
    if (!file_make_directories(folder, 0700, err)) {
        return NULL;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        err_errno(err, "cannot open %s", folder);
        return NULL;
    }
    struct payloads *payloads = xzalloc(sizeof *payloads);
    payloads->path = xstrdup(folder);
    payloads->folder = fd;
    payloads->controller = controller;
    payloads->objects = objects;
    remove_parts(payloads);
    return payloads;
}

/* Adds up the size of the cache and finds its least recently used file. */
static int64_t weigh(const struct payloads *payloads, char oldest[HASH_HEX + 1])
{
    int64_t total = 0;
    struct timespec oldest_time = {0};
    autonames struct file_names names;
    oldest[0] = '\0';
    file_list(payloads->path, &names, NULL); /* a folder that cannot be listed yields no names */
    for (size_t i = 0; i < names.count; i++) {
        struct stat status;
        if (strlen(names.items[i]) != HASH_HEX ||
            fstatat(payloads->folder, names.items[i], &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        total += status.st_size;
        bool older =
            status.st_mtim.tv_sec < oldest_time.tv_sec ||
            (status.st_mtim.tv_sec == oldest_time.tv_sec && status.st_mtim.tv_nsec < oldest_time.tv_nsec);
        if (oldest[0] == '\0' || older) {
            oldest_time = status.st_mtim;
            memcpy(oldest, names.items[i], HASH_HEX + 1);
        }
    }
    return total;
}

static void make_room(const struct payloads *payloads, int64_t bytes)
{
    char oldest[HASH_HEX + 1];
    while (weigh(payloads, oldest) + bytes > LIMIT_PAYLOAD_CACHE && oldest[0] != '\0') {
        if (unlinkat(payloads->folder, oldest, 0) != 0) {
            return;
        }
    }
}

/* Opens a blob of the cache, and notes its use. */
static int open_cached(const struct payloads *payloads, const char *hash)
{
    int fd = openat(payloads->folder, hash, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        futimens(fd, NULL);
    }
    return fd;
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void destroy_fetch(struct fetch *fetch)
{
    download_cancel(fetch->download);
    DL_DELETE(fetch->payloads->fetches, fetch);
    autofree char *part = xprintf("%s%s", fetch->hash, PART);
    unlinkat(fetch->payloads->folder, part, 0); /* no such file if it was renamed */
    cleanup_close(&fetch->file);
    free(fetch);
}

static struct fetch *find_fetch(const struct payloads *payloads, const char *hash)
{
    struct fetch *fetch;
    DL_FOREACH (payloads->fetches, fetch) {
        if (strcmp(fetch->hash, hash) == 0) {
            return fetch;
        }
    }
    return NULL;
}

/* It is read from its beginning, if it is read again. */
static void close_cached(struct payload_order *order)
{
    uint8_t ignored[HASH_BYTES];
    if (order->sum != NULL) {
        hash_finish(give(order->sum), ignored);
    }
    order->length = 0;
    cleanup_close(&order->from);
    order->from = -1;
}

static void destroy_order(struct payload_order *order)
{
    DL_DELETE(order->payloads->orders, order);
    close_cached(order);
    free(order);
}

static bool is_wanted(const struct payloads *payloads, const char *hash)
{
    struct payload_order *order;
    DL_FOREACH (payloads->orders, order) {
        if (order->from < 0 && strcmp(order->hash, hash) == 0) {
            return true;
        }
    }
    return false;
}

void payload_cancel(struct payload_order *order)
{
    if (order == NULL) {
        return;
    }
    struct payloads *payloads = order->payloads;
    struct fetch *fetch = order->from < 0 ? find_fetch(payloads, order->hash) : NULL;
    char hash[HASH_HEX + 1];
    memcpy(hash, order->hash, sizeof hash);
    destroy_order(order);
    if (fetch != NULL && !is_wanted(payloads, hash)) {
        destroy_fetch(fetch);
    }
}

void payloads_destroy(struct payloads *payloads)
{
    if (payloads != NULL) {
        while (payloads->orders != NULL) {
            payload_cancel(payloads->orders);
        }
        close(payloads->folder);
        free(payloads->path);
        free(payloads);
    }
}

static void end_order(struct payload_order *order, const struct err *err)
{
    payload_done *done = order->done;
    void *closure = order->closure;
    autoclose int blob = err == NULL && order->to < 0 ? give_fd(&order->from) : -1;
    destroy_order(order);
    done(closure, blob, err);
}

/* Gives one waiting order its blob, or the error. */
static bool serve_one(struct payloads *payloads, const char *hash, const struct err *err)
{
    struct payload_order *order;
    DL_FOREACH (payloads->orders, order) {
        if (order->from >= 0 || strcmp(order->hash, hash) != 0) {
            continue;
        }
        if (err != NULL) {
            end_order(order, err);
            return true;
        }
        order->from = open_cached(payloads, hash);
        if (order->from < 0) {
            struct err lost;
            err_errno(&lost, "cannot open the payload %s", hash);
            end_order(order, &lost);
        }
        return true;
    }
    return false;
}

/* --- fetching ------------------------------------------------------------------------------------------- */

static bool fetch_arrived(void *closure, const void *bytes, size_t length, bool first)
{
    struct fetch *fetch = closure;
    fetch->length = first ? 0 : fetch->length;
    for (size_t done = 0; done < length;) {
        ssize_t wrote = pwrite(fetch->file, (const char *)bytes + done, length - done, (off_t)fetch->length);
        if (wrote <= 0) {
            return err_errno(&fetch->err, "cannot store the payload %s", fetch->hash);
        }
        done += (size_t)wrote;
        fetch->length += wrote;
    }
    return true;
}

/* Puts the fetched blob into the cache. */
static bool keep_fetched(struct fetch *fetch, struct err *err)
{
    make_room(fetch->payloads, fetch->length);
    autofree char *part = xprintf("%s%s", fetch->hash, PART);
    if (ftruncate(fetch->file, fetch->length) != 0 ||
        renameat(fetch->payloads->folder, part, fetch->payloads->folder, fetch->hash) != 0) {
        return err_errno(err, "cannot keep the payload %s", fetch->hash);
    }
    return true;
}

static void end_fetch(struct fetch *fetch, const struct err *err)
{
    struct payloads *payloads = fetch->payloads;
    char hash[HASH_HEX + 1];
    memcpy(hash, fetch->hash, sizeof hash);
    destroy_fetch(fetch);
    while (serve_one(payloads, hash, err)) {
    }
}

static void fetch_done(void *closure, const struct err *problem)
{
    struct fetch *fetch = closure;
    struct err err = fetch->err;
    fetch->download = NULL;
    if (problem != NULL && err.code == ERR_NONE) {
        err_set(&err, ERR_IO, "the payload %s %s", fetch->hash, problem->text);
    }
    bool kept = err.code == ERR_NONE && keep_fetched(fetch, &err);
    end_fetch(fetch, kept ? NULL : &err);
}

static void begin_fetch(struct payloads *payloads, const char *hash)
{
    struct fetch *fetch = xzalloc(sizeof *fetch);
    fetch->payloads = payloads;
    snprintf(fetch->hash, sizeof fetch->hash, "%s", hash);
    autofree char *part = xprintf("%s%s", hash, PART);
    fetch->file = openat(payloads->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fetch->file < 0) {
        err_errno(&fetch->err, "cannot store the payload %s", hash);
    }
    DL_APPEND(payloads->fetches, fetch);
    autofree char *path = xprintf("/v1/blobs/%s", hash);
    fetch->download = download_begin(&(struct download_call){.controller = payloads->controller,
                                                             .objects = payloads->objects,
                                                             .path = path,
                                                             .hash = hash,
                                                             .arrive = fetch_arrived,
                                                             .done = fetch_done,
                                                             .closure = fetch});
}

struct payload_order *payload_fill(struct payloads *payloads, const char *hash, int file, payload_done *done,
                                   void *closure)
{
    struct payload_order *order = xzalloc(sizeof *order);
    order->payloads = payloads;
    snprintf(order->hash, sizeof order->hash, "%s", hash);
    order->from = open_cached(payloads, hash);
    order->to = file;
    order->done = done;
    order->closure = closure;
    DL_APPEND(payloads->orders, order);
    if (order->from < 0 && find_fetch(payloads, hash) == NULL) {
        begin_fetch(payloads, hash);
    }
    return order;
}

struct payload_order *payload_open(struct payloads *payloads, const char *hash, payload_done *done,
                                   void *closure)
{
    return payload_fill(payloads, hash, -1, done, closure);
}

int64_t payload_arrived(const struct payload_order *order)
{
    const struct fetch *fetch = order->from < 0 ? find_fetch(order->payloads, order->hash) : NULL;
    return fetch != NULL ? fetch->length : 0;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Reads the next bytes, and copies them; 0 at the end, -1 with an error that *ret_damaged tells from those
 * that another copy would have, too. */
static ssize_t read_piece(struct payload_order *order, bool *ret_damaged, struct err *err)
{
    char piece[PIECE_BYTES];
    ssize_t got = pread(order->from, piece, sizeof piece, (off_t)order->length);
    if (got < 0) {
        *ret_damaged = true;
        err_errno(err, "cannot read the payload %s", order->hash);
        return -1;
    }
    hash_update(order->sum, piece, (size_t)got);
    order->length += got;
    if (order->to >= 0 && !file_write_all(order->to, piece, (size_t)got)) {
        err_errno(err, "cannot copy the payload %s", order->hash);
        return -1;
    }
    return got;
}

static bool is_whole(struct payload_order *order, bool *ret_damaged, struct err *err)
{
    uint8_t sum[HASH_BYTES];
    char hex[HASH_HEX + 1];
    hash_finish(give(order->sum), sum);
    text_to_hex(sum, HASH_BYTES, hex);
    *ret_damaged = strcmp(hex, order->hash) != 0;
    return !*ret_damaged || err_set(err, ERR_IO, "the payload %s has another content, %s, in the cache %s",
                                    order->hash, hex, order->payloads->path);
}

/* Another order may have fetched it meanwhile: then that one goes, too, which costs time alone. */
static void fetch_again(struct payload_order *order, const struct err *err)
{
    struct payloads *payloads = order->payloads;
    bool empty = order->to < 0 || (ftruncate(order->to, 0) == 0 && lseek(order->to, 0, SEEK_SET) == 0);
    unlinkat(payloads->folder, order->hash, 0);
    log_error("payload damaged", "hash=%s problem=\"%s\"", order->hash, err->text);
    if (order->again || !empty) {
        end_order(order, err);
        return;
    }
    order->again = true;
    close_cached(order);
    if (find_fetch(payloads, order->hash) == NULL) {
        begin_fetch(payloads, order->hash);
    }
}

bool payloads_step(struct payloads *payloads)
{
    struct err err;
    bool damaged = false;
    struct payload_order *order = payloads->orders;
    while (order != NULL && order->from < 0) {
        order = order->next;
    }
    if (order == NULL) {
        return false;
    }
    order->sum = order->sum != NULL ? order->sum : hash_create();
    const int64_t stop = order->length + STEP_BYTES;
    ssize_t got = 1;
    while (got > 0 && order->length < stop) {
        got = read_piece(order, &damaged, &err);
    }
    bool ended = got == 0 && is_whole(order, &damaged, &err);
    if (damaged) {
        fetch_again(order, &err);
    } else if (got <= 0) {
        end_order(order, ended ? NULL : &err);
    }
    return true;
}
