/* SPDX-License-Identifier: Apache-2.0 */
/* The database behind a small interface: SQLite now. One writer, on the writer's thread, which alone
 * checkpoints; any number of readers, which see committed state only. No SQL exists outside this folder. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/model/change.h"
#include "proto/base/err.h"
#include "proto/limits.h"
#include "proto/wire/views.h"

/* --- the writer ----------------------------------------------------------------------------------------- */

struct reserve_file;
struct store;

/* Opens or makes the database, migrates it in one transaction a version, checks that no page is cut off
 * (and all pages, if store_distrust was the last word on it), syncs its directory, and bumps the incarnation
 * durably. A newer schema is refused untouched, and so is a database
 * that is damaged (ERR_DAMAGED); an older one is copied to backups/before-schema-N.db beside it first. With a
 * reserve file (borrowed) that is released when the disk is full. */
struct store *store_open(const char *path, struct err *err);
struct store *store_open_with(const char *path, struct reserve_file *reserve_file, struct err *err);
/* Moves all of the WAL into the database, unless something has failed. */
void store_close(struct store *store);

/* Its database was found damaged elsewhere, or a commit failed: store_close leaves it as it is, and the next
 * store_open reads all of it first. */
void store_distrust(struct store *store);

uint32_t store_incarnation(const struct store *store);
int64_t store_next_job_key(struct store *store);
/* When this database was put back from a backup, and when that was taken, wall clock; at_ms 0: it was not
 * within LOST_ASKED_MS. */
struct store_restored {
    int64_t at_ms, from_ms;
};
struct store_restored store_restored(const struct store *store);

/* Live rows for the core, in the order that core_load_* wants; rows are borrowed for the time of the call. A
 * visitor that returns false ends the load with its *err. */
struct store_visitor {
    bool (*history)(const struct history_row *row, void *closure, struct err *err);
    bool (*limits)(const struct limits_row *row, void *closure, struct err *err);
    bool (*usage)(const struct usage_row *row, void *closure, struct err *err);
    bool (*node)(const struct node_row *row, void *closure, struct err *err);
    bool (*window)(const struct window_row *row, void *closure, struct err *err);
    bool (*webhook)(const struct webhook_row *row, void *closure, struct err *err);
    bool (*delivery)(const struct delivery_row *row, void *closure, struct err *err); /* pending ones */
    bool (*job)(const struct job_birth *birth, const struct job_life *life, void *closure, struct err *err);
    bool (*array)(const struct array_row *row, void *closure, struct err *err);
    bool (*dependency)(const struct dependency_row *row, void *closure, struct err *err);
    bool (*attempt)(const struct attempt_row *row, void *closure, struct err *err);
    bool (*member)(const struct member_row *row, void *closure, struct err *err);
    void *closure;
};
bool store_load_live(struct store *store, const struct store_visitor *visitor, struct err *err);

/* One transaction: begin, any number of apply and find, commit. After any failure the outcome on disk is
 * unknown and the process must end: the caller answers 503 and exits. */
bool store_begin(struct store *store, struct err *err);
/* The texts of the changes must stay until the commit, but that of a reply. */
bool store_apply(struct store *store, const struct change *changes, size_t count, struct err *err);
bool store_commit(struct store *store, struct err *err);

/* The first answer under this scope, also one of the open transaction. *ret_found false: none. answer is
 * copied, the caller frees it. */
struct stored_reply {
    uint8_t body[32];
    int64_t status;
    char *answer;
    size_t answer_length;
};
bool store_find_reply(struct store *store, const uint8_t scope[32], bool *ret_found,
                      struct stored_reply *ret_reply, struct err *err);

/* Moves the WAL into the database when more than WAL_PASSIVE_BYTES of it wait (passive; WAL_IDLE_BYTES when
 * idle, which says that no input waits), or when the file is over WAL_FORCED_BYTES (forced). Called between
 * transactions. After a failure the process must end, as above. */
bool store_checkpoint(struct store *store, bool idle, struct err *err);

/* --- readers -------------------------------------------------------------------------------------------- */

struct reader;

struct reader *reader_open(const char *path, struct err *err);
void reader_close(struct reader *reader);

/* The rows of one query. They hold a read transaction until they are closed, so they are closed before the
 * thread waits for anything. Strings of a row are borrowed until the next row is read or the rows are
 * closed; the arguments of the query are borrowed as long. A query is not asked again while rows of it are
 * open.
 */
struct rows {
    struct reader *reader;
    struct sqlite3_stmt *statement;
    struct err *err;
    bool with_spec;
    bool failed; /* *err says how: there is no row any more */
};
void rows_close(struct rows *rows);
#define autorows __attribute__((cleanup(rows_close)))

