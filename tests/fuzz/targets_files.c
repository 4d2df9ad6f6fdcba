/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller reads of files beside its database, which a crash or a disk may have damaged: indices
 * of logs, rings of samples, manifests of backups; what nodes say of files that ranks kept; and lists of
 * objects that servers of S3 send to nodes. */
#include <fcntl.h>
#include <string.h>

#include "daemon/backup/backup.h"
#include "daemon/blob/log_file.h"
#include "daemon/blob/log_index.h"
#include "daemon/blob/logs.h"
#include "daemon/blob/sample_ring.h"
#include "daemon/blob/worker.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "proto/wire/files/checkpoint.h"
#include "proto/wire/files/kept_files.h"
#include "tests/fuzz/fuzz.h"

/* --- indices of logs ------------------------------------------------------------------------------------ */

#define JOB_ID    "abcdefghijklmnop"
#define ATTEMPT   1
#define MOST_READ 2000 /* pieces: no index of an input has as many records */

static const char output[] = "one line\nanother line\nand the rest of a line that goes on for a while";
static const char metrics[] = "{\"name\":\"loss\",\"value\":1}\n{\"name\":\"loss\",\"value\":2}\n";

/* The streams of two ranks; only the index is foreign. */
static struct logs *logs(void)
{
    static struct logs *opened;
    static struct worker *worker;
    if (opened == NULL) {
        struct err err = {0};
        autofree char *folder = xprintf("%s/logs", fuzz_folder());
        worker = worker_open(&err);
        opened = logs_open(folder, folder, MIB, worker, &err);
        FUZZ_MUST(worker != NULL && opened != NULL);
        for (int64_t rank = 0; rank < 2; rank++) {
            const struct log_name names[] = {{JOB_ID, ATTEMPT, rank, STREAM_STDOUT},
                                             {JOB_ID, ATTEMPT, rank, STREAM_METRICS}};
            int64_t received, durable;
            FUZZ_MUST(
                logs_append(opened, &names[0], 0, output, sizeof output - 1, &received, &durable, &err));
            FUZZ_MUST(
                logs_append(opened, &names[1], 0, metrics, sizeof metrics - 1, &received, &durable, &err));
        }
    }
    return opened;
}

/* Reads on from there to the end, and returns the id of the last piece. */
static bool follow(enum stream stream, const char *after, char ret_last[LOG_ID_BYTES])
{
    struct err err = {0};
    struct log_piece piece;
    bool found = true, any = false;
    struct log_reader *reader = log_reader_open(logs(), JOB_ID, ATTEMPT, -1, stream, after, &err);
    if (reader == NULL) {
        FUZZ_REFUSED(err);
        return false;
    }
    for (int left = MOST_READ; found; left--) {
        FUZZ_MUST(left > 0);
        if (!log_reader_next(reader, &found, &piece, &err)) {
            FUZZ_REFUSED(err);
            break;
        }
        if (found) {
            FUZZ_MUST(piece.offset >= 0 && piece.rank >= 0);
            FUZZ_MUST(piece.length == 0 || memchr(piece.bytes, 0xff, piece.length) == NULL);
            log_piece_id(&piece, piece.length, ret_last);
            any = true;
        }
    }
    log_reader_close(reader);
    return any;
}

static void lay(const char *path, const uint8_t *bytes, size_t size)
{
    autoclose int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_MUST(file >= 0 && file_write_all(file, bytes, size));
}

/* Bytes of an index. */
bool fuzz_log_index(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    char last[LOG_ID_BYTES] = "", again[LOG_ID_BYTES];
    autofree char *path = log_index_path(logs(), JOB_ID, ATTEMPT);
    lay(path, bytes, size);
    bool any = follow(STREAM_COUNT, NULL, last);
    if (any) {
        follow(STREAM_COUNT, last, again); /* which was read, so it leads somewhere */
    }
    any = follow(STREAM_METRICS, NULL, last) || any;
    FUZZ_MUST(log_index_repair(path, log_channel(0, STREAM_STDOUT), 8, &err));
    FUZZ_MUST(log_index_repair(path, log_channel(1, STREAM_METRICS), 0, &err));
    follow(STREAM_COUNT, NULL, last);
    return any;
}

/* --- rings of samples ----------------------------------------------------------------------------------- */

#define RING_GPUS 2
#define RING_MS   (1000LL * SAMPLE_RING_STEP_MS)

/* A whole ring of two GPUs with three records, made once. */
static struct text *ring(void)
{
    static struct text whole;
    if (whole.length == 0) {
        static const struct ring_gpu gpus[RING_GPUS] = {{50, 60, 300, 1000}, {0, 30, 60, 10}};
        struct err err;
        bool anew;
        char *bytes;
        size_t length;
        for (int64_t i = 0; i < 3; i++) {
            const struct ring_record record = {.at_ms = RING_MS + i * SAMPLE_RING_STEP_MS,
                                               .cpu_percent = 12.5};
            FUZZ_MUST(sample_ring_put(fuzz_folder(), "node", &record, gpus, RING_GPUS, &anew, &err));
        }
        autofree char *path = xprintf("%s/node", fuzz_folder());
        FUZZ_MUST(file_read(path, 1 << 24, &bytes, &length, &err));
        text_append_bytes(&whole, bytes, length);
        free(bytes);
    }
    return &whole;
}

