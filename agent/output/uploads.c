/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads files as blobs to the controller. A large file does not block the loop. Few uploads run at once,
 * which leaves connections for urgent requests. An upload is retried until the controller has taken or
 * refused it. A file that changes meanwhile causes an error, never a crash: it is read, not mapped. results.c
 * decides which files to upload. */
#include "agent/output/uploads.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/cleanup.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"

#define STEP_BYTES   (1 * MIB) /* hashed in a step: about 3 ms */
#define PIECE_BYTES  (64 * KIB)
#define UPLOADS_MOST 2 /* at once; the other connections are for orders, reports and logs */

struct upload {
    struct uploads *uploads;
    int file;
    int64_t size, hashed;
    struct hash *sum; /* NULL: the whole file is hashed */
    char hash[HASH_HEX + 1];
    struct controller_request *request; /* NULL: it waits for its turn */
    void (*done)(void *closure, const char *hash, const struct err *err);
    void *closure;
    struct upload *prev, *next;
};

struct uploads {
    struct controller_client *controller;
    struct upload *list;
    size_t under_way;
};

static void send_next(struct uploads *uploads);

struct uploads *uploads_create(struct controller_client *controller)
{
    struct uploads *uploads = xzalloc(sizeof *uploads);
    uploads->controller = controller;
    return uploads;
}

void uploads_destroy(struct uploads *uploads)
{
    free(uploads);
}

struct upload *upload_begin(struct uploads *uploads, int file, int64_t size,
                            void (*done)(void *closure, const char *hash, const struct err *err),
                            void *closure)
{
    struct upload *upload = xzalloc(sizeof *upload);
    *upload = (struct upload){.uploads = uploads,
                              .file = file,
                              .size = size,
                              .sum = hash_create(),
                              .done = done,
                              .closure = closure};
    DL_APPEND(uploads->list, upload);
    return upload;
}

static void destroy(struct upload *upload)
{
    uint8_t ignored[HASH_BYTES];
    if (upload->sum != NULL) {
        hash_finish(upload->sum, ignored);
    }
    DL_DELETE(upload->uploads->list, upload);
    close(upload->file);
    free(upload);
}

void upload_cancel(struct upload *upload)
{
    if (upload == NULL) {
        return;
    }
    struct uploads *uploads = upload->uploads;
    if (upload->request != NULL) {
        controller_cancel(upload->request);
        uploads->under_way--;
    }
    destroy(upload);
    send_next(uploads);
}

static void end(struct upload *upload, const struct err *err)
{
    void (*done)(void *, const char *, const struct err *) = upload->done;
    void *closure = upload->closure;
    char hash[HASH_HEX + 1];
    snprintf(hash, sizeof hash, "%s", upload->hash);
    destroy(upload);
    done(closure, err == NULL ? hash : NULL, err);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static bool read_exactly(const struct upload *upload, int64_t offset, void *buffer, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t got = pread(upload->file, (char *)buffer + done, length - done, (off_t)offset + (off_t)done);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

static bool supply(void *closure, int64_t offset, void *buffer, size_t length)
{
    return read_exactly(closure, offset, buffer, length);
}

static void put_done(void *closure, const struct controller_answer *answer)
{
    struct upload *upload = closure;
    struct uploads *uploads = upload->uploads;
    uploads->under_way--;
    end(upload, answer->status / 100 == 2 ? NULL : &answer->problem);
    send_next(uploads);
}

static void put(struct upload *upload)
{
    autofree char *path = xprintf("/v1/blobs/%s", upload->hash);
    upload->uploads->under_way++;
    upload->request = controller_send(upload->uploads->controller, &(struct controller_call){
                                                                       .path = path,
                                                                       .supply = supply,
                                                                       .length = (size_t)upload->size,
                                                                       .timeout_ms = TRANSFER_TIMEOUT_MS,
                                                                       .persistent = true,
                                                                       .done = put_done,
                                                                       .closure = upload,
                                                                   });
}

/* Sends hashed files in the order in which they came. */
static void send_next(struct uploads *uploads)
{
    struct upload *upload;
    DL_FOREACH (uploads->list, upload) {
        if (uploads->under_way == UPLOADS_MOST) {
            return;
        }
        if (upload->sum == NULL && upload->request == NULL) {
            put(upload);
        }
    }
}

/* --- hashing -------------------------------------------------------------------------------------------- */

static void finish_sum(struct upload *upload)
{
    uint8_t digest[HASH_BYTES];
    hash_finish(give(upload->sum), digest);
    text_to_hex(digest, sizeof digest, upload->hash);
    send_next(upload->uploads);
}

static bool hash_step(struct upload *upload)
{
    char piece[PIECE_BYTES];
    int64_t stop = upload->hashed + STEP_BYTES < upload->size ? upload->hashed + STEP_BYTES : upload->size;
    while (upload->hashed < stop) {
        size_t length =
            stop - upload->hashed < (int64_t)sizeof piece ? (size_t)(stop - upload->hashed) : sizeof piece;
        if (!read_exactly(upload, upload->hashed, piece, length)) {
            return false;
        }
        hash_update(upload->sum, piece, length);
        upload->hashed += (int64_t)length;
    }
    return true;
}

bool uploads_step(struct uploads *uploads)
{
    struct upload *upload = uploads->list;
    while (upload != NULL && upload->sum == NULL) {
        upload = upload->next;
    }
    if (upload == NULL) {
        return false;
    }
    if (!hash_step(upload)) {
        struct err err;
        err_set(&err, ERR_IO, "its bytes could not be read");
        end(upload, &err);
    } else if (upload->hashed == upload->size) {
        finish_sum(upload);
    }
    return true;
}
