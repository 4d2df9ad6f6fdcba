/* SPDX-License-Identifier: Apache-2.0 */
/* Takes checkpoints in steps: list the folder, cut its files into pieces and hash these, see that no file has
 * changed, tell the controller the manifest, send the pieces that it lacks, and tell it again. The answer
 * without a missing piece is the commit. A file that changes meanwhile begins it anew, so a torn checkpoint
 * is never committed. Files that have not changed since the last checkpoint are not read again. The state is
 * the folder's: an agent that was killed begins anew, and sends no piece twice. */
#include "agent/output/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/output/chunker.h"
#include "agent/output/foreign_folder.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/limits_agent.h"
#include "proto/wire/files/checkpoint.h"

#define READ_BYTES  (64 * KIB)
#define NS_PER_MS   1000000
#define PATIENCE_MS (6 * REQUEST_TIMEOUT_MS)

/* What a folder had at one moment. File i of the list is file i of the manifest. */
struct snapshot {
    struct foreign_list list;
    struct checkpoint_manifest manifest;
    int64_t listed_ns;             /* wall clock */
    uint8_t signature[HASH_BYTES]; /* of the list */
};

enum phase { PHASE_REST, PHASE_READS, PHASE_TELLS, PHASE_SENDS };

struct target {
    bool set;
    bool held; /* only say that the folder holds what was taken as this */
    enum checkpoint_kind kind;
    int64_t number;
};

struct checkpoint {
    struct checkpoints *checkpoints;
    uint64_t attempt_id;
    int folder; /* -1: there is none */
    bool gang;
    struct target next;
    enum phase phase;
    struct target now;
    int tries;
    struct snapshot snapshot, taken;
    size_t reading;    /* file that is being read ... */
    int file;          /* ... -1: not yet opened ... */
    int64_t offset;    /* ... from here */
    struct text bytes; /* of the request */
    int64_t *missing;
    size_t missing_count, sent;
    struct controller_request *request;
    struct target last;          /* what was taken last */
    uint8_t seen[HASH_BYTES];    /* signature at the last look */
    uint8_t refused[HASH_BYTES]; /* ... and of what the controller did not take */
    struct loop_timer look, end;
    bool ending;
    void (*ended)(void *closure);
    void *closure;
    struct checkpoint *prev, *next_in_list;
};

struct checkpoints {
    char *node;
    int64_t still_ms;
    struct controller_client *controller;
    struct loop *loop;
    struct checkpoint *list;
    uint8_t *buffer; /* for one piece */
};

static void go_on(struct checkpoint *checkpoint);
static void tell(struct checkpoint *checkpoint, enum checkpoint_gap gap);
static void send_piece(struct checkpoint *checkpoint);

/* --- snapshots ------------------------------------------------------------------------------------------ */

static void snapshot_finish(struct snapshot *snapshot)
{
    manifest_finish(&snapshot->manifest);
    foreign_list_finish(&snapshot->list);
}

static void sign(struct snapshot *snapshot)
{
    struct hash *hash = hash_create();
    hash_update(hash, &snapshot->list.gap, sizeof snapshot->list.gap);
    for (size_t i = 0; i < snapshot->list.count; i++) {
        const struct foreign_file *file = &snapshot->list.files[i];
        const int64_t numbers[] = {file->size, file->modified_ns, file->changed_ns, (int64_t)file->inode};
        hash_update(hash, file->path, strlen(file->path) + 1);
        hash_update(hash, numbers, sizeof numbers);
    }
    hash_finish(hash, snapshot->signature);
}

static void snapshot_list(const struct checkpoint *checkpoint, struct snapshot *ret_snapshot)
{
    *ret_snapshot = (struct snapshot){.listed_ns = clock_wall_ms() * NS_PER_MS};
    foreign_list_read(checkpoint->folder, &ret_snapshot->list);
    ret_snapshot->manifest.left_files = ret_snapshot->list.left_files;
    sign(ret_snapshot);
}

static bool is_unchanged(const struct foreign_file *a, const struct foreign_file *b)
{
    return a->size == b->size && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns &&
           a->inode == b->inode;
}

static int by_path(const void *left, const void *right)
{
    return strcmp(((const struct foreign_file *)left)->path, ((const struct foreign_file *)right)->path);
}

/* The file as it was taken before. One that had just changed then may have changed again within the same tick
 * of the clock. */