/* Edits of a whole ring: a length of three bytes that it is cut to, if that is less; then a place of two
 * bytes in the header and the slots that are in use, and a byte to put there, as often as they come. */
bool fuzz_sample_ring(const uint8_t *bytes, size_t size)
{
    static const struct ring_gpu gpu = {1, 2, 3, 4};
    const struct text *whole = ring();
    const size_t first = 1000 % SAMPLE_RING_SLOTS * (24 + RING_GPUS * sizeof gpu);
    struct err err = {0};
    struct ring_span span;
    bool anew;
    if (size < 3) {
        return false;
    }
    autofree char *damaged = xalloc(whole->length);
    memcpy(damaged, whole->bytes, whole->length);
    size_t length = (size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16;
    for (size_t at = 3; at + 3 <= size; at += 3) {
        size_t place = ((size_t)bytes[at] | (size_t)bytes[at + 1] << 8) % 512;
        place = place < 24 ? place : first + place;
        damaged[place] = (char)bytes[at + 2];
    }
    fuzz_file("node", (const uint8_t *)damaged, length < whole->length ? length : whole->length);
    FUZZ_MUST(
        sample_ring_read(fuzz_folder(), "node", RING_MS, RING_MS + 10 * SAMPLE_RING_STEP_MS, &span, &err));
    FUZZ_MUST(span.count <= 3);
    size_t count = span.count;
    for (size_t i = 0; i < span.count; i++) {
        FUZZ_MUST(span.gpu_count == RING_GPUS && span.records[i].at_ms >= RING_MS);
    }
    ring_span_finish(&span);
    const struct ring_record record = {.at_ms = RING_MS, .cpu_percent = 1};
    FUZZ_MUST(sample_ring_put(fuzz_folder(), "node", &record, &gpu, 1, &anew, &err) && (anew || length == 0));
    return count > 0;
}

/* --- files that ranks kept --------------------------------------------------------------------------------
 */

/* The start of a stream, which ends where its head says. */
bool fuzz_kept_files(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct kept_head head;
    autofree struct kept_file *files = NULL;
    if (size < KEPT_HEAD_BYTES) {
        return false;
    }
    if (!kept_head_decode((const char *)bytes, &head, &err) ||
        head.index_bytes > (int64_t)(size - KEPT_HEAD_BYTES)) {
        return false;
    }
    autofree char *index = xzalloc((size_t)head.index_bytes + 1);
    memcpy(index, bytes + KEPT_HEAD_BYTES, (size_t)head.index_bytes);
    if (!kept_index_decode(index, &head, &files, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    int64_t offset = KEPT_HEAD_BYTES + head.index_bytes;
    for (int64_t i = 0; i < head.count; i++) {
        FUZZ_MUST(kept_path_is_good(files[i].path) && files[i].path[0] != '/');
        FUZZ_MUST(files[i].size >= 0 && files[i].offset == offset);
        FUZZ_MUST(i == 0 || strcmp(files[i - 1].path, files[i].path) < 0);
        offset += files[i].size;
    }
    FUZZ_MUST(offset == head.bytes);
    return true;
}

/* --- backups -------------------------------------------------------------------------------------------- */

bool fuzz_manifest(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct backup backup;
    fuzz_file(BACKUP_MANIFEST, bytes, size);
    bool taken = backup_read(fuzz_folder(), &backup, &err);
    FUZZ_MUST(taken ? backup.bytes >= 0 && backup.took_ms >= 0 : err.text[0] != '\0');
    err = (struct err){0};
    FUZZ_MUST(!backup_verify(fuzz_folder(), &err) && err.text[0] != '\0'); /* none of its files is there */
    return taken;
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */

/* A manifest that is taken has no path that leads out of the folder, and is written as it was read. */
bool fuzz_checkpoint(const uint8_t *bytes, size_t size)
{
    struct checkpoint_manifest manifest, joined;
    autotext struct text again = {0};
    struct err err = {0};
    if (!manifest_decode(bytes, size, &manifest, &err)) {
        FUZZ_MUST(err.code == ERR_MALFORMED);
        return false;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < manifest.file_count; i++) {
        FUZZ_MUST(kept_path_is_good(manifest.files[i].path) && manifest.files[i].path[0] != '/');
        FUZZ_MUST(manifest.files[i].first + manifest.files[i].count <= manifest.piece_count);
        sum += manifest.files[i].size;
    }
    FUZZ_MUST(sum == manifest.bytes);
    manifest_join(&manifest, &manifest, &joined);
    joined.left_files = manifest.left_files;
    manifest_encode(&joined, &again);
    manifest_finish(&joined);
    manifest_finish(&manifest);
    FUZZ_MUST(manifest_decode(again.bytes, again.length, &manifest, &err) && manifest.bytes == sum);
    manifest_finish(&manifest);
    return true;
}
