/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of change, from store_apply to the reader that shows it. */
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/limits_controller.h"
#include "tests/unit/store/store_rig.h"
#include "tests/unit/store/store_suites.h"

static void job_by_id(const char *id, struct text *out)
{
    bool found;
    ck_assert_msg(one_job(reader_job(rig.reader, id, &rig.err), visit_one_job, out, &found), "%s",
                  rig.err.text);
    ck_assert(found);
}

START_TEST(a_job_reads_back_as_it_was_written)
{
    struct change job = job_insert(42);
    rig_write(&job, 1);
    autotext struct text written = {0};
    autotext struct text by_id = {0};
    autotext struct text by_key = {0};
    print_job(&written, &job.job.birth, &job.job.life);
    job_by_id(rig_id(42), &by_id);
    ck_assert_str_eq(by_id.bytes, written.bytes);
    bool found;
    ck_assert(one_job(reader_job_by_key(rig.reader, 42, &rig.err), visit_one_job, &by_key, &found));
    ck_assert(found);
    ck_assert_str_eq(by_key.bytes, written.bytes);
}
END_TEST

START_TEST(a_job_without_its_optional_fields_reads_back_without_them)
{
    struct change job = job_insert(1);
    job.job.birth.name = job.job.birth.gpu_type = NULL;
    job.job.life.pool = job.job.life.failed_node = job.job.life.reason = NULL;
    rig_write(&job, 1);
    autotext struct text written = {0};
    autotext struct text read = {0};
    print_job(&written, &job.job.birth, &job.job.life);
    job_by_id(rig_id(1), &read);
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

static void take_spec(const struct job_record *job, void *closure)
{
    text_append_bytes(closure, job->birth.spec, job->birth.spec_length);
}

START_TEST(people_are_shown_a_spec_and_orders_get_it_as_it_was_received)
{
    struct change job = job_insert(42);
    job.job.birth.shown = "{\"gpus\": 2, \"large\": 9}";
    rig_write(&job, 1);
    autotext struct text shown = {0};
    autotext struct text whole = {0};
    bool found;
    ck_assert(one_job(reader_job(rig.reader, rig_id(42), &rig.err), take_spec, &shown, &found));
    ck_assert(one_job(reader_job_by_key(rig.reader, 42, &rig.err), take_spec, &whole, &found));
    ck_assert_str_eq(shown.bytes, job.job.birth.shown);
    ck_assert_str_eq(whole.bytes, job.job.birth.spec);
}
END_TEST

START_TEST(a_list_shows_jobs_without_their_specs)
{
    struct change job = job_insert(1);
    rig_write(&job, 1);
    job.job.birth.spec = NULL;
    job.job.birth.spec_length = 4;
    autotext struct text written = {0};
    autotext struct text read = {0};
    print_job(&written, &job.job.birth, &job.job.life);
    struct job_filter all = {.limit = 10};
    ck_assert(each_job(reader_jobs(rig.reader, &all, &rig.err), visit_job, &read));
    const char *state = strstr(read.bytes, " QUEUED");
    ck_assert_ptr_nonnull(state);
    ck_assert_str_eq(state, strstr(written.bytes, " QUEUED"));
    ck_assert_ptr_null(strstr(read.bytes, "gpus\":"));
}
END_TEST

START_TEST(an_update_changes_the_life_of_a_job_and_not_its_birth)
{
    struct change job = job_insert(1);
    rig_write(&job, 1);
    struct change update = job_insert(1);
    update.kind = CHANGE_JOB_UPDATE;
    update.job.life = (struct job_life){.key = 1,
                                        .state = JOB_FAILED,
                                        .seq = 21,
                                        .attempt = 22,
                                        .user_failures = 23,
                                        .infra_failures = 24,
                                        .pool = "other",
                                        .started_ms = 25,
                                        .ended_ms = 26,
                                        .exit_code = 27,
                                        .failed_rank = 28,
                                        .failed_node = "gpu-8",
                                        .cause = CAUSE_RANK_FAILED,
                                        .reason = "rank 28 failed"};
    rig_write(&update, 1);
    autotext struct text written = {0};
    autotext struct text read = {0};
    print_job(&written, &job.job.birth, &update.job.life);
    job_by_id(rig_id(1), &read);
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

/* Rows of one table are inserted several at a time, and there are rests and updates in between. */
START_TEST(rows_that_are_inserted_together_are_all_there)
{
    autotext struct text keys = {0}, wanted = {0}, events = {0};
    ck_assert(store_begin(rig.store, &rig.err));
    for (int64_t key = 1; key <= 3 * 8 + 3; key++) {
        struct change event = {.kind = CHANGE_EVENT_INSERT,
                               .event = {.job_key = key, .seq = 1, .at_ms = key, .kind = EVENT_SUBMITTED}};
        struct change changes[] = {job_insert(key), event, reply_insert((uint8_t)key, "{}"),
                                   job_update(key, JOB_CANCELED)};
        size_t count = key % 10 == 0 ? 4 : 3; /* the update finds the row that was inserted just before */
        ck_assert_msg(store_apply(rig.store, changes, count, &rig.err), "%s", rig.err.text);
        text_printf(&wanted, "%lld ", (long long)(3 * 8 + 4 - key));
    }
    ck_assert_msg(store_commit(rig.store, &rig.err), "%s", rig.err.text);
    const struct job_filter all = {.limit = 100};
    each_job(reader_jobs(rig.reader, &all, &rig.err), visit_job_key, &keys);
    ck_assert_str_eq(keys.bytes, wanted.bytes);
    for (int64_t key = 1; key <= 3 * 8 + 3; key++) {
        text_clear(&events);
        each_event(reader_events(rig.reader, key, 0, 10, &rig.err), visit_event, &events);
        ck_assert_ptr_nonnull(strstr(events.bytes, "submitted"));
    }
}
END_TEST

START_TEST(a_job_that_is_not_there_is_not_found)
{
    rig_write_one(job_insert(1));
    bool found = true;
    ck_assert(one_job(reader_job(rig.reader, rig_id(2), &rig.err), visit_one_job, NULL, &found));
    ck_assert(!found);
    found = true;
    ck_assert(one_job(reader_job_by_key(rig.reader, 2, &rig.err), visit_one_job, NULL, &found));
    ck_assert(!found);
}
END_TEST

START_TEST(events_read_back_in_order_after_a_seq_up_to_a_limit)
{
    autotext struct text written = {0};
    for (int64_t seq = 1; seq <= 5; seq++) {
        struct change event = {.kind = CHANGE_EVENT_INSERT};
        event.event = (struct event_row){7, seq, 100 + seq, EVENT_PLACED, 200 + seq, seq == 3 ? "{}" : NULL};
        rig_write(&event, 1);
        event.event.job_key = 8;
        rig_write(&event, 1);
        event.event.job_key = 7;
        if (seq == 3 || seq == 4) {
            visit_event(&event.event, &written);
        }
    }
    autotext struct text read = {0};
    ck_assert(each_event(reader_events(rig.reader, 7, 2, 2, &rig.err), visit_event, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(attempts_read_back_newest_first)
{
    struct change first = attempt_insert(1ull << 32 | 1, 7, 1);
    struct change second = attempt_insert(1ull << 32 | 2, 7, 2);
    first.attempt.state = ATTEMPT_ENDED;
    second.attempt.cause_text = second.attempt.master_address = NULL;
    rig_write((struct change[]){first, second, attempt_insert(1ull << 32 | 3, 8, 1)}, 3);
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_attempt(&second.attempt, &written);
    visit_attempt(&first.attempt, &written);
    ck_assert(each_attempt(reader_attempts(rig.reader, 7, ALL_ATTEMPTS, &rig.err), visit_attempt, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(an_update_of_an_attempt_keeps_what_it_was_made_with)
{
    rig_write_one(attempt_insert(5, 7, 1));
    struct change update = {.kind = CHANGE_ATTEMPT_UPDATE};
    update.attempt = (struct attempt_row){.attempt_id = 5,
                                          .state = ATTEMPT_STOPPING,
                                          .cause = CAUSE_CANCELED,
                                          .cause_text = "by bob",
                                          .master_address = "10.0.0.9",
                                          .master_port = 31,
                                          .started_ms = 32,
                                          .ended_ms = 33,
                                          .failed_rank = 34,
                                          .failed_code = 35,
                                          .warned_ms = 36,
                                          .checkpoint_ms = 37,
                                          .timing = {51, 72, 53, 74, 75}};
    rig_write(&update, 1);
    update.attempt.job_key = 7;
    update.attempt.number = 1;
    update.attempt.pool = "default";
    update.attempt.gpu_type = "H100";
    update.attempt.created_ms = 11;
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_attempt(&update.attempt, &written);
    ck_assert(each_attempt(reader_attempts(rig.reader, 7, ALL_ATTEMPTS, &rig.err), visit_attempt, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(moments_of_another_number_are_refused)
{
    static const char *const wrong[] = {"x''", "zeroblob(39)", "zeroblob(41)", "zeroblob(88)"};
    rig_write_one(attempt_insert(5, 7, 1));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        autotext struct text read = {0};
        autofree char *sql = xprintf("UPDATE attempts SET timing = %s", wrong[i]);
        rig_close();
        rig_meddle(sql);
        rig_reopen();
        ck_assert_msg(
            !each_attempt(reader_attempts(rig.reader, 7, ALL_ATTEMPTS, &rig.err), visit_attempt, &read), "%s",
            wrong[i]);
        ck_assert_int_eq(rig.err.code, ERR_INTERNAL);
    }
}
END_TEST

START_TEST(an_attempt_id_names_its_job)
{
    struct attempt_record record;
    bool found;
    rig_write((struct change[]){job_insert(7), attempt_insert(5, 7, 3)}, 2);
    ck_assert(reader_attempt_record(rig.reader, 5, &found, &record, &rig.err));
    ck_assert(found);
    ck_assert_str_eq(record.job_id, rig_id(7));
    ck_assert_int_eq(record.job_key, 7);
    ck_assert_int_eq(record.number, 3);
    ck_assert_int_eq(record.state, ATTEMPT_STARTED);
    ck_assert(reader_attempt_record(rig.reader, UINT64_MAX, &found, &record, &rig.err));
    ck_assert(!found);
}
END_TEST

START_TEST(members_read_back_by_node_rank)
{
    struct change update = {.kind = CHANGE_MEMBER_UPDATE,
                            .member = {.attempt_id = 5,
                                       .node_rank = 1,
                                       .state = MEMBER_EXITED,
                                       .timing = {71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81},
                                       .start = "cold: not in memory",
                                       .marks = "[]"}};
    struct change zero = member_insert(5, 0, "gpu-1", "0,1");
    struct change one = member_insert(5, 1, "gpu-2", "");
    rig_write((struct change[]){attempt_insert(5, 1, 1), one, zero, attempt_insert(6, 2, 1),
                                member_insert(6, 0, "gpu-3", "2"), update},
              6);
    one.member.state = MEMBER_EXITED;
    one.member.timing = update.member.timing;
    one.member.start = update.member.start;
    one.member.marks = update.member.marks;
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_member(&zero.member, &written);
    visit_member(&one.member, &written);
    ck_assert(each_member(reader_members(rig.reader, 5, &rig.err), visit_member, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(the_last_word_on_a_rank_stays)
{
    struct change early = {.kind = CHANGE_RANK_PUT, .rank = {5, 1, 2, 3, 4, 6, 7}};
    struct change late = {.kind = CHANGE_RANK_PUT, .rank = {5, 1, 12, 13, 14, 16, 17}};
    struct change other = {.kind = CHANGE_RANK_PUT, .rank = {5, 0, 22, 23, 24, 26, 27}};
    rig_write((struct change[]){early, other, late}, 3);
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_rank(&other.rank, &written);
    visit_rank(&late.rank, &written);
    ck_assert(each_rank(reader_ranks(rig.reader, 5, &rig.err), visit_rank, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(a_node_that_registers_again_is_overwritten)
{
    struct change again = node_put("gpu-1");
    again.node = (struct node_row){.name = "gpu-1",
                                   .boot_id = "b",
                                   .host_id = "h",
                                   .version = "v",
                                   .address = "a",
                                   .pool = "p",
                                   .pool_kind = POOL_ON_DEMAND,
                                   .state = NODE_DRAINING,
                                   .isolation = ISOLATION_NONE,
                                   .slots = true,
                                   .millicpus = 7500,
                                   .memory_bytes = 1LL << 40,
                                   .devices = "[]",
                                   .agent_id = "i",
                                   .registered_ms = 99};
    struct change other = node_put("gpu-2");
    rig_write((struct change[]){other, node_put("gpu-1"), again}, 3);
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_node(&again.node, &(struct node_used){0}, &written);
    visit_node(&other.node, &(struct node_used){0}, &written);
    ck_assert(each_node(reader_nodes(rig.reader, "", ALL_ROWS, &rig.err), visit_node, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

START_TEST(what_is_used_of_a_node_is_what_live_attempts_hold)
{
    struct change ended = attempt_insert(1, 7, 1);
    ended.attempt.state = ATTEMPT_ENDED;
    struct change node = node_put("gpu-1");
    struct change members[] = {member_insert(1, 0, "gpu-1", "0"), member_insert(2, 0, "gpu-1", "1,2"),
                               member_insert(2, 1, "gpu-2", "0"), member_insert(3, 0, "gpu-1", "3"),
                               member_insert(3, 1, "gpu-2", "")};
    static const int64_t held[][2] = {{1000, 1}, {6000, 150}, {1000, 0}, {2000, 50}, {500, 7}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        members[i].member.millicpus = held[i][0];
        members[i].member.memory_bytes = held[i][1];
    }
    rig_write((struct change[]){node, node_put("gpu-2"), ended, members[0], attempt_insert(2, 7, 2),
                                members[1], members[2], attempt_insert(3, 8, 1), members[3], members[4]},
              10);
    autotext struct text one = {0};
    autotext struct text written = {0};
    visit_node(&node.node, &(struct node_used){3, 8000, 200}, &written);
    ck_assert(each_node(reader_node(rig.reader, "gpu-1", &rig.err), visit_node, &one));
    ck_assert_str_eq(one.bytes, written.bytes);
    struct change second = node_put("gpu-2");
    visit_node(&second.node, &(struct node_used){1, 1500, 7}, &written);
    autotext struct text all = {0};
    ck_assert(each_node(reader_nodes(rig.reader, "", ALL_ROWS, &rig.err), visit_node, &all));
    ck_assert_str_eq(all.bytes, written.bytes);
}
END_TEST

START_TEST(tokens_read_back_oldest_first_and_revoked_when_they_were)
{
    struct change young = {.kind = CHANGE_TOKEN_INSERT,
                           .token = {.id = "aaa", .role = ROLE_ADMIN, .owner = "bob", .created_ms = 50}};
    struct change old = {.kind = CHANGE_TOKEN_INSERT,
                         .token = {.id = "bbb",
                                   .secret = {0xde, 0xad},
                                   .role = ROLE_USER,
                                   .owner = "alice",
                                   .created_ms = 40,
                                   .expires_ms = 60}};
    struct change revoke = {.kind = CHANGE_TOKEN_REVOKE, .token = {.id = "aaa"}};
    rig_write((struct change[]){young, old, revoke}, 3);
    young.token.revoked = true;
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_token(&old.token, &written);
    visit_token(&young.token, &written);
    ck_assert(each_token(reader_tokens(rig.reader, "", ALL_ROWS, &rig.err), visit_token, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
    text_clear(&read);
    text_clear(&written);
    visit_token(&young.token, &written);
    ck_assert(each_token(reader_token(rig.reader, "aaa", &rig.err), visit_token, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

/* The tokens as they are, against these rows. */
static void expect_tokens(const struct token_row *rows, size_t count)
{
    autotext struct text read = {0}, expected = {0};
    for (size_t i = 0; i < count; i++) {
        visit_token(&rows[i], &expected);
    }
    ck_assert(each_token(reader_tokens(rig.reader, "", ALL_ROWS, &rig.err), visit_token, &read));
    ck_assert_str_eq(read.bytes, expected.bytes);
}

START_TEST(a_login_takes_the_place_of_those_of_its_subject_that_have_ended)
{
    struct token_row
        ended = {.id = "aaa",
                 .role = ROLE_USER,
                 .owner = "ann",
                 .created_ms = 1,
                 .expires_ms = 5,
                 .subject = "i a1"},
        lasts = {.id = "bbb",
                 .role = ROLE_USER,
                 .owner = "ann",
                 .created_ms = 2,
                 .expires_ms = 50,
                 .subject = "i a1"},
        other = {.id = "ccc",
                 .role = ROLE_USER,
                 .owner = "bob",
                 .created_ms = 3,
                 .expires_ms = 5,
                 .subject = "i b1"},
        plain = {.id = "ddd", .role = ROLE_USER, .owner = "ann", .created_ms = 4, .expires_ms = 5},
        bound = {.id = "eee", .role = ROLE_USER, .owner = "service:ci", .created_ms = 5, .project = "web"},
        again = {.id = "fff",
                 .role = ROLE_OPERATOR,
                 .owner = "ann",
                 .created_ms = 10,
                 .expires_ms = 60,
                 .subject = "i a1",
                 .groups = "\nml\nops\n"};
    const struct token_row *all[] = {&ended, &lasts, &other, &plain, &bound, &again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rig_write_one((struct change){.kind = CHANGE_TOKEN_INSERT, .token = *all[i]});
    }
    expect_tokens((struct token_row[]){lasts, other, plain, bound, again}, 5);
    rig_write_one((struct change){.kind = CHANGE_TOKEN_END, .token = {.id = "bbb", .expires_ms = 12}});
    lasts.expires_ms = 12;
    expect_tokens((struct token_row[]){lasts, other, plain, bound, again}, 5);
}
END_TEST

static void visit_join(const struct join_row *row, void *closure)
{
    char secret[65];
    text_to_hex(row->secret, sizeof row->secret, secret);
    text_printf(closure, "%s %.4s %s %d %s %lld %lld %s %s\n", row->id, secret,
                row->pool != NULL ? row->pool : "-", row->reserved, row->owner, (long long)row->created_ms,
                (long long)row->expires_ms, row->node != NULL ? row->node : "-",
                row->token != NULL ? row->token : "-");
}

static void expect_join(const char *id, const char *expected)
{
    autotext struct text read = {0};
    bool found;
    ck_assert(one_join(reader_join(rig.reader, id, &rig.err), visit_join, &read, &found));
    ck_assert_str_eq(found ? read.bytes : "", expected);
}

START_TEST(a_join_token_is_used_once_and_goes_when_it_expired_long_ago)
{
    const struct change first = {
        .kind = CHANGE_JOIN_INSERT,
        .join = {.id = "one", .secret = {0xab, 0xcd}, .owner = "root", .created_ms = 10, .expires_ms = 20}};
    const struct change second = {.kind = CHANGE_JOIN_INSERT,
                                  .join = {.id = "two",
                                           .secret = {0x01},
                                           .pool = "p",
                                           .reserved = true,
                                           .owner = "root",
                                           .created_ms = 21 + JOIN_KEPT_MS,
                                           .expires_ms = 22 + JOIN_KEPT_MS}};
    const struct change use = {.kind = CHANGE_JOIN_USE, .join = {.id = "one", .node = "n1", .token = "abc"}};
    rig_write_one(first);
    expect_join("one", "one abcd - 0 root 10 20 - -\n");
    rig_write_one(use);
    expect_join("one", "one abcd - 0 root 10 20 n1 abc\n");
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(!store_apply(rig.store, &use, 1, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_INTERNAL);
    rig_reopen();
    rig_write_one(second);
    expect_join("one", "");
    autofree char *row =
        xprintf("two 0100 p 1 root %lld %lld - -\n", 21LL + JOIN_KEPT_MS, 22LL + JOIN_KEPT_MS);
    expect_join("two", row);
}
END_TEST

START_TEST(a_node_goes_with_the_tokens_that_are_bound_to_it)
{
    const struct change tokens[] = {
        {.kind = CHANGE_TOKEN_INSERT,
         .token = {.id = "aaa", .role = ROLE_NODE, .owner = "gpu-1", .created_ms = 1, .node = "gpu-1"}},
        {.kind = CHANGE_TOKEN_INSERT,
         .token = {.id = "bbb", .role = ROLE_NODE, .owner = "gpu-2", .created_ms = 2, .node = "gpu-2"}},
        {.kind = CHANGE_TOKEN_INSERT,
         .token = {.id = "ccc", .role = ROLE_NODE, .owner = "x", .created_ms = 3}},
    };
    rig_write(tokens, 3);
    rig_write_one(node_put("gpu-1"));
    rig_write_one(node_put("gpu-2"));
    rig_write_one((struct change){.kind = CHANGE_NODE_DELETE, .node = {.name = "gpu-1"}});
    autotext struct text nodes = {0}, left = {0}, read = {0}, expected = {0};
    struct change kept = node_put("gpu-2");
    visit_node(&kept.node, &(struct node_used){0}, &left);
    ck_assert(each_node(reader_nodes(rig.reader, "", ALL_ROWS, &rig.err), visit_node, &nodes));
    ck_assert_str_eq(nodes.bytes, left.bytes);
    struct token_row first = tokens[0].token;
    first.revoked = true;
    visit_token(&first, &expected);
    visit_token(&tokens[1].token, &expected);
    visit_token(&tokens[2].token, &expected);
    ck_assert(each_token(reader_tokens(rig.reader, "", ALL_ROWS, &rig.err), visit_token, &read));
    ck_assert_str_eq(read.bytes, expected.bytes);
}
END_TEST

START_TEST(a_blob_is_bytes_or_a_file_and_only_its_time_changes_when_it_is_put_again)
{
    struct change blobs[] = {
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {1}, .size = 5, .bytes = "bytes", .created_ms = 70}},
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {2}, .size = 99, .bytes = NULL, .created_ms = 71}},
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {3}, .size = 0, .bytes = "", .created_ms = 72}},
        {.kind = CHANGE_BLOB_PUT, .blob = {.hash = {1}, .size = 5, .bytes = "other", .created_ms = 73}},
    };
    rig_write(blobs, 4);
    blobs[0].blob.created_ms = 73;
    for (int i = 0; i < 3; i++) {
        autotext struct text written = {0};
        autotext struct text read = {0};
        bool found;
        visit_blob(&blobs[i].blob, &written);
        ck_assert(one_blob(reader_blob(rig.reader, blobs[i].blob.hash, &rig.err), visit_blob, &read, &found));
        ck_assert(found);
        ck_assert_str_eq(read.bytes, written.bytes);
    }
    bool found = true;
    ck_assert(one_blob(reader_blob(rig.reader, (uint8_t[32]){4}, &rig.err), visit_blob, NULL, &found));
    ck_assert(!found);
}
END_TEST

START_TEST(the_tables_take_every_word_of_every_list)
{
    rig_write_one(job_insert(1));
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++) {
        rig_write_one(job_update(1, state));
    }
    rig_write((struct change[]){attempt_insert(1, 1, 1), member_insert(1, 0, "gpu-1", "0")}, 2);
    for (enum attempt_state state = 0; state < ATTEMPT_STATE_COUNT; state++) {
        rig_write_one(
            (struct change){.kind = CHANGE_ATTEMPT_UPDATE, .attempt = {.attempt_id = 1, .state = state}});
    }
    for (enum cause cause = 0; cause < CAUSE_COUNT; cause++) {
        rig_write_one(
            (struct change){.kind = CHANGE_ATTEMPT_UPDATE, .attempt = {.attempt_id = 1, .cause = cause}});
    }
    for (enum member_state state = 0; state < MEMBER_STATE_COUNT; state++) {
        rig_write_one(
            (struct change){.kind = CHANGE_MEMBER_UPDATE, .member = {.attempt_id = 1, .state = state}});
    }
    for (enum event_kind kind = 0; kind < EVENT_KIND_COUNT; kind++) {
        rig_write_one((struct change){.kind = CHANGE_EVENT_INSERT,
                                      .event = {.job_key = 1, .seq = kind + 1, .kind = kind}});
    }
    for (enum result_kind kind = 0; kind < RESULT_KIND_COUNT; kind++) {
        rig_write_one((struct change){.kind = CHANGE_RESULT_PUT, .result = {.attempt_id = 1, .kind = kind}});
    }
    struct change node = node_put("gpu-1");
    for (node.node.state = 0; node.node.state < NODE_STATE_COUNT; node.node.state++) {
        rig_write(&node, 1);
    }
    node.node.state = NODE_READY;
    for (node.node.isolation = 0; node.node.isolation < ISOLATION_COUNT; node.node.isolation++) {
        rig_write(&node, 1);
    }
    node.node.isolation = ISOLATION_NONE;
    for (node.node.pool_kind = 0; node.node.pool_kind < POOL_KIND_COUNT; node.node.pool_kind++) {
        rig_write(&node, 1);
    }
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        rig_write_one((struct change){.kind = CHANGE_TOKEN_INSERT,
                                      .token = {.id = role_text(role), .role = role, .owner = "bob"}});
    }
}
END_TEST

/* Wants the change refused as a defect of ours that the text names. */
static void refused(struct change change, const char *text)
{
    ck_assert(store_begin(rig.store, &rig.err));
    ck_assert(!store_apply(rig.store, &change, 1, &rig.err));
    ck_assert_int_eq(rig.err.code, ERR_INTERNAL);
    ck_assert_msg(strstr(rig.err.text, text) != NULL, "%s", rig.err.text);
}

START_TEST(an_update_of_a_row_that_is_not_there_is_a_defect)
{
    rig_write_one(job_insert(1));
    refused(job_update(2, JOB_RUNNING), "not in the database");
}
END_TEST

START_TEST(a_second_live_attempt_of_a_job_is_a_defect)
{
    rig_write_one(attempt_insert(1, 7, 1));
    refused(attempt_insert(2, 7, 2), "UNIQUE");
}
END_TEST

static bool visit_first_member(const struct member_row *row, void *closure)
{
    visit_member(row, closure);
    return false;
}

START_TEST(rows_may_be_left_before_the_last_one)
{
    struct change first = member_insert(1, 0, "gpu-1", "0");
    rig_write((struct change[]){attempt_insert(1, 1, 1), first, member_insert(1, 1, "gpu-2", "0")}, 3);
    autotext struct text written = {0};
    autotext struct text read = {0};
    visit_member(&first.member, &written);
    ck_assert(each_member(reader_members(rig.reader, 1, &rig.err), visit_first_member, &read));
    ck_assert_str_eq(read.bytes, written.bytes);
}
END_TEST

Suite *store_rows_suite(void)
{
    Suite *suite = suite_create("store-rows");
    TCase *cases = tcase_create("rows");
    tcase_add_checked_fixture(cases, rig_begin, rig_end);
    tcase_add_test(cases, a_job_reads_back_as_it_was_written);
    tcase_add_test(cases, a_login_takes_the_place_of_those_of_its_subject_that_have_ended);
    tcase_add_test(cases, a_job_without_its_optional_fields_reads_back_without_them);
    tcase_add_test(cases, people_are_shown_a_spec_and_orders_get_it_as_it_was_received);
    tcase_add_test(cases, a_list_shows_jobs_without_their_specs);
    tcase_add_test(cases, an_update_changes_the_life_of_a_job_and_not_its_birth);
    tcase_add_test(cases, rows_that_are_inserted_together_are_all_there);
    tcase_add_test(cases, a_job_that_is_not_there_is_not_found);
    tcase_add_test(cases, events_read_back_in_order_after_a_seq_up_to_a_limit);
    tcase_add_test(cases, attempts_read_back_newest_first);
    tcase_add_test(cases, an_update_of_an_attempt_keeps_what_it_was_made_with);
    tcase_add_test(cases, moments_of_another_number_are_refused);
    tcase_add_test(cases, an_attempt_id_names_its_job);
    tcase_add_test(cases, members_read_back_by_node_rank);
    tcase_add_test(cases, the_last_word_on_a_rank_stays);
    tcase_add_test(cases, a_node_that_registers_again_is_overwritten);
    tcase_add_test(cases, what_is_used_of_a_node_is_what_live_attempts_hold);
    tcase_add_test(cases, tokens_read_back_oldest_first_and_revoked_when_they_were);
    tcase_add_test(cases, a_join_token_is_used_once_and_goes_when_it_expired_long_ago);
    tcase_add_test(cases, a_node_goes_with_the_tokens_that_are_bound_to_it);
    tcase_add_test(cases, a_blob_is_bytes_or_a_file_and_only_its_time_changes_when_it_is_put_again);
    tcase_add_test(cases, the_tables_take_every_word_of_every_list);
    tcase_add_test(cases, an_update_of_a_row_that_is_not_there_is_a_defect);
    tcase_add_test(cases, a_second_live_attempt_of_a_job_is_a_defect);
    tcase_add_test(cases, rows_may_be_left_before_the_last_one);
    suite_add_tcase(suite, cases);
    return suite;
}