static const struct checkpoint_file *find_taken(const struct snapshot *taken, const struct foreign_file *file)
{
    const struct foreign_file *found =
        taken->list.count > 0 ? bsearch(file, taken->list.files, taken->list.count, sizeof *file, by_path)
                              : NULL;
    bool same = found != NULL && is_unchanged(found, file) &&
                found->changed_ns < taken->listed_ns - CHECKPOINT_TICK_MS * (int64_t)NS_PER_MS;
    return same ? &taken->manifest.files[found - taken->list.files] : NULL;
}

/* --- the end of a taking -------------------------------------------------------------------------------- */

static void clear(struct checkpoint *checkpoint)
{
    controller_cancel(give(checkpoint->request));
    cleanup_close(&checkpoint->file);
    checkpoint->file = -1;
    text_clear(&checkpoint->bytes);
    free(give(checkpoint->missing));
    snapshot_finish(&checkpoint->snapshot);
    checkpoint->phase = PHASE_REST;
}

static void give_up(struct checkpoint *checkpoint, const char *why)
{
    log_warning("checkpoint not taken", "attempt_id=%llu kind=%s number=%lld problem=\"%s\"",
                (unsigned long long)checkpoint->attempt_id, checkpoint_kind_text(checkpoint->now.kind),
                (long long)checkpoint->now.number, why);
    clear(checkpoint);
    go_on(checkpoint);
}

static void commit(struct checkpoint *checkpoint)
{
    log_info("checkpoint taken", "attempt_id=%llu kind=%s number=%lld files=%zu bytes=%lld",
             (unsigned long long)checkpoint->attempt_id, checkpoint_kind_text(checkpoint->now.kind),
             (long long)checkpoint->now.number, checkpoint->snapshot.manifest.file_count,
             (long long)checkpoint->snapshot.manifest.bytes);
    checkpoint->last = checkpoint->now;
    snapshot_finish(&checkpoint->taken);
    checkpoint->taken = checkpoint->snapshot;
    checkpoint->snapshot = (struct snapshot){0};
    clear(checkpoint);
    go_on(checkpoint);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool is_empty(const struct snapshot *snapshot)
{
    return snapshot->list.count == 0 && snapshot->list.gap == GAP_NONE;
}

static void begin(struct checkpoint *checkpoint)
{
    snapshot_list(checkpoint, &checkpoint->snapshot);
    checkpoint->reading = 0;
    checkpoint->phase = PHASE_READS;
}

/* A file has changed. */
static void begin_anew(struct checkpoint *checkpoint)
{
    if (++checkpoint->tries == CHECKPOINT_TRIES) {
        tell(checkpoint, GAP_UNREAD);
        return;
    }
    clear(checkpoint);
    begin(checkpoint);
}

/* Opens the file if it is as it was listed. */
static int open_listed(const struct checkpoint *checkpoint, size_t index)
{
    struct foreign_file found;
    const struct foreign_file *listed = &checkpoint->snapshot.list.files[index];
    autoclose int file = foreign_open(checkpoint->folder, listed->path, &found);
    return file >= 0 && is_unchanged(&found, listed) ? give_fd(&file) : -1;
}

static void copy_pieces(struct checkpoint *checkpoint, const struct checkpoint_file *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        manifest_add_piece(&checkpoint->snapshot.manifest,
                           &checkpoint->taken.manifest.pieces[taken->first + i]);
    }
}

static bool open_next(struct checkpoint *checkpoint)
{
    const struct foreign_file *file = &checkpoint->snapshot.list.files[checkpoint->reading];
    const struct checkpoint_file *taken = find_taken(&checkpoint->taken, file);
    manifest_add_file(&checkpoint->snapshot.manifest,
                      &(struct checkpoint_file){.path = file->path,
                                                .modified_ms = file->modified_ns / NS_PER_MS,
                                                .executable = file->executable});
    checkpoint->offset = 0;
    if (taken != NULL) {
        copy_pieces(checkpoint, taken);
        checkpoint->reading++;
        return true;
    }
    checkpoint->file = open_listed(checkpoint, checkpoint->reading);
    return checkpoint->file >= 0;
}

