/* SPDX-License-Identifier: Apache-2.0 */
/* Runs rounds of retention. It finds what is old with a reader of its own, and asks the writer to remove a
 * few rows at a time. After each transaction it leaves the writer alone for several times as long. Output is
 * removed before the row that names it, and a file of a blob after its row, so a round that is cut off
 * anywhere is continued by the next one. The core refuses to remove a live job, and the store a blob that is
 * used. */
#include "daemon/retention/retention.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "daemon/blob/checkpoints/checkpoints.h"
#include "daemon/blob/sample_ring.h"
#include "daemon/objects/objects.h"
#include "daemon/retention/round.h"
#include "daemon/retention/runs.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"

/* --- the writer ----------------------------------------------------------------------------------------- */

/* A request to the writer, for which the round waits. */
struct asked {
    struct writer_request request;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done;
};

static void asked_done(struct writer_request *request)
{
    struct asked *asked = (struct asked *)request; /* its first member */
    pthread_mutex_lock(&asked->mutex);
    asked->done = true;
    pthread_cond_signal(&asked->changed);
    pthread_mutex_unlock(&asked->mutex);
}

static int render_nothing(const struct writer_request *request, const struct step *step, struct text *out)
{
    return 200;
}

static void wait_for(struct asked *asked)
{
    pthread_mutex_lock(&asked->mutex);
    while (!asked->done) {
        pthread_cond_wait(&asked->changed, &asked->mutex);
    }
    pthread_mutex_unlock(&asked->mutex);
}

/* *ret_refused, unless it is NULL: the core has refused, which is then no failure. */
static bool ask(struct round *round, const struct writer_request *wanted, bool *ret_refused)
{
    struct asked asked = {.request = *wanted};
    asked.request.render = render_nothing;
    asked.request.done = asked_done;
    asked.request.arrived_ms = clock_boot_ms();
    asked.request.input.wall_ms = clock_wall_ms();
    pthread_mutex_init(&asked.mutex, NULL);
    pthread_cond_init(&asked.changed, NULL);
    bool asks = writer_ask(round->config->writer, &asked.request);
    if (asks) {
        wait_for(&asked);
    } else {
        err_set(round->err, ERR_UNAVAILABLE, "the writer takes no more requests");
    }
    pthread_cond_destroy(&asked.changed);
    pthread_mutex_destroy(&asked.mutex);
    text_finish(&asked.request.answer);
    bool refused = asks && asked.request.status == 0;
    if (refused) {
        *round->err = asked.request.error;
    }
    if (ret_refused != NULL) {
        *ret_refused = refused;
    }
    round_rest(round, asked.request.took_us + asked.request.commit_us);
    return asks && (!refused || ret_refused != NULL);
}

static bool ask_input(struct round *round, const struct input *input, bool *ret_refused)
{
    return ask(round, &(struct writer_request){.kind = WRITER_INPUT, .input = *input}, ret_refused);
}

static bool ask_changes(struct round *round, const struct change *changes, size_t count)
{
    return count == 0 ||
           ask(round,
               &(struct writer_request){.kind = WRITER_RECORD, .records = changes, .record_count = count},
               NULL);
}

/* --- jobs ----------------------------------------------------------------------------------------------- */

/* The oldest removed jobs, as many as one transaction takes; *ret_count 0: none is left. */
static bool read_removals(const struct round *round, struct removal_row *items, size_t *ret_count)
{
    autorows struct rows rows = reader_removals(round->reader, (int64_t)round->pieces, round->err);
    *ret_count = 0;
    while (rows_removal(&rows, &items[*ret_count])) {
        REMOVAL_ROW(ROW_OWN, items[*ret_count])
        ++*ret_count;
    }
    return !rows.failed;
}

/* Objects go before the files that say that there are some. */
static bool remove_objects(const struct round *round, const char *id, bool kept, int64_t *bytes)
{
    static const enum job_files all[] = {JOB_OUTPUT, JOB_KEPT, JOB_CHECKPOINTS};
    struct objects *objects = round->config->objects;
    for (size_t i = 0; objects != NULL && i < (kept ? sizeof all / sizeof *all : 1); i++) {
        int64_t more;
        if (!objects_remove_job(objects, id, all[i], round->dry, &more, round->err)) {
            return false;
        }
        *bytes += more;
    }
    return true;
}

