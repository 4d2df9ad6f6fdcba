/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the fetcher: reads the order, calls the part that knows the source, and keeps files. It is a process
 * of its own because what it reads is a stranger's, and because a file server may hang it. It owns the data
 * and the work folder of one fetch, and nothing else of the agent. */
#include "agent/fetcher/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/fetcher/fetcher_parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/files/files.h"
#include "proto/base/http/curl_use.h"
#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/members.h"
#include "proto/spec/jobspec_parts.h"

#define ORDER_BYTES (256 * 1024) /* URLs and a secret of LIMIT_SECRET_BYTES in base64 */
#define PIECE       "piece"
#define MEGABYTE    1e6

/* --- saying --------------------------------------------------------------------------------------------- */

static void say(json_t *line)
{
    char *text = json_text(line);
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

bool fetcher_fail(const struct fetcher *fetcher, enum fetch_fault fault, const char *format, ...)
{
    char text[LIMIT_FETCH_PROBLEM];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    json_t *line = json_object();
    member_put_text(line, "failed", text);
    member_put_bool(line, "by_user", fault == FAULT_JOB);
    member_put_bool(line, "lasting", fault == FAULT_NODE);
    say(line);
    return false;
}

bool fetcher_fail_errno(const struct fetcher *fetcher, const char *what)
{
    autofree char *shown = fetcher_shown(fetcher->url);
    if (errno == ENOSPC || errno == EDQUOT) {
        return fetcher_fail(fetcher, FAULT_TIMES, "the node's disk is full: it cannot hold %s", shown);
    }
    return fetcher_fail(fetcher, FAULT_TIMES, "%s: %s: %s", shown, what, strerror(errno));
}

bool fetcher_found(const char *version, int64_t size, bool tree)
{
    json_t *line = json_object();
    member_put_text(line, "version", version);
    member_put_int(line, "size", size);
    member_put_bool(line, "tree", tree);
    say(line);
    return true;
}

char *fetcher_shown(const char *url)
{
    return xstrndup(url, strcspn(url, "?"));
}

bool fetcher_check_size(const struct fetcher *fetcher, int64_t size)
{
    autofree char *shown = fetcher_shown(fetcher->url);
    return size <= fetcher->limit_bytes ||
           fetcher_fail(fetcher, FAULT_NODE,
                        "%s has %.1f MB, and this node keeps %.1f MB of inputs: gpuagent --input-limit",
                        shown, (double)size / MEGABYTE, (double)fetcher->limit_bytes / MEGABYTE);
}

/* Others write to the same disk. A fetch that is over at once is not held up by a disk that was full before.
 */
static bool check_disk(const struct fetcher *fetcher)
{
    struct statvfs disk;
    if (fetcher->told_ms == 0 || fetcher->work < 0 || fstatvfs(fetcher->work, &disk) != 0 ||
        (int64_t)disk.f_bavail * (int64_t)disk.f_frsize >= INPUTS_FREE_BYTES) {
        return true;
    }
    autofree char *shown = fetcher_shown(fetcher->url);
    return fetcher_fail(fetcher, FAULT_TIMES, "the disk of this node is nearly full: it cannot hold %s",
                        shown);
}

bool fetcher_count(struct fetcher *fetcher, int64_t bytes)
{
    fetcher->done_bytes += bytes;
    int64_t now_ms = clock_boot_ms();
    if (now_ms - fetcher->told_ms >= STAGING_TELL_MS) {
        if (!check_disk(fetcher)) {
            return false;
        }
        autofree char *total = fetcher->total_bytes >= 0
                                   ? xprintf(" of %.1f", (double)fetcher->total_bytes / MEGABYTE)
                                   : xstrdup("");
        autofree char *text = xprintf("input %s: %.1f%s MB have come", fetcher->entry,
                                      (double)fetcher->done_bytes / MEGABYTE, total);
        json_t *line = json_object();
        member_put_text(line, "text", text);
        say(line);
        fetcher->told_ms = now_ms;
    }
    return fetcher_check_size(fetcher, fetcher->done_bytes);
}

/* --- files ---------------------------------------------------------------------------------------------- */

int fetcher_piece_open(const struct fetcher *fetcher, bool keeps)
{
    int piece = openat(fetcher->work, PIECE,
                       O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | (keeps ? 0 : O_TRUNC), 0600);
    if (piece < 0) {
        fetcher_fail_errno(fetcher, "cannot write");
    }
    return piece;
}

static bool make_parents(const struct fetcher *fetcher, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        autofree char *folder = xstrndup(path, (size_t)(slash - path));
        if (mkdirat(fetcher->data, folder, 0755) != 0 && errno != EEXIST) {
            return false;
        }
    }
    return true;
}

