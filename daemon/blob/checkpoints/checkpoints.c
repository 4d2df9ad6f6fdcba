/* SPDX-License-Identifier: Apache-2.0 */
/* Stores checkpoints in STATE/checkpoints/JOB: pieces/HASH, and for each part of a checkpoint a manifest
 * SINCE.SERIAL.ATTEMPT.NODES.NODE-RANK.KIND.NUMBER. Serial numbers grow with each word of the job's nodes. A
 * manifest is written when its pieces are on disk, so a power cut leaves no manifest without its pieces.
 * parts.c decides which parts make a checkpoint. */
#include "daemon/blob/checkpoints/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/blob/checkpoints/parts.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/limits.h"
#include "proto/limits_controller.h"

#define PIECES  "pieces"
#define PROBLEM "problem"

struct checkpoints {
    char *folder;
    int64_t limit;
    pthread_mutex_t mutex; /* held while a job's pieces and manifests change, and while its pieces are
                              exchanged */
};

struct checkpoints *checkpoints_open(const char *folder, int64_t limit, struct err *err)
{
    if (!file_make_directories(folder, 0700, err)) {
        return NULL;
    }
    struct checkpoints *checkpoints = xzalloc(sizeof *checkpoints);
    *checkpoints = (struct checkpoints){.folder = xstrdup(folder), .limit = limit};
    pthread_mutex_init(&checkpoints->mutex, NULL);
    return checkpoints;
}

void checkpoints_close(struct checkpoints *checkpoints)
{
    if (checkpoints != NULL) {
        pthread_mutex_destroy(&checkpoints->mutex);
        free(checkpoints->folder);
        free(checkpoints);
    }
}

static char *path_of(const struct checkpoints *checkpoints, const char *job_id, const char *name)
{
    return xprintf("%s/%s/%s", checkpoints->folder, job_id, name);
}

static char *piece_path(const struct checkpoints *checkpoints, const char *job_id,
                        const uint8_t hash[HASH_BYTES])
{
    char hex[HASH_HEX + 1];
    text_to_hex(hash, HASH_BYTES, hex);
    return xprintf("%s/%s/" PIECES "/%s", checkpoints->folder, job_id, hex);
}

/* --- for daemon/objects --------------------------------------------------------------------------------- */

const char *checkpoints_folder(const struct checkpoints *checkpoints)
{
    return checkpoints->folder;
}

char *checkpoints_pieces_folder(const struct checkpoints *checkpoints, const char *job_id)
{
    return path_of(checkpoints, job_id, PIECES);
}

bool checkpoints_replace(struct checkpoints *checkpoints, const char *job_id, const char *to,
                         const struct job_folder_extent *extent, struct err *err)
{
    autofree char *folder = checkpoints_pieces_folder(checkpoints, job_id);
    return job_folder_replace(&checkpoints->mutex, folder, to, extent, err);
}

static bool refuse_away(const struct checkpoints *checkpoints, const char *job_id, struct err *err)
{
    autofree char *pieces = checkpoints_pieces_folder(checkpoints, job_id);
    return !job_folder_is_away(pieces) ||
           err_set(err, ERR_UNAVAILABLE, "the checkpoints of job %s are in the object store", job_id);
}

/* What changes the job's files comes between these two. */
static bool begin(struct checkpoints *checkpoints, const char *job_id, struct err *err)
{
    pthread_mutex_lock(&checkpoints->mutex);
    if (refuse_away(checkpoints, job_id, err)) {
        return true;
    }
    pthread_mutex_unlock(&checkpoints->mutex);
    return false;
}

static bool end(struct checkpoints *checkpoints, bool ok)
{
    pthread_mutex_unlock(&checkpoints->mutex);
    return ok;
}

/* --- what stays ----------------------------------------------------------------------------------------- */

static bool read_parts(const struct checkpoints *checkpoints, const char *job_id, struct parts *ret_parts,
                       struct err *err)
{
    autofree char *folder = xprintf("%s/%s", checkpoints->folder, job_id);
    return parts_read(folder, ret_parts, err);
}

static bool read_manifest(const struct checkpoints *checkpoints, const char *job_id, const char *name,
                          struct checkpoint_manifest *ret_manifest, struct err *err)
{
    autofree char *path = path_of(checkpoints, job_id, name);
    autofree char *bytes = NULL;
    size_t length;
    return file_read(path, LIMIT_CHECKPOINT_MANIFEST_BYTES, &bytes, &length, err) &&
           manifest_decode(bytes, length, ret_manifest, err);
}