/* The output of a job, with what its ranks kept and its checkpoints: adds to *bytes. */
static bool remove_files(const struct round *round, const char *id, bool kept, int64_t *bytes)
{
    int64_t output, files = 0, checkpoints = 0;
    if (!remove_objects(round, id, kept, bytes)) {
        return false;
    }
    if (!logs_remove(round->config->logs, id, round->dry, &output, round->err) ||
        (kept &&
         (!logs_remove_kept(round->config->logs, id, round->dry, &files, round->err) ||
          !checkpoints_remove(round->config->checkpoints, id, round->dry, &checkpoints, round->err)))) {
        return false;
    }
    *bytes += output + files + checkpoints;
    return true;
}

/* Their files, then a piece of the rows of each. */
static bool remove_pieces(struct round *round, const struct removal_row *items, size_t count)
{
    struct change pieces[RETENTION_STEP_JOBS];
    for (size_t i = 0; i < count; i++) {
        if (!remove_files(round, items[i].id, true, &round->report->log_bytes)) {
            return false;
        }
        pieces[i] = (struct change){.kind = CHANGE_REMOVAL_PIECE, .removal.job_key = items[i].job_key};
    }
    return ask_changes(round, pieces, count);
}

static bool finish_removals(struct round *round)
{
    struct removal_row items[RETENTION_STEP_JOBS];
    size_t count = 1;
    while (count > 0 && !round_stopped(round)) {
        bool ok = read_removals(round, items, &count) && remove_pieces(round, items, count);
        for (size_t i = 0; i < count; i++) {
            REMOVAL_ROW(ROW_FREE, items[i])
        }
        if (!ok) {
            return false;
        }
        round_choose_pace(round, RETENTION_STEP_JOBS, &round->pieces);
    }
    return true;
}

static bool remove_jobs(struct round *round, const struct old_jobs *old)
{
    int64_t keys[RETENTION_STEP_JOBS];
    size_t count = 0;
    for (size_t i = 0; i < old->count; i++) {
        if (old->items[i].removed) {
            keys[count++] = old->items[i].key;
        }
    }
    round->report->jobs += (int64_t)count;
    const struct input input = {.kind = INPUT_REMOVE, .remove = {.keys = keys, .count = count}};
    return count == 0 || round->dry || (ask_input(round, &input, NULL) && finish_removals(round));
}

/* The same of the tasks of an array. */
static bool remove_files_of_tasks(const struct round *round, int64_t array_key, bool kept, int64_t *bytes)
{
    struct job_filter filter = {.array_key = array_key, .limit = RETENTION_STEP_JOBS};
    for (bool more = true; more && !round_stopped(round);) {
        autorows struct rows rows = reader_jobs(round->reader, &filter, round->err);
        struct job_record task;
        for (more = false; rows_job(&rows, &task); more = true) {
            if (!remove_files(round, task.birth.id, kept, bytes)) {
                return false;
            }
            filter.before_key = task.birth.key;
        }
        if (rows.failed) {
            return false;
        }
    }
    return true;
}

/* Of a job, or of an array with its tasks. What ranks kept stays as long as the job. */
static bool remove_logs(const struct round *round, const struct old_job *job, bool stays, int64_t *ret_bytes)
{
    *ret_bytes = 0;
    if (!remove_files(round, job->id, !stays, ret_bytes) ||
        (job->array && !remove_files_of_tasks(round, job->key, !stays, ret_bytes))) {
        return false;
    }
    round->report->logs += stays && *ret_bytes > 0;
    round->report->log_bytes += *ret_bytes;
    return true;
}

static bool sweep_jobs(struct round *round)
{
    struct old_jobs old = {0};
    while (!old.over && !round_stopped(round)) {
        if (!old_jobs_next(&old, round->reader, &round->rules, round->wall_ms, round->err)) {
            return false;
        }
        for (size_t i = 0; i < old.count; i++) {
            int64_t bytes;
            bool logs = round->dry || !old.items[i].removed; /* those of removed jobs go with the removal */
            if (logs && !remove_logs(round, &old.items[i], !old.items[i].removed, &bytes)) {
                return false;
            }
        }
        if (!remove_jobs(round, &old)) {
            return false;
        }
    }
    return true;
}

/* --- output beyond its share of the disk ---------------------------------------------------------------- */