struct job_record {
    union {
        struct job_row row;
        struct {
            struct job_birth birth; /* spec is set by reader_job, as people are shown it, and by
                                       reader_job_by_key, as it was received, only; shown by neither */
            struct job_life life;
        };
    };
    struct array_row array; /* tasks 0: it is none */
};
/* None: no such id. */
struct rows reader_job(struct reader *reader, const char *id, struct err *err);
struct rows reader_job_by_key(struct reader *reader, int64_t key, struct err *err);
/* The next row of each kind of query; false: there is none, or the query has failed. */
bool rows_job(struct rows *rows, struct job_record *ret_job);

struct job_filter {
    const char *owner;     /* NULL: any */
    const char *id_prefix; /* NULL: any */
    const char *name;      /* NULL: any */
    const char *project;   /* NULL: any */
    const char *label;     /* that they have with that value; NULL: any or none */
    const char *label_value;
    const char *node;   /* that had a part of one of their attempts; NULL: any or none */
    int64_t array_key;  /* the tasks of this array; 0: jobs and arrays; tasks only by prefix or node */
    uint32_t states;    /* bit (1 << enum job_state); 0: any */
    int64_t before_key; /* rows with a smaller key: newest first; 0: from the newest */
    int64_t behind_key; /* rows with a greater key; 0: to the oldest */
    int64_t since_ms;   /* created at or after; 0: any */
    int64_t limit;
};
struct rows reader_jobs(struct reader *reader, const struct job_filter *filter, struct err *err);
/* Sets filter->behind_key so that reader_jobs looks at some LIMIT_SCAN_ROWS jobs. *ret_over: no older job
 * fits, so the list need not go on behind that key. */
bool reader_jobs_bound(struct reader *reader, struct job_filter *filter, bool *ret_over, struct err *err);

struct rows reader_events(struct reader *reader, int64_t job_key, int64_t after_seq, int64_t limit,
                          struct err *err);
bool rows_event(struct rows *rows, struct event_row *ret_row);

/* The job's newest event of a kind. */
struct rows reader_newest_event(struct reader *reader, int64_t job_key, enum event_kind kind,
                                struct err *err);

/* A job that another follows, as it is now. */
struct dependency_record {
    struct dependency_row row;
    const char *id;
    enum job_state state;
    bool started; /* its ranks have been running */
};
/* In order of submission. */
struct rows reader_dependencies(struct reader *reader, int64_t job_key, struct err *err);
bool rows_dependency_with_job(struct rows *rows, struct dependency_record *ret_record);

/* Attempts of a job with smaller numbers, newest first; ALL_ATTEMPTS: from the newest. */
#define ALL_ATTEMPTS INT64_MAX
struct rows reader_attempts(struct reader *reader, int64_t job_key, int64_t before, struct err *err);
bool rows_attempt(struct rows *rows, struct attempt_row *ret_row);
struct rows reader_members(struct reader *reader, uint64_t attempt_id, struct err *err);
bool rows_member(struct rows *rows, struct member_row *ret_row);
/* The newest attempt of the job that had a part on the node, with that part. */
struct rows reader_on_node(struct reader *reader, int64_t job_key, const char *node, struct err *err);
bool rows_on_node(struct rows *rows, struct attempt_row *ret_attempt, struct member_row *ret_member);
struct rows reader_ranks(struct reader *reader, uint64_t attempt_id, struct err *err);
bool rows_rank(struct rows *rows, struct rank_row *ret_row);

/* By rank, those above after_rank; after_rank -1: from the first. bytes are those of a pickle that is a row,
 * NULL for one that is a file. */
struct rows reader_results(struct reader *reader, uint64_t attempt_id, int64_t after_rank, int64_t limit,
                           struct err *err);
bool rows_result(struct rows *rows, struct result_row *ret_row, const void **ret_bytes);

/* Whose attempt an attempt id is: for log uploads. */
struct attempt_record {
    char job_id[17];
    int64_t job_key;
    int64_t number;
    enum attempt_state state;
};
bool reader_attempt_record(struct reader *reader, uint64_t attempt_id, bool *ret_found,
                           struct attempt_record *ret_record, struct err *err);

/* What live attempts hold of a node. */
struct node_used {
    int64_t gpus, millicpus, memory_bytes;
};

/* One node, or the next ones by name behind `after`, "" for the first. */
struct rows reader_node(struct reader *reader, const char *name, struct err *err);
struct rows reader_nodes(struct reader *reader, const char *after, int64_t limit, struct err *err);
bool rows_node(struct rows *rows, struct node_row *ret_row, struct node_used *ret_used);
/* The next nodes by name, from this one on, or behind it; what is used is not counted, and 0. */
struct rows reader_nodes_from(struct reader *reader, const char *name, bool with_it, int64_t limit,
                              struct err *err);

/* The GPUs of a node, as its row has its devices, "[]" of one with CPU slots; the caller frees it. NULL:
 * there is no such node, or it could not be read. */