static int by_hash(const void *left, const void *right)
{
    return memcmp(left, right, HASH_BYTES);
}

static bool is_old(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_mtim.tv_sec + CHECKPOINT_PIECE_STAY_S < time(NULL);
}

/* Young pieces are left alone: a manifest that names them may be about to come. */
static bool sweep_pieces(const struct checkpoints *checkpoints, const char *job_id,
                         const struct checkpoint_manifest *used, struct err *err)
{
    autofree char *folder = path_of(checkpoints, job_id, PIECES);
    autonames struct file_names names = {0};
    if (!file_list(folder, &names, err)) {
        return false;
    }
    for (size_t i = 0; i < names.count; i++) {
        uint8_t hash[HASH_BYTES];
        autofree char *path = xprintf("%s/%s", folder, names.items[i]);
        bool named = text_from_hex(names.items[i], hash, sizeof hash) && used->piece_count > 0 &&
                     bsearch(hash, used->pieces, used->piece_count, sizeof *used->pieces, by_hash) != NULL;
        if (!named && !job_folder_is_mark(names.items[i]) && is_old(path)) {
            unlink(path);
        }
    }
    return true;
}

/* Removes manifests first: a power cut leaves pieces without a manifest, never the other way. */
static bool sweep(const struct checkpoints *checkpoints, const char *job_id, const struct parts *parts,
                  struct err *err)
{
    struct checkpoint_manifest used = {0};
    bool ok = true, removed = false;
    for (size_t i = 0; i < parts->count && ok; i++) {
        const struct part_entry *entry = &parts->items[i];
        struct checkpoint_manifest manifest = {0};
        autofree char *path = path_of(checkpoints, job_id, entry->name);
        if (!entry->keep) {
            removed = unlink(path) == 0 || removed;
            continue;
        }
        ok = read_manifest(checkpoints, job_id, entry->name, &manifest, err);
        for (size_t j = 0; j < manifest.piece_count; j++) {
            XGROW(used.pieces, used.piece_count, used.piece_room, 16);
            used.pieces[used.piece_count++] = manifest.pieces[j];
        }
        manifest_finish(&manifest);
    }
    autofree char *folder = xprintf("%s/%s", checkpoints->folder, job_id);
    if (ok && removed && file_sync_folder(folder, err)) {
        if (used.piece_count > 0) {
            qsort(used.pieces, used.piece_count, sizeof *used.pieces, by_hash);
        }
        ok = sweep_pieces(checkpoints, job_id, &used, err);
    }
    manifest_finish(&used);
    return ok;
}

/* --- taking --------------------------------------------------------------------------------------------- */

static bool make_folders(const struct checkpoints *checkpoints, const char *job_id, struct err *err)
{
    autofree char *job = xprintf("%s/%s", checkpoints->folder, job_id);
    autofree char *pieces = path_of(checkpoints, job_id, PIECES);
    return access(pieces, F_OK) == 0 ||
           (file_make_directories(pieces, 0700, err) && file_sync_folder(job, err) &&
            file_sync_folder(checkpoints->folder, err));
}

static bool note_problem(const struct checkpoints *checkpoints, const char *job_id, struct err *err)
{
    autofree char *path = path_of(checkpoints, job_id, PROBLEM);
    struct err ignored;
    return make_folders(checkpoints, job_id, &ignored) &&
           file_replace(path, err->text, strlen(err->text), 0600, &ignored);
}

static bool check_size(const struct checkpoints *checkpoints, const char *job_id,
                       const struct checkpoint_part *part, const struct checkpoint_manifest *manifest,
                       struct err *err)
{
    if (manifest->bytes <= checkpoints->limit) {
        return true;
    }
    err_set(err, ERR_TOO_LARGE,
            "$GPUCTL_CHECKPOINT_DIR of attempt %lld has %.1f GiB on node rank %lld, more than the %.1f GiB "
            "of gpuctld --checkpoint-limit; the checkpoint before it stays",
            (long long)part->attempt, (double)manifest->bytes / (double)GIB, (long long)part->node_rank,
            (double)checkpoints->limit / (double)GIB);
    note_problem(checkpoints, job_id, err);
    return false;
}

bool checkpoints_refuse(const struct checkpoints *checkpoints, const char *job_id,
                        const struct checkpoint_part *part, enum checkpoint_gap gap, struct err *err)
{
    err_set(err, ERR_TOO_LARGE,
            "$GPUCTL_CHECKPOINT_DIR of attempt %lld %s on node rank %lld; the checkpoint before it stays",
            (long long)part->attempt, checkpoint_gap_meaning(gap), (long long)part->node_rank);
    note_problem(checkpoints, job_id, err);
    return false;
}