/* How many bytes of output are too many. */
static bool measure_excess(const struct round *round, int64_t *ret_bytes)
{
    const struct retention_config *config = round->config;
    struct statvfs disk;
    int64_t bytes;
    *ret_bytes = 0;
    if (config->logs_share_percent == 0 || statvfs(config->state_directory, &disk) != 0) {
        return true;
    }
    int64_t most = (int64_t)disk.f_blocks * (int64_t)disk.f_frsize / 100 * config->logs_share_percent;
    int64_t used = (int64_t)(disk.f_blocks - disk.f_bfree) * (int64_t)disk.f_frsize;
    if (used <= most) {
        return true; /* whatever it is that takes it */
    }
    if (!logs_measure(config->logs, config->go_on, config->closure, &bytes, round->err)) {
        return false;
    }
    *ret_bytes = bytes - (round->dry ? round->report->log_bytes : 0) - most;
    return true;
}

/* Removes output of jobs that have ended, the oldest first, until the share is kept. A job that floods the
 * disk while it runs does not cost others what they have not read yet. */
static bool sweep_share(const struct round *round)
{
    const struct retention_rules all = {.ages = {.logs_ms = LIMIT_LOGS_FRESH_MS}};
    struct old_jobs old = {0};
    int64_t excess;
    if (!measure_excess(round, &excess)) {
        return false;
    }
    while (excess > 0 && !old.over && !round_stopped(round)) {
        if (!old_jobs_next(&old, round->reader, &all, round->wall_ms, round->err)) {
            return false;
        }
        for (size_t i = 0; i < old.count && excess > 0; i++) {
            int64_t bytes = 0;
            autofree char *folder = logs_job_folder(round->config->logs, old.items[i].id, false);
            if (!job_folder_is_stored(folder) && !remove_logs(round, &old.items[i], true, &bytes)) {
                return false;
            }
            excess -= bytes;
        }
    }
    return true;
}

/* --- first answers -------------------------------------------------------------------------------------- */

static bool sweep_replies(struct round *round)
{
    const struct change age = {.kind = CHANGE_REPLIES_AGE, .reply.at_ms = round->elapsed_ms};
    int64_t key = 1;
    if (round->dry || (round->elapsed_ms > 0 && !ask_changes(round, &age, 1))) {
        return round->dry;
    }
    while (key != 0 && !round_stopped(round)) {
        if (!reader_old_reply(round->reader, RETENTION_STEP_REPLIES, &key, round->err)) {
            return false;
        }
        const struct change trim = {.kind = CHANGE_REPLIES_TRIM, .reply.key = key};
        if (key != 0 && !ask_changes(round, &trim, 1)) {
            return false;
        }
    }
    return true;
}

/* --- blobs ---------------------------------------------------------------------------------------------- */

/* The age of a file without a row begins before the row goes: if the controller is killed in between, the
 * file still outlives the backups that name it. */
static bool remove_blobs(struct round *round, const struct change *changes, size_t count)
{
    for (size_t i = 0; i < count && !round->dry; i++) {
        blobs_disown(round->config->blobs, changes[i].blob.hash);
        if (round->config->objects != NULL) {
            objects_disown_blob(round->config->objects, changes[i].blob.hash);
        }
    }
    return round->dry || ask_changes(round, changes, count);
}

/* The next blobs; *number is where the walk is, *ret_seen how many there were. */
static bool sweep_some_blobs(struct round *round, int64_t created_ms, int64_t *number, size_t *ret_seen)
{
    struct change changes[RETENTION_STEP_BLOBS];
    size_t count = 0;
    {
        autorows struct rows rows =
            reader_blob_uses(round->reader, *number, RETENTION_STEP_BLOBS, created_ms, round->err);
        struct blob_use use;
        for (*ret_seen = 0; rows_blob_use(&rows, &use); ++*ret_seen) {
            *number = use.number;
            if (use.unused) {
                changes[count] =
                    (struct change){.kind = CHANGE_BLOB_DELETE, .blob = {.created_ms = created_ms}};
                memcpy(changes[count++].blob.hash, use.hash, sizeof use.hash);
                round->report->blobs++;
                round->report->blob_bytes += use.size;
            }
        }
        if (rows.failed) {
            return false;
        }
    }
    return remove_blobs(round, changes, count);
}

static bool has_blob(void *closure, const uint8_t hash[HASH_BYTES], bool *ret_has, struct err *err)
{
    const struct round *round = closure;
    autorows struct rows rows = reader_blob(round->reader, hash, err);
    struct blob_row row;
    *ret_has = rows_blob(&rows, &row);
    return !rows.failed;
}

