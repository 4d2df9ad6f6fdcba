/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches a manifest from the controller, and then its pieces, one after the other. The folder is one
 * attempt's own and is never used again: an agent that is killed on the way declines the attempt, so no rank
 * sees a half of it, and nothing has to be synced. Requests are repeated until the controller answers. */
#include "agent/attempt/restore.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/stage_file.h"
#include "agent/objects/download.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/files/checkpoint.h"

struct restore {
    struct controller_client *controller;
    struct object_client *objects;
    char *node;
    uint64_t attempt_id;
    int folder;
    const struct user *user;
    struct checkpoint_manifest manifest;
    size_t at;    /* file that is being written ... */
    size_t piece; /* ... and its next piece */
    int file;     /* -1: not yet opened */
    int tries;    /* of the piece */
    struct text arrived;
    size_t limit;                       /* of what arrives */
    struct controller_request *request; /* for the manifest */
    struct download *download;          /* of the piece */
    void (*done)(void *closure, const struct err *err);
    void *closure;
};

static void fetch(struct restore *restore);

void restore_cancel(struct restore *restore)
{
    if (restore == NULL) {
        return;
    }
    controller_cancel(restore->request);
    download_cancel(restore->download);
    manifest_finish(&restore->manifest);
    text_finish(&restore->arrived);
    cleanup_close(&restore->file);
    cleanup_close(&restore->folder);
    free(restore->node);
    free(restore);
}

static void end(struct restore *restore, const struct err *err)
{
    void (*done)(void *, const struct err *) = restore->done;
    void *closure = restore->closure;
    restore_cancel(restore);
    done(closure, err);
}

/* Bytes beyond the limit are not kept: what has arrived is wrong without them, too. */
static bool arrive(void *closure, const void *bytes, size_t length, bool first)
{
    struct restore *restore = closure;
    if (first) {
        text_clear(&restore->arrived);
    }
    size_t room = restore->limit - restore->arrived.length;
    text_append_bytes(&restore->arrived, bytes, length < room ? length : room);
    return true;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static bool open_file(struct restore *restore, const struct checkpoint_file *file, struct err *err)
{
    user_begin(restore->user);
    restore->file = stage_file_open(restore->folder, file->path, file->executable, err);
    user_end(restore->user);
    return restore->file >= 0;
}

/* Programs look for the newest file. */
static bool close_file(struct restore *restore, const struct checkpoint_file *file, struct err *err)
{
    const struct timespec time = {.tv_sec = file->modified_ms / 1000,
                                  .tv_nsec = file->modified_ms % 1000 * 1000000};
    const struct timespec times[2] = {time, time};
    bool set = futimens(restore->file, times) == 0 || err_errno(err, "cannot set the time of %s", file->path);
    cleanup_close(&restore->file);
    restore->file = -1;
    restore->at++;
    restore->piece = 0;
    return set;
}

static const struct checkpoint_piece *current_piece(const struct restore *restore)
{
    return &restore->manifest.pieces[restore->manifest.files[restore->at].first + restore->piece];
}

/* --- fetching ------------------------------------------------------------------------------------------- */

static void piece_done(void *closure, const struct err *problem)
{
    struct restore *restore = closure;
    const char *path = restore->manifest.files[restore->at].path;
    struct err err;
    restore->download = NULL;
    if (problem != NULL && problem->code == ERR_IO && ++restore->tries < CHECKPOINT_TRIES) {
        fetch(restore);
    } else if (problem != NULL) {
        err_set(&err, ERR_IO, "a piece of %s %.200s", path,
                problem->code == ERR_IO ? "is damaged on the controller" : problem->text);
        end(restore, &err);
    } else if (!stage_file_write(restore->file, restore->arrived.bytes, restore->arrived.length, path,
                                 &err)) {
        end(restore, &err);
    } else {
        restore->tries = 0;
        restore->piece++;
        fetch(restore);
    }
}

/* Begins and ends files up to the next piece; *ret_over: there is none. */
static bool find_piece(struct restore *restore, bool *ret_over, struct err *err)
{
    while (restore->at < restore->manifest.file_count) {
        const struct checkpoint_file *file = &restore->manifest.files[restore->at];
        if (restore->file < 0 && !open_file(restore, file, err)) {
            return false;
        }
        if (restore->piece < file->count) {
            *ret_over = false;
            return true;
        }
        if (!close_file(restore, file, err)) {
            return false;
        }
    }
    *ret_over = true;
    return true;
}

static void fetch(struct restore *restore)
{
    char hex[HASH_HEX + 1];
    struct err err;
    bool over;
    if (!find_piece(restore, &over, &err)) {
        end(restore, &err);
        return;
    }
    if (over) {
        if (restore->manifest.file_count > 0) {
            log_info("checkpoint laid out", "attempt_id=%llu files=%zu bytes=%lld",
                     (unsigned long long)restore->attempt_id, restore->manifest.file_count,
                     (long long)restore->manifest.bytes);
        }
        end(restore, NULL);
        return;
    }
    text_to_hex(current_piece(restore)->hash, HASH_BYTES, hex);
    autofree char *path = xprintf("/v1/agent/checkpoints/pieces?node=%s&epoch=%llu&sha256=%s", restore->node,
                                  (unsigned long long)restore->attempt_id, hex);
    restore->limit = LIMIT_CHECKPOINT_PIECE_BYTES;
    text_clear(&restore->arrived);
    restore->download = download_begin(&(struct download_call){.controller = restore->controller,
                                                               .objects = restore->objects,
                                                               .path = path,
                                                               .hash = hex,
                                                               .arrive = arrive,
                                                               .done = piece_done,
                                                               .closure = restore});
}

static void manifest_done(void *closure, const struct controller_answer *answer)
{
    struct restore *restore = closure;
    struct err err;
    restore->request = NULL;
    if (answer->status != 200) {
        err_set(&err, ERR_IO, "%.300s", answer->problem.text);
        end(restore, &err);
    } else if (!manifest_decode(restore->arrived.bytes != NULL ? restore->arrived.bytes : "",
                                restore->arrived.length, &restore->manifest, &err)) {
        end(restore, &err);
    } else {
        fetch(restore);
    }
}

struct restore *restore_begin(struct controller_client *controller, struct object_client *objects,
                              const char *node, uint64_t attempt_id, const char *folder,
                              const struct user *user, void (*done)(void *closure, const struct err *err),
                              void *closure)
{
    struct restore *restore = xzalloc(sizeof *restore);
    *restore = (struct restore){.controller = controller,
                                .objects = objects,
                                .limit = LIMIT_CHECKPOINT_MANIFEST_BYTES,
                                .node = xstrdup(node),
                                .attempt_id = attempt_id,
                                .folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                                .user = user,
                                .file = -1,
                                .done = done,
                                .closure = closure};
    autofree char *path =
        xprintf("/v1/agent/checkpoints?node=%s&epoch=%llu", node, (unsigned long long)attempt_id);
    restore->request = controller_send(controller, &(struct controller_call){
                                                       .path = path,
                                                       .arrive = arrive,
                                                       .timeout_ms = TRANSFER_TIMEOUT_MS,
                                                       .persistent = true,
                                                       .done = manifest_done,
                                                       .closure = restore,
                                                   });
    return restore;
}