/* The parts of a checkpoint have to fit into one manifest, or nobody could lay it out. */
static bool check_parts(const struct checkpoints *checkpoints, const char *job_id, const struct parts *parts,
                        const struct checkpoint_part *part, size_t length, struct err *err)
{
    size_t bytes = length;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *entry = &parts->items[i];
        autofree char *path = path_of(checkpoints, job_id, entry->name);
        struct stat status;
        if (part_is_of(&entry->part, part) && entry->part.node_rank != part->node_rank &&
            lstat(path, &status) == 0) {
            bytes += (size_t)status.st_size;
        }
    }
    if (bytes <= LIMIT_CHECKPOINT_MANIFEST_BYTES) {
        return true;
    }
    err_set(err, ERR_TOO_LARGE,
            "the nodes of attempt %lld have more in $GPUCTL_CHECKPOINT_DIR than one checkpoint may list, "
            "some 230 GB; the checkpoint before it stays",
            (long long)part->attempt);
    note_problem(checkpoints, job_id, err);
    return false;
}

static void find_missing(const struct checkpoints *checkpoints, const char *job_id,
                         const struct checkpoint_manifest *manifest, int64_t **ret_missing, size_t *ret_count)
{
    *ret_missing = xzalloc(LIMIT_CHECKPOINT_MISSING * sizeof **ret_missing);
    *ret_count = 0;
    for (size_t i = 0; i < manifest->piece_count && *ret_count < LIMIT_CHECKPOINT_MISSING; i++) {
        autofree char *path = piece_path(checkpoints, job_id, manifest->pieces[i].hash);
        struct stat status;
        if (lstat(path, &status) != 0 || status.st_size != (off_t)manifest->pieces[i].size) {
            (*ret_missing)[(*ret_count)++] = (int64_t)i;
        }
    }
}

static char *part_path(const struct checkpoints *checkpoints, const char *job_id,
                       const struct checkpoint_part *part, int64_t since, int64_t serial)
{
    autofree char *name =
        xprintf("%lld.%lld.%lld.%lld.%lld.%s.%lld", (long long)since, (long long)serial,
                (long long)part->attempt, (long long)part->nodes, (long long)part->node_rank,
                checkpoint_kind_text(part->kind), (long long)part->number);
    return path_of(checkpoints, job_id, name);
}

static bool write_part(const struct checkpoints *checkpoints, const char *job_id,
                       const struct checkpoint_part *part, int64_t serial, const void *manifest,
                       size_t length, struct err *err)
{
    autofree char *pieces = path_of(checkpoints, job_id, PIECES);
    autofree char *path = part_path(checkpoints, job_id, part, 0, serial);
    return file_sync_folder(pieces, err) && file_replace(path, manifest, length, 0600, err);
}

/* A later manifest of the same part takes the place of this one. */
static void drop_earlier(const struct checkpoints *checkpoints, const char *job_id, const struct parts *parts,
                         const struct checkpoint_part *part)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *entry = &parts->items[i];
        if (part_is_of(&entry->part, part) && entry->part.node_rank == part->node_rank) {
            autofree char *path = path_of(checkpoints, job_id, entry->name);
            unlink(path);
        }
    }
}

static int64_t last_moment(const struct parts *parts)
{
    const struct part_entry *whole = parts_whole(parts);
    return whole != NULL ? part_moment(whole) : 0;
}

static int64_t last_serial(const struct parts *parts)
{
    int64_t serial = 0;
    for (size_t i = 0; i < parts->count; i++) {
        serial = parts->items[i].serial > serial ? parts->items[i].serial : serial;
    }
    return serial;
}

/* before: the moment of the last complete checkpoint before. A newer one has no problem. */
static bool clean_up(const struct checkpoints *checkpoints, const char *job_id, int64_t before,
                     struct err *err)
{
    autofree char *problem = path_of(checkpoints, job_id, PROBLEM);
    struct parts parts;
    bool ok = read_parts(checkpoints, job_id, &parts, err);
    if (ok) {
        if (last_moment(&parts) != before) {
            unlink(problem);
        }
        parts_choose(&parts);
        ok = sweep(checkpoints, job_id, &parts, err);
    }
    parts_finish(&parts);
    return ok;
}