static bool has_job(void *closure, const char *id, bool *ret_has, struct err *err)
{
    const struct round *round = closure;
    autorows struct rows rows = reader_job(round->reader, id, err);
    struct job_record job;
    *ret_has = rows_job(&rows, &job);
    return !rows.failed;
}

static bool sweep_objects(struct round *round, int64_t before_ms)
{
    const struct objects_rows rows = {.has_blob = has_blob, .has_job = has_job, .closure = round};
    int64_t count;
    return round->config->objects == NULL || round->store_away || round_stopped(round) ||
           objects_sweep(round->config->objects, &rows, before_ms, round->dry, &count, round->err);
}

/* Who has sent a blob that no job of theirs has named counts for as long as the blob stays. */
static bool sweep_uploads(struct round *round, int64_t at_ms)
{
    const struct change trim = {.kind = CHANGE_UPLOADS_TRIM, .upload.at_ms = at_ms};
    while (!round_stopped(round)) {
        struct upload_row oldest;
        {
            autorows struct rows rows = reader_uploads(round->reader, INT64_MIN, 1, round->err);
            if (!rows_upload(&rows, &oldest) || oldest.at_ms > at_ms) {
                return !rows.failed;
            }
        }
        if (!ask_changes(round, &trim, 1)) {
            return false;
        }
    }
    return true;
}