char *reader_node_gpus(struct reader *reader, const char *name);

/* The devices that live attempts hold, a row for each node of each attempt: the next ones behind a row, {0,
 * -1} for the first. Texts are borrowed until the next row. */
struct allocation {
    int64_t job_key, node_rank;
    const char *job_id, *job_name; /* the name may be NULL */
    const char *owner, *project;
    const char *node, *devices; /* "0,1,5" */
    int64_t gpus;               /* how many these are */
    int64_t first_rank, local_ranks;
    int64_t since_ms; /* wall clock */
};
struct rows reader_allocations(struct reader *reader, int64_t job_key, int64_t node_rank, int64_t limit,
                               struct err *err);
bool rows_allocation(struct rows *rows, struct allocation *ret_allocation);

/* Maintenance windows that are not over, by their beginning. */
struct rows reader_windows(struct reader *reader, struct err *err);
bool rows_window(struct rows *rows, struct window_row *ret_row);

/* One token, or the next ones behind the one with the id `after`, "" for the first: oldest first. */
#define ALL_ROWS INT64_MAX
struct rows reader_token(struct reader *reader, const char *id, struct err *err);
struct rows reader_tokens(struct reader *reader, const char *after, int64_t limit, struct err *err);
bool rows_token(struct rows *rows, struct token_row *ret_row);

/* None: no such join token. */
struct rows reader_join(struct reader *reader, const char *id, struct err *err);
bool rows_join(struct rows *rows, struct join_row *ret_row);

/* None: no such blob. bytes are NULL of one that is a file. */
struct rows reader_blob(struct reader *reader, const uint8_t hash[32], struct err *err);
bool rows_blob(struct rows *rows, struct blob_row *ret_row);
/* The same, but none if retention may soon remove it: nothing uses it, and it was sent before created_ms; nor
 * if an owner is given, and neither a job of theirs nor a result of one names it. */
struct rows reader_blob_that_stays(struct reader *reader, const uint8_t hash[32], int64_t created_ms,
                                   const char *owner, struct err *err);
/* The same, but none unless a live job names it. */
struct rows reader_blob_of_live_job(struct reader *reader, const uint8_t hash[32], struct err *err);
/* Whether the spec of one of these jobs names it. */
bool reader_jobs_use(struct reader *reader, const uint8_t hash[32], const int64_t *job_keys, size_t count,
                     bool *ret_use, struct err *err);
/* What was sent after that time and no job of its sender names, oldest first. */
struct rows reader_uploads(struct reader *reader, int64_t after_ms, int64_t limit, struct err *err);
bool rows_upload(struct rows *rows, struct upload_row *ret_row);

/* What was held by whom: of the hours from since_ms (which begins one) to until_ms, and by attempts that are
 * live now. */
struct use_question {
    int64_t since_ms, until_ms;
    int64_t step_ms; /* hours are put together to so many; INT64_MAX: all of them */
    bool by_project, by_owner,
        by_reserved;             /* else these are "" and false: rows that differ in no more are one */
    const char *project, *owner; /* of this alone; NULL: any */
};
struct use_record {
    int64_t gpus;        /* that a live attempt holds since row.hour_ms; 0: the row is a sum of hours */
    struct hour_row row; /* hour_ms is the beginning of the step */
};
struct rows reader_use(struct reader *reader, const struct use_question *question, struct err *err);
bool rows_use(struct rows *rows, struct use_record *ret_record);
/* The name of a job; NULL: it has none, or is not there. The caller frees it. */
bool reader_job_name(struct reader *reader, const char *id, char **ret_name, struct err *err);
/* When the oldest job came that waits for GPUs, wall clock; 0: none waits. */
bool reader_oldest_waiting(struct reader *reader, int64_t *ret_created_ms, struct err *err);
/* Whether there are hours that began at or before this; for retention. */
bool reader_old_hours(struct reader *reader, int64_t hour_ms, bool *ret_found, struct err *err);

/* Of the LIMIT_AUDIT_SCAN rows of the audit below before_seq those of the owner, and with a path that begins
 * so, newest first; NULL: any. */
struct audit_filter {
    const char *owner, *path;
    int64_t before_seq, limit;
};
struct rows reader_audit(struct reader *reader, const struct audit_filter *filter, struct err *err);
bool rows_audit(struct rows *rows, struct audit_row *ret_row);
/* The row as the API shows it, and as its hash is of it, but for the hash. */
struct audit_view store_audit_view(const struct audit_row *row);
/* The last and the first seq that are there; 0: none is. */
bool reader_audit_ends(struct reader *reader, int64_t *ret_last, int64_t *ret_first, struct err *err);
/* Whether there are rows from then or before, or more than `most`, the last one not counted; for retention.
 */
bool reader_old_audit(struct reader *reader, int64_t at_ms, int64_t most, bool *ret_found, struct err *err);