/* Adds the next piece of the file that is being read. */
static bool read_piece(struct checkpoint *checkpoint)
{
    const struct foreign_file *file = &checkpoint->snapshot.list.files[checkpoint->reading];
    uint8_t *buffer = checkpoint->checkpoints->buffer;
    struct chunker chunker = {0};
    struct checkpoint_piece piece;
    bool cut = false;
    while (!cut && checkpoint->offset + (int64_t)chunker.length < file->size) {
        size_t room = LIMIT_CHECKPOINT_PIECE_BYTES - chunker.length;
        ssize_t got = pread(checkpoint->file, buffer + chunker.length, room < READ_BYTES ? room : READ_BYTES,
                            (off_t)checkpoint->offset + (off_t)chunker.length);
        if (got <= 0) {
            return false;
        }
        cut = chunker_go(&chunker, buffer + chunker.length, (size_t)got);
    }
    if (chunker.length > 0) {
        hash_bytes(buffer, chunker.length, piece.hash);
        piece.size = (uint32_t)chunker.length;
        manifest_add_piece(&checkpoint->snapshot.manifest, &piece);
        checkpoint->offset += (int64_t)chunker.length;
    }
    if (checkpoint->offset >= file->size) {
        cleanup_close(&checkpoint->file);
        checkpoint->file = -1;
        checkpoint->reading++;
    }
    return checkpoint->offset <= file->size;
}

static bool is_as_listed(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->snapshot.list.count; i++) {
        autoclose int file = open_listed(checkpoint, i);
        if (file < 0) {
            return false;
        }
    }
    return true;
}

static void read_some(struct checkpoint *checkpoint)
{
    const enum checkpoint_gap gap = checkpoint->snapshot.list.gap;
    bool good = false;
    if (gap == GAP_MANY || gap == GAP_DEEP) {
        tell(checkpoint, gap);
        return;
    }
    if (gap == GAP_NONE && checkpoint->reading == checkpoint->snapshot.list.count) {
        good = is_as_listed(checkpoint);
        if (good) {
            manifest_encode(&checkpoint->snapshot.manifest, &checkpoint->bytes);
            tell(checkpoint, GAP_NONE);
            return;
        }
    } else if (gap == GAP_NONE) {
        good = checkpoint->file >= 0 ? read_piece(checkpoint) : open_next(checkpoint);
    }
    if (!good) {
        begin_anew(checkpoint);
    }
}

/* One after the other, so that a large folder holds up no other. */
bool checkpoints_step(struct checkpoints *checkpoints)
{
    struct checkpoint *checkpoint;
    DL_FOREACH2(checkpoints->list, checkpoint, next_in_list)
    {
        if (checkpoint->phase == PHASE_READS) {
            DL_DELETE2(checkpoints->list, checkpoint, prev, next_in_list);
            DL_APPEND2(checkpoints->list, checkpoint, prev, next_in_list);
            read_some(checkpoint);
            return true;
        }
    }
    return false;
}

/* --- sending -------------------------------------------------------------------------------------------- */

static bool take_missing(struct checkpoint *checkpoint, const json_t *json)
{
    const json_t *list = json_object_get(json, "missing");
    size_t count = json_array_size(list);
    const size_t pieces = checkpoint->snapshot.manifest.piece_count;
    if (!json_is_array(list) || count > LIMIT_CHECKPOINT_MISSING) {
        return false;
    }
    free(checkpoint->missing);
    checkpoint->missing = xzalloc((count + 1) * sizeof *checkpoint->missing);
    checkpoint->missing_count = count;
    checkpoint->sent = 0;
    for (size_t i = 0; i < count; i++) {
        checkpoint->missing[i] = json_integer_value(json_array_get(list, i));
        if (checkpoint->missing[i] < 0 || checkpoint->missing[i] >= (int64_t)pieces) {
            return false;
        }
    }
    return true;
}

static void told(void *closure, const struct controller_answer *answer)
{
    struct checkpoint *checkpoint = closure;
    checkpoint->request = NULL;
    if (answer->status != 200) {
        if (answer->status == 413) {
            memcpy(checkpoint->refused, checkpoint->snapshot.signature, HASH_BYTES);
        }
        give_up(checkpoint, answer->problem.text);
    } else if (!take_missing(checkpoint, answer->json)) {
        give_up(checkpoint, "the controller's answer is unclear");
    } else if (checkpoint->missing_count == 0) {
        commit(checkpoint);
    } else {
        checkpoint->phase = PHASE_SENDS;
        send_piece(checkpoint);
    }
}

