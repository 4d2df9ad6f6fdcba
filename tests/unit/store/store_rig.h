/* SPDX-License-Identifier: Apache-2.0 */
/* A store under test in a folder of its own, rows to fill it with, and rows as text: what was written and
 * what was read are the same when their texts are. Whatever goes wrong fails the test. */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include <check.h>

#include "daemon/store/store.h"
#include "proto/base/text/text.h"
#include "tests/unit/store/each_row.h"

struct rig {
    char folder[64];
    char path[96]; /* of the database */
    struct store *store;
    struct reader *reader;
    struct err err;
};
extern struct rig rig;

/* Fixtures: a fresh database, a writer and a reader on it. */
void rig_begin(void);
void rig_end(void);

void rig_reopen(void); /* closes and opens both */
void rig_close(void);  /* closes both */

/* Changes the closed database behind its back, as another version of ours would: with sums. The log is moved
 * into it. */
void rig_meddle(const char *sql);

/* One transaction. */
void rig_write(const struct change *changes, size_t count);
void rig_write_one(struct change change);

/* Changes whose fields all differ from each other; a test sets those that it is about. */
struct change job_insert(int64_t key); /* QUEUED; the id is rig_id(key) */
struct change job_update(int64_t key, enum job_state state);
struct change attempt_insert(uint64_t attempt_id, int64_t job_key, int64_t number); /* STARTED */
struct change member_insert(uint64_t attempt_id, int64_t node_rank, const char *node, const char *devices);
struct change node_put(const char *name); /* READY, with four GPUs: A10 0 and 1, H100 2 and 3 */
struct change reply_insert(uint8_t scope, const char *answer); /* the scope is 32 such bytes */

/* An id of its own for each key below RIG_KEYS: "job", three letters, ten "a". */
enum { RIG_KEYS = 8192 };
const char *rig_id(int64_t key);

/* Rows as text, one line each. The visitors take a struct text as closure. */
void print_job(struct text *out, const struct job_birth *birth, const struct job_life *life);
void visit_one_job(const struct job_record *job, void *closure);
bool visit_job(const struct job_record *job, void *closure);
bool visit_job_key(const struct job_record *job, void *closure); /* the key and a space only */
bool visit_event(const struct event_row *row, void *closure);
bool visit_attempt(const struct attempt_row *row, void *closure);
bool visit_member(const struct member_row *row, void *closure);
bool visit_rank(const struct rank_row *row, void *closure);
bool visit_result(const struct result_row *row, const void *bytes, void *closure);
bool visit_node(const struct node_row *row, const struct node_used *used, void *closure);
bool visit_token(const struct token_row *row, void *closure);
void visit_blob(const struct blob_row *row, void *closure);

#endif