static bool check_content(const struct fetcher *fetcher, int piece)
{
    uint8_t sum[HASH_BYTES];
    char hex[HASH_HEX + 1], bytes[64 * 1024];
    struct hash *hash = hash_create();
    ssize_t got;
    off_t at = 0;
    while ((got = pread(piece, bytes, sizeof bytes, at)) > 0) {
        hash_update(hash, bytes, (size_t)got);
        at += got;
    }
    hash_finish(hash, sum);
    text_to_hex(sum, sizeof sum, hex);
    if (got < 0) {
        return fetcher_fail_errno(fetcher, "cannot read");
    }
    if (strcmp(hex, fetcher->sha256) != 0) {
        autofree char *shown = fetcher_shown(fetcher->url);
        return fetcher_fail(fetcher, FAULT_JOB, "%s has the SHA-256 %s, and the job wants %s", shown, hex,
                            fetcher->sha256);
    }
    return true;
}

bool fetcher_piece_keep(const struct fetcher *fetcher, int piece, const char *path)
{
    if (fetcher->sha256 != NULL && !check_content(fetcher, piece)) {
        return false;
    }
    return (fchmod(piece, 0444) == 0 && fsync(piece) == 0 && make_parents(fetcher, path) &&
            renameat(fetcher->work, PIECE, fetcher->data, path) == 0) ||
           fetcher_fail_errno(fetcher, path);
}

bool fetcher_has(const struct fetcher *fetcher, const char *path, int64_t size)
{
    struct stat status;
    return fstatat(fetcher->data, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == size;
}

/* --- the order ------------------------------------------------------------------------------------------ */

static bool open_folders(struct fetcher *fetcher, const char *folder, struct err *err)
{
    autofree char *data = xprintf("%s/" FETCHER_DATA, folder);
    autofree char *work = xprintf("%s/" FETCHER_WORK, folder);
    fetcher->data = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fetcher->work = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fetcher->data >= 0 && fetcher->work >= 0) || err_errno(err, "%s", folder);
}

static bool take_credentials(struct fetcher *fetcher, const char *base64, struct err *err)
{
    autofree uint8_t *bytes = NULL;
    size_t length;
    if (base64 == NULL) {
        return true;
    }
    if (!text_from_base64(base64, strlen(base64), &bytes, &length)) {
        return err_set(err, ERR_FIELD, "the secret is not base64");
    }
    fetcher->credentials = xstrndup((const char *)bytes, length);
    return true;
}

static bool take_order(struct fetcher *fetcher, struct err *err)
{
    char bytes[ORDER_BYTES];
    size_t length = fread(bytes, 1, sizeof bytes, stdin);
    json_t *order = fetcher->order = json_parse(bytes, length, err);
    const char *folder = NULL, *networks = NULL, *base64 = NULL;
    return order != NULL && json_need_text(order, "url", &fetcher->url, err) &&
           json_need_text(order, "entry", &fetcher->entry, err) &&
           json_need_int(order, "limit_bytes", 0, INT64_MAX, &fetcher->limit_bytes, err) &&
           json_read_int(order, "size", -1, INT64_MAX, &fetcher->total_bytes, err) &&
           json_read_text(order, "version", &fetcher->version, err) &&
           json_read_text(order, "sha256", &fetcher->sha256, err) &&
           json_read_text(order, "endpoint", &fetcher->endpoint, err) &&
           json_read_text(order, "region", &fetcher->region, err) &&
           json_read_text(order, "volume", &fetcher->volume, err) &&
           json_read_text(order, "networks", &networks, err) &&
           json_read_text(order, "credentials", &base64, err) &&
           json_read_bool(order, "plain_http", &fetcher->plain_http, err) &&
           json_read_text(order, "folder", &folder, err) &&
           networks_parse("--input-networks", networks, &fetcher->networks, err) &&
           take_credentials(fetcher, base64, err) && (folder == NULL || open_folders(fetcher, folder, err)) &&
           (jobspec_find_source(fetcher->url, &fetcher->source, &fetcher->place) ||
            err_set(err, ERR_FIELD, "no such source"));
}

static bool serve(struct fetcher *fetcher)
{
    switch (fetcher->source) {
    case SOURCE_HTTP:
        return fetcher_http(fetcher);
    case SOURCE_S3:
        return fetcher_s3(fetcher);
    case SOURCE_VOLUME:
        return fetcher_volume(fetcher);
    }
    abort();
}

bool fetcher_is_meant(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], FETCHER_WORD) == 0;
}

int fetcher_run(void)
{
    struct fetcher fetcher = {.data = -1, .work = -1, .total_bytes = -1};
    struct err err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "gpuagent-fetch");
    umask(S_IWGRP | S_IWOTH); /* others read what it fetches */
    json_begin();
    curl_use_begin(CURL_GLOBAL_DEFAULT);
    bool good = take_order(&fetcher, &err) ||
                fetcher_fail(&fetcher, FAULT_TIMES, "the order of the fetch cannot be used: %s", err.text);
    fetcher.fetches = fetcher.data >= 0;
    good = good && serve(&fetcher);
    if (good && fetcher.fetches) {
        json_t *line = json_object();
        member_put_bool(line, "done", true);
        member_put_int(line, "size", fetcher.done_bytes);
        say(line);
    }
    cleanup_close(&fetcher.data);
    cleanup_close(&fetcher.work);
    free(fetcher.credentials);
    json_decref(fetcher.order);
    curl_global_cleanup();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