static void post(struct checkpoint *checkpoint, const char *path, const struct text *bytes,
                 int64_t patience_ms, void (*done)(void *closure, const struct controller_answer *answer))
{
    checkpoint->request = controller_send(checkpoint->checkpoints->controller,
                                          &(struct controller_call){
                                              .path = path,
                                              .bytes = bytes->bytes != NULL ? bytes->bytes : "",
                                              .length = bytes->length,
                                              .timeout_ms = patience_ms,
                                              .persistent = patience_ms == PATIENCE_MS,
                                              .done = done,
                                              .closure = checkpoint,
                                          });
}

static char *telling_path(const struct checkpoint *checkpoint, enum checkpoint_gap gap)
{
    return xprintf("/v1/agent/checkpoints?node=%s&epoch=%llu&kind=%s&number=%lld&gap=%s",
                   checkpoint->checkpoints->node, (unsigned long long)checkpoint->attempt_id,
                   checkpoint_kind_text(checkpoint->now.kind), (long long)checkpoint->now.number,
                   checkpoint_gap_text(gap));
}

/* With a gap: only that nothing was taken. */
static void tell(struct checkpoint *checkpoint, enum checkpoint_gap gap)
{
    autofree char *path = telling_path(checkpoint, gap);
    if (gap != GAP_NONE) {
        text_clear(&checkpoint->bytes);
    }
    checkpoint->phase = PHASE_TELLS;
    post(checkpoint, path, &checkpoint->bytes, PATIENCE_MS, told);
}

static void told_held(void *closure, const struct controller_answer *answer)
{
    struct checkpoint *checkpoint = closure;
    checkpoint->request = NULL;
    if (answer->status == 404) {
        snapshot_finish(&checkpoint->taken); /* it is taken anew */
        checkpoint->taken = (struct snapshot){0};
    }
    clear(checkpoint);
    go_on(checkpoint);
}

/* What comes late is not true any more. */
static void tell_held(struct checkpoint *checkpoint)
{
    autofree char *path = telling_path(checkpoint, GAP_NONE);
    const int64_t still_ms = checkpoint->checkpoints->still_ms;
    checkpoint->phase = PHASE_TELLS;
    post(checkpoint, path, &checkpoint->bytes, still_ms < REQUEST_TIMEOUT_MS ? still_ms : REQUEST_TIMEOUT_MS,
         told_held);
}

static void piece_sent(void *closure, const struct controller_answer *answer)
{
    struct checkpoint *checkpoint = closure;
    checkpoint->request = NULL;
    if (answer->status != 200) {
        give_up(checkpoint, answer->problem.text);
        return;
    }
    checkpoint->sent++;
    send_piece(checkpoint);
}

/* The file of a piece, and the place of the piece in it. */
static size_t find_file(const struct checkpoint_manifest *manifest, size_t piece, int64_t *ret_offset)
{
    size_t index = 0;
    while (piece >= manifest->files[index].first + manifest->files[index].count) {
        index++;
    }
    *ret_offset = 0;
    for (size_t i = manifest->files[index].first; i < piece; i++) {
        *ret_offset += manifest->pieces[i].size;
    }
    return index;
}