/* --- for retention -------------------------------------------------------------------------------------- */

/* Jobs and arrays, no tasks, with keys above after_key: oldest first. */
struct rows reader_old_jobs(struct reader *reader, int64_t after_key, int64_t limit, struct err *err);

/* Removed jobs with rows left, oldest first. */
struct rows reader_removals(struct reader *reader, int64_t limit, struct err *err);
bool rows_removal(struct rows *rows, struct removal_row *ret_row);

/* The last of the oldest `count` first answers that are forgotten; *ret_key 0: there are none. */
bool reader_old_reply(struct reader *reader, int64_t count, int64_t *ret_key, struct err *err);

/* The file of the database, and how much of it holds nothing. */
struct file_use {
    int64_t bytes, free_bytes;
};
bool reader_file_use(struct reader *reader, struct file_use *ret_use, struct err *err);

/* Blobs with row numbers above after, in their order. */
struct blob_use {
    int64_t number; /* of its row */
    uint8_t hash[32];
    int64_t size;
    bool file;
    bool unused; /* no job and no result names it, and it is not younger than created_ms */
};
struct rows reader_blob_uses(struct reader *reader, int64_t after, int64_t limit, int64_t created_ms,
                             struct err *err);
bool rows_blob_use(struct rows *rows, struct blob_use *ret_use);

/* --- secrets -------------------------------------------------------------------------------------------- */

/* One secret; those of a person or a project by name; those of all. owner or project is "". */
struct rows reader_secret(struct reader *reader, const char *owner, const char *project, const char *name,
                          struct err *err);
struct rows reader_secrets(struct reader *reader, const char *owner, const char *project, struct err *err);
struct rows reader_all_secrets(struct reader *reader, struct err *err);
bool rows_secret(struct rows *rows, struct secret_row *ret_row);
/* How many there are, and of one person or project. */
bool reader_secret_counts(struct reader *reader, const char *owner, const char *project, int64_t *ret_all,
                          int64_t *ret_own, struct err *err);

/* --- schedules ------------------------------------------------------------------------------------------ */

/* One schedule, or the next ones by id behind `after`, "" for the first; owner NULL: of all people. */
struct rows reader_schedule(struct reader *reader, const char *id, struct err *err);
struct rows reader_schedules(struct reader *reader, const char *owner, const char *after, int64_t limit,
                             struct err *err);
/* Those that are not paused, by the time of their next run. */
struct rows reader_due_schedules(struct reader *reader, int64_t limit, struct err *err);
bool rows_schedule(struct rows *rows, struct schedule_row *ret_row);

/* How many there are, of one person, and of that name among these. */
struct schedule_counts {
    int64_t all, own, named;
};
bool reader_schedule_counts(struct reader *reader, const char *owner, const char *name,
                            struct schedule_counts *ret_counts, struct err *err);

/* --- webhooks ------------------------------------------------------------------------------------------- */

/* One webhook, or the next ones by id behind `after`, "" for the first; owner NULL: of all people. */
struct rows reader_webhook(struct reader *reader, const char *id, struct err *err);
struct rows reader_webhooks(struct reader *reader, const char *owner, const char *after, int64_t limit,
                            struct err *err);
bool rows_webhook(struct rows *rows, struct webhook_row *ret_row);

/* A delivery with what it tells of; both NULL: of a test, or of a job that is gone. */
struct delivery_record {
    struct delivery_row row;
    const char *job_id;
    const char *kind; /* of the event */
};
struct rows reader_delivery(struct reader *reader, int64_t key, struct err *err);
/* Of a webhook, newest first: those with smaller keys; state NULL: in any state. */
struct rows reader_deliveries(struct reader *reader, const char *webhook, int64_t before, const char *state,
                              int64_t limit, struct err *err);
bool rows_delivery(struct rows *rows, struct delivery_record *ret_record);

/* Of each enabled webhook with pending deliveries the one that is to be tried first, by the time of that: the
 * events of a job go in their order, and tests wait for nothing. */
struct rows reader_next_deliveries(struct reader *reader, struct err *err);
bool rows_next_delivery(struct rows *rows, struct delivery_row *ret_row, struct webhook_row *ret_webhook);
/* Whether deliveries are there from then or before that do not wait; for retention. */
bool reader_old_deliveries(struct reader *reader, int64_t created_ms, bool *ret_found, struct err *err);

/* The limits of all accounts. */
struct rows reader_limits(struct reader *reader, struct err *err);
bool rows_limits(struct rows *rows, struct limits_row *ret_row);

/* Attempts that this database, put back from a backup, does not know; those with a key above after_key. */
struct rows reader_lost(struct reader *reader, int64_t after_key, int64_t limit, struct err *err);
bool rows_lost(struct rows *rows, int64_t *ret_key, struct lost_row *ret_row);

#endif