static bool keep_part(const struct checkpoints *checkpoints, const char *job_id,
                      const struct checkpoint_part *part, const void *manifest, size_t length,
                      struct err *err)
{
    struct parts parts;
    if (!make_folders(checkpoints, job_id, err) || !read_parts(checkpoints, job_id, &parts, err)) {
        return false;
    }
    const int64_t before = last_moment(&parts);
    bool ok = check_parts(checkpoints, job_id, &parts, part, length, err) &&
              write_part(checkpoints, job_id, part, last_serial(&parts) + 1, manifest, length, err);
    if (ok) {
        drop_earlier(checkpoints, job_id, &parts, part);
    }
    parts_finish(&parts);
    return ok && clean_up(checkpoints, job_id, before, err);
}

static bool take(const struct checkpoints *checkpoints, const char *job_id,
                 const struct checkpoint_part *part, const void *manifest, size_t length,
                 int64_t **ret_missing, size_t *ret_count, struct err *err)
{
    struct checkpoint_manifest decoded = {0};
    bool ok = manifest_decode(manifest, length, &decoded, err) &&
              check_size(checkpoints, job_id, part, &decoded, err);
    if (ok) {
        find_missing(checkpoints, job_id, &decoded, ret_missing, ret_count);
    }
    manifest_finish(&decoded);
    return ok && (*ret_count > 0 || keep_part(checkpoints, job_id, part, manifest, length, err));
}

bool checkpoints_take(struct checkpoints *checkpoints, const char *job_id, const struct checkpoint_part *part,
                      const void *manifest, size_t length, int64_t **ret_missing, size_t *ret_count,
                      struct err *err)
{
    *ret_missing = NULL;
    *ret_count = 0;
    return begin(checkpoints, job_id, err) &&
           end(checkpoints, take(checkpoints, job_id, part, manifest, length, ret_missing, ret_count, err));
}

/* --- folders that are still ----------------------------------------------------------------------------- */

static const struct part_entry *find_part(const struct parts *parts, const struct checkpoint_part *part)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct part_entry *entry = &parts->items[i];
        if (part_is_of(&entry->part, part) && entry->part.node_rank == part->node_rank) {
            return entry;
        }
    }
    return NULL;
}

/* A power cut may undo the new name: then the node says it again. */
static bool prolong(const struct checkpoints *checkpoints, const char *job_id, const struct part_entry *entry,
                    int64_t serial, struct err *err)
{
    autofree char *old = path_of(checkpoints, job_id, entry->name);
    autofree char *new =
        part_path(checkpoints, job_id, &entry->part, entry->since > 0 ? entry->since : serial, serial);
    return rename(old, new) == 0 || err_errno(err, "cannot rename %s", old);
}

static bool begin_empty(const struct checkpoints *checkpoints, const char *job_id,
                        const struct checkpoint_part *part, int64_t serial, struct err *err)
{
    autotext struct text manifest = {0};
    autofree char *path = part_path(checkpoints, job_id, part, serial, serial);
    manifest_encode(&(struct checkpoint_manifest){0}, &manifest);
    return file_replace(path, manifest.bytes, manifest.length, 0600, err);
}

static bool hold(const struct checkpoints *checkpoints, const char *job_id,
                 const struct checkpoint_part *part, struct err *err)
{
    struct parts parts;
    if (!make_folders(checkpoints, job_id, err) || !read_parts(checkpoints, job_id, &parts, err)) {
        return false;
    }
    const int64_t before = last_moment(&parts), serial = last_serial(&parts) + 1;
    const struct part_entry *found = find_part(&parts, part);
    bool ok = found != NULL ? prolong(checkpoints, job_id, found, serial, err)
              : part->kind == CHECKPOINT_EMPTY
                  ? begin_empty(checkpoints, job_id, part, serial, err)
                  : err_set(err, ERR_NOT_FOUND, "job %s has no such part of a checkpoint", job_id);
    parts_finish(&parts);
    return ok && clean_up(checkpoints, job_id, before, err);
}

bool checkpoints_hold(struct checkpoints *checkpoints, const char *job_id, const struct checkpoint_part *part,
                      struct err *err)
{
    return begin(checkpoints, job_id, err) && end(checkpoints, hold(checkpoints, job_id, part, err));
}

/* --- pieces --------------------------------------------------------------------------------------------- */

bool checkpoints_put_piece(struct checkpoints *checkpoints, const char *job_id,
                           const uint8_t hash[HASH_BYTES], const void *bytes, size_t length, struct err *err)
{
    uint8_t found[HASH_BYTES];
    autofree char *path = piece_path(checkpoints, job_id, hash);
    hash_bytes(bytes, length, found);
    if (memcmp(found, hash, HASH_BYTES) != 0) {
        return err_field(err, ERR_FIELD, "sha256", NULL, "the piece has another content");
    }
    return begin(checkpoints, job_id, err) &&
           end(checkpoints,
               make_folders(checkpoints, job_id, err) && file_replace(path, bytes, length, 0600, err));
}