static bool sweep_blobs(struct round *round)
{
    int64_t created_ms = round->wall_ms - RETENTION_BLOB_MS, number = 0, files = 0, bytes = 0;
    size_t seen = RETENTION_STEP_BLOBS;
    if (!round->dry && !sweep_uploads(round, created_ms)) {
        return false;
    }
    while (seen == RETENTION_STEP_BLOBS && !round_stopped(round)) {
        if (!sweep_some_blobs(round, created_ms, &number, &seen)) {
            return false;
        }
    }
    int64_t before_ms = round->wall_ms - round->config->blob_files_ms;
    return round_stopped(round) || (blobs_sweep(round->config->blobs, before_ms / 1000, round->dry, has_blob,
                                                round, &files, &bytes, round->err) &&
                                    sweep_objects(round, before_ms));
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

#define MOST_NODES 64 /* a round; more wait for the next one */

static bool find_nodes(const struct round *round, int64_t heard_ms, char *names[MOST_NODES],
                       size_t *ret_count)
{
    autorows struct rows rows = reader_nodes(round->reader, "", ALL_ROWS, round->err);
    struct node_row row;
    struct node_used used;
    *ret_count = 0;
    while (*ret_count < MOST_NODES && rows_node(&rows, &row, &used)) {
        if (used.gpus == 0 && used.millicpus == 0 && row.heard_ms <= heard_ms) {
            names[(*ret_count)++] = xstrdup(row.name);
        }
    }
    return !rows.failed;
}

/* Nodes that were not heard for long. The core refuses to forget one that still has work, or may come back at
 * any moment. */
static bool sweep_nodes(struct round *round)
{
    char *names[MOST_NODES];
    size_t count;
    if (round->config->nodes_ms == 0) {
        return true;
    }
    int64_t heard_ms = round->wall_ms - round->config->nodes_ms;
    bool ok = find_nodes(round, heard_ms, names, &count);
    for (size_t i = 0; i < count; i++) {
        bool refused = false;
        const struct input input = {
            .kind = INPUT_NODE,
            .node = {
                .name = names[i], .action = NODE_ACTION_FORGET, .by = "retention", .heard_ms = heard_ms}};
        ok = ok && (round->dry || ask_input(round, &input, &refused));
        round->report->nodes += ok && !refused;
        free(names[i]);
    }
    return ok;
}

/* --- use ------------------------------------------------------------------------------------------------ */

static bool sweep_hours(struct round *round)
{
    const struct change trim = {.kind = CHANGE_HOURS_TRIM,
                                .hour.hour_ms = round->wall_ms - round->config->usage_ms};
    bool found = round->config->usage_ms > 0 && !round->dry;
    while (found && !round_stopped(round)) {
        if (!reader_old_hours(round->reader, trim.hour.hour_ms, &found, round->err) ||
            (found && !ask_changes(round, &trim, 1))) {
            return false;
        }
    }
    return true;
}

/* --- deliveries ----------------------------------------------------------------------------------------- */

static bool sweep_deliveries(struct round *round)
{
    const struct change trim = {.kind = CHANGE_DELIVERIES_TRIM,
                                .delivery.created_ms = round->wall_ms - KEEP_DELIVERIES_MS};
    bool found = !round->dry;
    while (found && !round_stopped(round)) {
        if (!reader_old_deliveries(round->reader, trim.delivery.created_ms, &found, round->err) ||
            (found && !ask_changes(round, &trim, 1))) {
            return false;
        }
    }
    return true;
}

/* --- audit ---------------------------------------------------------------------------------------------- */

static bool sweep_audit(struct round *round)
{
    int64_t at_ms = round->config->audit_ms > 0 ? round->wall_ms - round->config->audit_ms : INT64_MIN;
    const struct change trim = {.kind = CHANGE_AUDIT_TRIM,
                                .audit = {.at_ms = at_ms, .seq = LIMIT_AUDIT_ROWS}};
    bool found = !round->dry;
    while (found && !round_stopped(round)) {
        if (!reader_old_audit(round->reader, at_ms, LIMIT_AUDIT_ROWS, &found, round->err) ||
            (found && !ask_changes(round, &trim, 1))) {
            return false;
        }
    }
    return true;
}

/* --- the file of the database --------------------------------------------------------------------------- */

static bool shrink_a_little(struct round *round, struct file_use *use)
{
    const struct change change = {.kind = CHANGE_SHRINK, .pages = (int64_t)round->pages};
    if (!ask_changes(round, &change, 1) || !reader_file_use(round->reader, use, round->err)) {
        return false;
    }
    round_choose_pace(round, RETENTION_STEP_PAGES, &round->pages);
    return true;
}

/* Gives free pages back to the disk while they are a large share. The database of an earlier program may be
 * unable to: then the first try changes nothing. */
static bool shrink(struct round *round)
{
    struct file_use use;
    if (!reader_file_use(round->reader, &use, round->err)) {
        return false;
    }
    for (int64_t before = INT64_MAX; !round->dry && round_is_bloated(use.bytes, use.free_bytes) &&
                                     use.bytes < before && !round_stopped(round);) {
        before = use.bytes;
        if (!shrink_a_little(round, &use)) {
            return false;
        }
        round->report->file_bytes += before - use.bytes;
    }
    return true;
}

/* --- a round -------------------------------------------------------------------------------------------- */

static bool sweep_samples(const struct round *round)
{
    autofree char *folder = xprintf("%s/" SAMPLE_RING_FOLDER, round->config->state_directory);
    return round->dry || sample_ring_sweep(folder, round->wall_ms, round->err);
}

/* What needs no object store goes on without it. */
static void look_for_store(struct round *round)
{
    struct err why;
    round->store_away = round->config->objects != NULL && !objects_are_there(round->config->objects, &why);
    if (round->store_away) {
        log_warning("retention waits", "reason=\"%s\" what=jobs,output,runs", why.text);
    }
}

static bool sweep(struct round *round)
{
    look_for_store(round);
    return sweep_replies(round) && (round->dry || round->store_away || finish_removals(round)) &&
           (round->report->doubtful ||
            ((round->store_away || sweep_jobs(round)) && sweep_share(round) && sweep_blobs(round) &&
             sweep_nodes(round) && sweep_hours(round) && sweep_deliveries(round) && sweep_audit(round) &&
             sweep_samples(round))) &&
           (round->store_away || runs_sweep(round)) && shrink(round);
}

bool retention_run(const struct retention_config *config, bool dry, const struct retention_clock *clock,
                   struct retention_report *ret_report, struct err *err)
{
    *ret_report = (struct retention_report){.doubtful = clock->doubtful};
    err->code = ERR_NONE;
    struct round round = {.config = config,
                          .dry = dry,
                          .wall_ms = clock->wall_ms,
                          .elapsed_ms = clock->elapsed_ms,
                          .pieces = 1,
                          .pages = 1,
                          .report = ret_report,
                          .err = err};
    round.reader = reader_open(config->store_path, err);
    bool ok = round.reader != NULL && retention_rules_read(round.reader, &config->ages, &round.rules, err) &&
              sweep(&round);
    retention_rules_finish(&round.rules);
    reader_close(round.reader);
    return ok;
}