/* Reads the piece again; false if it has changed. */
static bool read_again(struct checkpoint *checkpoint, size_t index, struct text *out)
{
    const struct checkpoint_piece *piece = &checkpoint->snapshot.manifest.pieces[index];
    uint8_t hash[HASH_BYTES];
    int64_t offset;
    size_t at = find_file(&checkpoint->snapshot.manifest, index, &offset);
    autoclose int file = open_listed(checkpoint, at);
    size_t done = 0;
    text_clear(out);
    while (file >= 0 && done < piece->size) {
        ssize_t got = pread(file, checkpoint->checkpoints->buffer + done, piece->size - done,
                            (off_t)offset + (off_t)done);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    hash_bytes(checkpoint->checkpoints->buffer, done, hash);
    text_append_bytes(out, checkpoint->checkpoints->buffer, done);
    return memcmp(hash, piece->hash, HASH_BYTES) == 0;
}

static void send_piece(struct checkpoint *checkpoint)
{
    char hex[HASH_HEX + 1];
    text_clear(&checkpoint->bytes);
    if (checkpoint->sent == checkpoint->missing_count) {
        manifest_encode(&checkpoint->snapshot.manifest, &checkpoint->bytes);
        tell(checkpoint, GAP_NONE);
        return;
    }
    size_t index = (size_t)checkpoint->missing[checkpoint->sent];
    if (!read_again(checkpoint, index, &checkpoint->bytes)) {
        begin_anew(checkpoint);
        return;
    }
    text_to_hex(checkpoint->snapshot.manifest.pieces[index].hash, HASH_BYTES, hex);
    autofree char *path =
        xprintf("/v1/agent/checkpoints/pieces?node=%s&epoch=%llu&sha256=%s", checkpoint->checkpoints->node,
                (unsigned long long)checkpoint->attempt_id, hex);
    post(checkpoint, path, &checkpoint->bytes, PATIENCE_MS, piece_sent);
}

/* --- what is taken when --------------------------------------------------------------------------------- */

static void want(struct checkpoint *checkpoint, const struct target *target)
{
    checkpoint->next = *target;
    checkpoint->next.set = true;
    if (checkpoint->phase == PHASE_REST) {
        go_on(checkpoint);
    }
}

static void over(struct checkpoint *checkpoint)
{
    loop_disarm(checkpoint->checkpoints->loop, &checkpoint->end);
    checkpoint->ending = false;
    checkpoint->ended(checkpoint->closure);
}

/* Begins what is wanted next. */
static void go_on(struct checkpoint *checkpoint)
{
    if (checkpoint->next.set) {
        checkpoint->now = checkpoint->next;
        checkpoint->next.set = false;
        checkpoint->tries = 0;
        if (checkpoint->now.held) {
            tell_held(checkpoint);
        } else {
            begin(checkpoint);
        }
    } else if (checkpoint->ending) {
        over(checkpoint);
    }
}

/* In a gang, the number of a part that is empty stays while the folder does. */
static void hold_empty(struct checkpoint *checkpoint)
{
    if (checkpoint->last.kind != CHECKPOINT_EMPTY) {
        checkpoint->last = (struct target){.kind = CHECKPOINT_EMPTY, .held = true, .number = clock_wall_ms()};
        snapshot_finish(&checkpoint->taken);
        checkpoint->taken = (struct snapshot){0};
    }
    want(checkpoint, &checkpoint->last);
}

/* The folder is taken when two looks find the same in it. A gang's node says at each look that the folder
 * still holds what was taken, or nothing: then the controller knows which parts of the nodes there were at
 * one moment. */
static void look_due(void *closure)
{
    struct checkpoint *checkpoint = closure;
    struct snapshot found;
    loop_arm(checkpoint->checkpoints->loop, &checkpoint->look,
             clock_boot_ms() + checkpoint->checkpoints->still_ms);
    if (checkpoint->phase != PHASE_REST) {
        return;
    }
    snapshot_list(checkpoint, &found);
    bool still = memcmp(found.signature, checkpoint->seen, HASH_BYTES) == 0;
    bool taken = memcmp(found.signature, checkpoint->taken.signature, HASH_BYTES) == 0;
    bool refused = memcmp(found.signature, checkpoint->refused, HASH_BYTES) == 0;
    memcpy(checkpoint->seen, found.signature, HASH_BYTES);
    if (is_empty(&found)) {
        if (checkpoint->gang) {
            hold_empty(checkpoint);
        }
    } else if (taken && checkpoint->gang && checkpoint->last.kind == CHECKPOINT_STILL) {
        want(checkpoint,
             &(struct target){.kind = CHECKPOINT_STILL, .held = true, .number = checkpoint->last.number});
    } else if (still && !taken && !refused) {
        want(checkpoint, &(struct target){.kind = CHECKPOINT_STILL, .number = clock_wall_ms()});
    }
    snapshot_finish(&found);
}

void checkpoint_acknowledged(struct checkpoint *checkpoint, int64_t step)
{
    if (!checkpoint->ending) {
        want(checkpoint, &(struct target){.kind = CHECKPOINT_STEP, .number = step});
    }
}

/* --- the end of an attempt ------------------------------------------------------------------------------ */

/* A rank that a signal has ended may have been writing. */
static bool was_killed(const struct record *record, int64_t *ret_ended_ms)
{
    bool killed = false;
    *ret_ended_ms = 0;
    for (size_t i = 0; i < record->rank_count; i++) {
        killed = killed || record->ranks[i].signal != 0;
        *ret_ended_ms = record->ranks[i].at_ms > *ret_ended_ms ? record->ranks[i].at_ms : *ret_ended_ms;
    }
    return killed;
}

static bool is_whole(const struct checkpoint *checkpoint, const struct snapshot *found,
                     const struct record *record)
{
    int64_t ended_ms, changed_ms = 0;
    if (!was_killed(record, &ended_ms)) {
        return true;
    }
    for (size_t i = 0; i < found->list.count; i++) {
        int64_t file_ms = found->list.files[i].changed_ns / NS_PER_MS;
        changed_ms = file_ms > changed_ms ? file_ms : changed_ms;
    }
    return changed_ms <= record->checkpoint_ms || changed_ms + checkpoint->checkpoints->still_ms <= ended_ms;
}

static void end_due(void *closure)
{
    struct checkpoint *checkpoint = closure;
    if (checkpoint->phase != PHASE_REST) {
        give_up(checkpoint, "the attempt has ended, and it takes too long");
    }
}

void checkpoint_end(struct checkpoint *checkpoint, const struct record *record)
{
    struct snapshot found;
    snapshot_list(checkpoint, &found);
    loop_disarm(checkpoint->checkpoints->loop, &checkpoint->look);
    bool taken = memcmp(found.signature, checkpoint->taken.signature, HASH_BYTES) == 0;
    bool wanted = checkpoint->gang || (!is_empty(&found) && !taken);
    checkpoint->ending = true;
    if (wanted && is_whole(checkpoint, &found, record)) {
        checkpoint->next = (struct target){.set = true, .kind = CHECKPOINT_END};
    }
    snapshot_finish(&found);
    loop_arm(checkpoint->checkpoints->loop, &checkpoint->end, clock_boot_ms() + CHECKPOINT_END_MS);
    if (checkpoint->phase == PHASE_REST) {
        go_on(checkpoint);
    }
}

void checkpoint_cut(struct checkpoint *checkpoint)
{
    checkpoint->next.set = false;
    if (checkpoint->ending) {
        clear(checkpoint);
        over(checkpoint);
    }
}

/* --- life ----------------------------------------------------------------------------------------------- */

struct checkpoints *checkpoints_create(const char *node, int64_t still_ms,
                                       struct controller_client *controller, struct loop *loop)
{
    struct checkpoints *checkpoints = xzalloc(sizeof *checkpoints);
    *checkpoints = (struct checkpoints){.node = xstrdup(node),
                                        .still_ms = still_ms,
                                        .controller = controller,
                                        .loop = loop,
                                        .buffer = xalloc(LIMIT_CHECKPOINT_PIECE_BYTES)};
    return checkpoints;
}

void checkpoints_destroy(struct checkpoints *checkpoints)
{
    if (checkpoints != NULL) {
        free(checkpoints->buffer);
        free(checkpoints->node);
        free(checkpoints);
    }
}

struct checkpoint *checkpoint_create(struct checkpoints *checkpoints, uint64_t attempt_id, const char *folder,
                                     void (*ended)(void *closure), void *closure)
{
    struct checkpoint *checkpoint = xzalloc(sizeof *checkpoint);
    checkpoint->checkpoints = checkpoints;
    checkpoint->attempt_id = attempt_id;
    checkpoint->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    checkpoint->file = -1;
    checkpoint->last.kind = CHECKPOINT_KIND_COUNT;
    checkpoint->ended = ended;
    checkpoint->closure = closure;
    loop_set(checkpoints->loop, &checkpoint->look, look_due, checkpoint);
    loop_set(checkpoints->loop, &checkpoint->end, end_due, checkpoint);
    loop_arm(checkpoints->loop, &checkpoint->look, clock_boot_ms() + checkpoints->still_ms);
    DL_APPEND2(checkpoints->list, checkpoint, prev, next_in_list);
    return checkpoint;
}

void checkpoint_destroy(struct checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return;
    }
    clear(checkpoint);
    loop_disarm(checkpoint->checkpoints->loop, &checkpoint->look);
    loop_disarm(checkpoint->checkpoints->loop, &checkpoint->end);
    snapshot_finish(&checkpoint->taken);
    text_finish(&checkpoint->bytes);
    cleanup_close(&checkpoint->folder);
    DL_DELETE2(checkpoint->checkpoints->list, checkpoint, prev, next_in_list);
    free(checkpoint);
}

void checkpoint_of_gang(struct checkpoint *checkpoint)
{
    checkpoint->gang = true;
}