int checkpoints_open_piece(const struct checkpoints *checkpoints, const char *job_id,
                           const uint8_t hash[HASH_BYTES], int64_t *ret_size, struct err *err)
{
    autofree char *path = piece_path(checkpoints, job_id, hash);
    autoclose int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        if (errno != ENOENT) {
            err_errno(err, "cannot open %s", path);
        } else if (refuse_away(checkpoints, job_id, err)) {
            err_set(err, ERR_NOT_FOUND, "job %s has no such piece of a checkpoint", job_id);
        }
        return -1;
    }
    *ret_size = status.st_size;
    return give_fd(&file);
}

/* --- reading -------------------------------------------------------------------------------------------- */

void checkpoint_found_finish(struct checkpoint_found *found)
{
    manifest_finish(&found->manifest);
}

/* Adds a part's files to those that were found, which give way if it is the asked node's. */
static bool add_part(const struct checkpoints *checkpoints, const char *job_id,
                     const struct part_entry *entry, bool first, struct checkpoint_found *found,
                     struct err *err)
{
    struct checkpoint_manifest part, joined;
    if (!read_manifest(checkpoints, job_id, entry->name, &part, err)) {
        return false;
    }
    manifest_join(first ? &part : &found->manifest, first ? &found->manifest : &part, &joined);
    struct text bytes = {0};
    manifest_encode(&joined, &bytes);
    manifest_finish(&joined);
    manifest_finish(&part);
    manifest_finish(&found->manifest);
    bool read = manifest_decode(bytes.bytes, bytes.length, &found->manifest, err);
    text_finish(&bytes);
    return read;
}

/* last is the checkpoint's part with which it became complete. */
static bool read_whole(const struct checkpoints *checkpoints, const char *job_id, const struct parts *parts,
                       const struct part_entry *last, int64_t node_rank, struct checkpoint_found *found,
                       struct err *err)
{
    const int64_t serial = parts_newest_serial(parts, &last->part);
    bool ok = true;
    for (int64_t i = 0; i < last->part.nodes && ok; i++) {
        ok = add_part(checkpoints, job_id, parts_of_node(parts, last, serial, i), i == node_rank, found, err);
    }
    return ok;
}

bool checkpoints_last(const struct checkpoints *checkpoints, const char *job_id, int64_t node_rank,
                      struct checkpoint_found *ret_found, struct err *err)
{
    struct parts parts;
    struct stat status = {0};
    *ret_found = (struct checkpoint_found){0};
    bool ok = read_parts(checkpoints, job_id, &parts, err);
    const struct part_entry *whole = ok ? parts_whole(&parts) : NULL;
    if (whole != NULL) {
        autofree char *path = path_of(checkpoints, job_id, whole->name);
        bool seen = lstat(path, &status) == 0;
        ret_found->found = true;
        ret_found->attempt = whole->part.attempt;
        ret_found->kind = whole->part.kind;
        ret_found->number = whole->part.number;
        ret_found->taken_ms =
            seen ? (int64_t)status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000 : 0;
        ok = read_whole(checkpoints, job_id, &parts, whole, node_rank, ret_found, err);
    }
    parts_finish(&parts);
    return ok;
}

bool checkpoints_has(const struct checkpoints *checkpoints, const char *job_id)
{
    struct parts parts;
    struct err ignored;
    bool has = read_parts(checkpoints, job_id, &parts, &ignored) && parts_whole(&parts) != NULL;
    parts_finish(&parts);
    return has;
}

char *checkpoints_problem(const struct checkpoints *checkpoints, const char *job_id)
{
    autofree char *path = path_of(checkpoints, job_id, PROBLEM);
    char *text = NULL;
    return file_read(path, LIMIT_CHECKPOINT_PROBLEM, &text, NULL, NULL) ? text : NULL;
}

/* --- removal -------------------------------------------------------------------------------------------- */

bool checkpoints_remove(const struct checkpoints *checkpoints, const char *job_id, bool dry,
                        int64_t *ret_bytes, struct err *err)
{
    autofree char *pieces = path_of(checkpoints, job_id, PIECES);
    autofree char *folder = xprintf("%s/%s", checkpoints->folder, job_id);
    *ret_bytes = 0;
    return file_measure(pieces, ret_bytes, err) && (dry || file_remove_tree(folder, err));
}
