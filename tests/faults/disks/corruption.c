/* SPDX-License-Identifier: Apache-2.0 */
/* Damages databases and looks at what the store makes of them. It writes a database of many rows, keeps it as
 * a controller leaves it that ended (one file) and as one that was killed (with a log and its index), and
 * then, once a seed, damages a copy, opens it with the real store, and reads everything. The damage is seen
 * or harmless: each row that is read is as it was written. Anything else prints the seed and fails, and
 * `corruption SEED 1` does the same again. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/database/scrub.h"
#include "daemon/store/store.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"
#include "tests/unit/store/each_row.h"
#include "tests/trace/harness/chance.h"
#include "tests/unit/store/store_rig.h"

enum {
    JOBS = 120,
    SPEC_BYTES = 9000, /* on overflow pages */
    BLOB_BYTES = 30000,
    MUTATIONS = 1000,
    LOG_HEADER_BYTES = 32,
    USED_BYTES = 8 * 1024 * 1024, /* of a file: behind it is the part of the log that was grown */
};

/* One file as it was written. */
struct image {
    const char *suffix;
    uint8_t *bytes;
    size_t length; /* of bytes; the file is longer by zeros */
    size_t size;
};

/* What a controller left behind. */
struct scene {
    const char *name;
    struct image images[3];
    size_t count;
};

static struct scene ended = {.name = "ended", .images = {{.suffix = ""}}, .count = 1};
static struct scene killed = {
    .name = "killed", .images = {{.suffix = ""}, {.suffix = "-wal"}, {.suffix = "-shm"}}, .count = 3};
static int64_t seed;

/* Nobody pulls the plug here: what is not synced is there all the same. */
int fdatasync(int fd)
{
    return fd < 0 ? -1 : 0;
}

int fsync(int fd)
{
    return fd < 0 ? -1 : 0;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static void write_job(int64_t key)
{
    static char spec[SPEC_BYTES];
    memset(spec, 'a' + (int)(key % 26), sizeof spec);
    struct change job = job_insert(key);
    job.job.birth.spec = spec;
    job.job.birth.spec_length = key % 3 == 0 ? sizeof spec : 40;
    struct change reply = reply_insert((uint8_t)key, "{\"id\": \"job\"}");
    const struct change changes[] = {
        job,
        {.kind = CHANGE_EVENT_INSERT,
         .event = {.job_key = key, .seq = 1, .at_ms = key, .kind = EVENT_SUBMITTED}},
        {.kind = CHANGE_EVENT_INSERT,
         .event = {.job_key = key, .seq = 2, .at_ms = key, .kind = EVENT_PLACED}},
        attempt_insert((uint64_t)key, key, 1),
        member_insert((uint64_t)key, 0, "gpu-1", "0,1"),
        {.kind = CHANGE_RANK_PUT, .rank = {.attempt_id = (uint64_t)key, .rank = 0, .code = 3, .at_ms = key}},
        reply,
    };
    rig_write(changes, sizeof changes / sizeof changes[0]);
}

static void write_blob(int64_t key)
{
    static char bytes[BLOB_BYTES];
    memset(bytes, 'A' + (int)(key % 26), sizeof bytes);
    rig_write_one((struct change){
        .kind = CHANGE_BLOB_PUT,
        .blob = {.hash = {(uint8_t)key}, .size = sizeof bytes, .bytes = bytes, .created_ms = key}});
}

/* Rows that go again leave free pages. */
static void write_and_delete_window(int64_t key)
{
    static char nodes[SPEC_BYTES];
    char id[24];
    memset(nodes, 'n', sizeof nodes - 1);
    snprintf(id, sizeof id, "window-%lld", (long long)key);
    const struct window_row window = {
        .id = id, .nodes = nodes, .from_ms = 1, .until_ms = 2, .owner = "admin", .created_ms = key};
    rig_write_one((struct change){.kind = CHANGE_WINDOW_INSERT, .window = window});
    rig_write_one((struct change){.kind = CHANGE_WINDOW_DELETE, .window = window});
}

static void write_rows(int64_t first, int64_t last)
{
    for (int64_t key = first; key <= last; key++) {
        write_job(key);
        if (key % 20 == 0) {
            write_blob(key);
            write_and_delete_window(key);
        }
        if (key % 2 == 0) {
            rig_write_one(job_update(key, JOB_SUCCEEDED));
        }
    }
}

/* --- reading all of it ---------------------------------------------------------------------------------- */

static bool see_node(const struct node_row *row, void *closure, struct err *err)
{
    return visit_node(row, &(struct node_used){0}, closure);
}

static bool see_window(const struct window_row *row, void *closure, struct err *err)
{
    text_printf(closure, "window %s\n", row->id);
    return true;
}

static bool see_job(const struct job_birth *birth, const struct job_life *life, void *closure,
                    struct err *err)
{
    print_job(closure, birth, life);
    return true;
}

static bool see_attempt(const struct attempt_row *row, void *closure, struct err *err)
{
    return visit_attempt(row, closure);
}

static bool see_member(const struct member_row *row, void *closure, struct err *err)
{
    return visit_member(row, closure);
}

/* There are no rows of the other kinds. */
static bool read_live(struct text *out)
{
    const struct store_visitor visitor = {.node = see_node,
                                          .window = see_window,
                                          .job = see_job,
                                          .attempt = see_attempt,
                                          .member = see_member,
                                          .closure = out};
    return store_load_live(rig.store, &visitor, &rig.err);
}

static bool read_job(int64_t key, struct text *out)
{
    bool by_key, by_id, replied;
    struct stored_reply reply = {0};
    const struct change asked = reply_insert((uint8_t)key, "");
    bool ok = one_job(reader_job_by_key(rig.reader, key, &rig.err), visit_one_job, out, &by_key) &&
              one_job(reader_job(rig.reader, rig_id(key), &rig.err), visit_one_job, out, &by_id) &&
              each_event(reader_events(rig.reader, key, 0, 10, &rig.err), visit_event, out) &&
              each_attempt(reader_attempts(rig.reader, key, ALL_ATTEMPTS, &rig.err), visit_attempt, out) &&
              each_member(reader_members(rig.reader, (uint64_t)key, &rig.err), visit_member, out) &&
              each_rank(reader_ranks(rig.reader, (uint64_t)key, &rig.err), visit_rank, out) &&
              store_find_reply(rig.store, asked.reply.scope, &replied, &reply, &rig.err);
    if (ok) {
        text_printf(out, "found %d %d %d %s\n", by_key, by_id, replied, replied ? reply.answer : "");
    }
    free(reply.answer);
    return ok;
}

static bool read_rest(struct text *out)
{
    const struct job_filter all = {.limit = JOBS + 1};
    bool ok = each_job(reader_jobs(rig.reader, &all, &rig.err), visit_job, out) &&
              each_node(reader_nodes(rig.reader, "", ALL_ROWS, &rig.err), visit_node, out) &&
              each_token(reader_tokens(rig.reader, "", ALL_ROWS, &rig.err), visit_token, out);
    for (int64_t key = 20; ok && key <= JOBS; key += 20) {
        const uint8_t hash[32] = {(uint8_t)key};
        bool found;
        ok = one_blob(reader_blob(rig.reader, hash, &rig.err), visit_blob, out, &found);
    }
    return ok;
}

/* false: the store has said that something is wrong. Rows alone: without the scrub, which comes later. */
static bool read_all(struct text *out)
{
    rig.store = store_open(rig.path, &rig.err);
    if (rig.store == NULL || (rig.reader = reader_open(rig.path, &rig.err)) == NULL || !read_live(out)) {
        return false;
    }
    for (int64_t key = 1; key <= JOBS; key++) {
        if (!read_job(key, out)) {
            return false;
        }
    }
    return read_rest(out);
}

static bool go_on(void *closure)
{
    return true;
}

/* Damage of pages that no row was read from. */
static bool scrub(void)
{
    const struct copy_watch watch = {.go_on = go_on};
    return scrub_run(rig.path, &watch, &rig.err);
}

/* --- images --------------------------------------------------------------------------------------------- */

static char *path_of(const struct image *image)
{
    return xprintf("%s%s", rig.path, image->suffix);
}

static void must(bool ok, const char *what)
{
    ck_assert_msg(ok, "seed %lld: cannot %s: %s", (long long)seed, what, rig.err.text);
}

static void take(struct image *image)
{
    autofree char *path = path_of(image);
    char *bytes = NULL;
    must(file_read(path, 64 * MIB, &bytes, &image->size, &rig.err), "read a file of the database");
    image->bytes = (uint8_t *)bytes;
    image->length = image->size < USED_BYTES ? image->size : USED_BYTES;
    for (size_t i = image->length; i < image->size; i++) {
        assert(bytes[i] == 0); /* else USED_BYTES is too small */
    }
}

static void lay(const struct image *image, const uint8_t *bytes, size_t length, size_t size)
{
    autofree char *path = path_of(image);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && pwrite(fd, bytes, length, 0) == (ssize_t)length && ftruncate(fd, (off_t)size) == 0,
         "write a file of the database");
}

/* But the lock, which knows that there was a database. */
static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        autofree char *path = xprintf("%s%s", rig.path, suffixes[i]);
        unlink(path);
    }
}

/* The second half of the rows is in the log of the one that is killed. */
static void make_scenes(struct text *ret_expected)
{
    const struct token_row token = {.id = "token", .role = ROLE_ADMIN, .owner = "admin", .created_ms = 1};
    rig_begin();
    rig_write_one((struct change){.kind = CHANGE_TOKEN_INSERT, .token = token});
    rig_write_one(node_put("gpu-1"));
    write_rows(1, JOBS / 2);
    rig_reopen();
    write_rows(JOBS / 2 + 1, JOBS);
    for (size_t i = 0; i < killed.count; i++) {
        take(&killed.images[i]);
    }
    rig_close();
    take(&ended.images[0]);
    must(read_all(ret_expected), "read the database");
    rig_close();
}

/* --- damage --------------------------------------------------------------------------------------------- */

struct damage {
    struct chance chance;
    uint8_t *bytes;
    size_t length, size;
};

static size_t anywhere(struct damage *damage)
{
    return chance_below(&damage->chance, damage->length);
}

static void flip_bits(struct damage *damage)
{
    for (uint64_t count = 1 + chance_below(&damage->chance, 8); count > 0; count--) {
        damage->bytes[anywhere(damage)] ^= (uint8_t)(1U << chance_below(&damage->chance, 8));
    }
}

/* A range, half of them aligned to sectors. */
static size_t range_of(struct damage *damage, size_t *ret_length)
{
    size_t at = anywhere(damage), length = 1 + chance_below(&damage->chance, 8192);
    if (chance_of(&damage->chance, 50)) {
        at -= at % 512;
        length += 512 - length % 512;
    }
    *ret_length = length < damage->length - at ? length : damage->length - at;
    return at;
}

static void zero_range(struct damage *damage)
{
    size_t length, at = range_of(damage, &length);
    memset(damage->bytes + at, 0, length);
}

static void scribble(struct damage *damage)
{
    size_t length, at = range_of(damage, &length);
    for (size_t i = 0; i < length; i++) {
        damage->bytes[at + i] = (uint8_t)chance_below(&damage->chance, 256);
    }
}

/* A log that is gone as a whole, its header too, is as one that was never there: that nobody can tell. */
static void cut(struct damage *damage, bool log)
{
    size_t size = anywhere(damage);
    size -= chance_of(&damage->chance, 50) ? size % 4096 : 0;
    damage->length = damage->size = log && size < LOG_HEADER_BYTES ? LOG_HEADER_BYTES : size;
}

/* Two pages of the database, or two frames of the log, change places; or one comes twice. */
static void swap(struct damage *damage, size_t first, size_t each)
{
    size_t count = (damage->length - first) / each;
    uint8_t kept[8192];
    uint8_t *a = damage->bytes + first + each * chance_below(&damage->chance, count);
    uint8_t *b = damage->bytes + first + each * chance_below(&damage->chance, count);
    memcpy(kept, a, each);
    memmove(a, b, each);
    if (chance_of(&damage->chance, 50)) {
        memcpy(b, kept, each);
    }
}

static const char *spoil(struct damage *damage, bool log)
{
    switch (chance_below(&damage->chance, 5)) {
    case 0:
        flip_bits(damage);
        return "bits flipped";
    case 1:
        zero_range(damage);
        return "zeros";
    case 2:
        scribble(damage);
        return "scribbled";
    case 3:
        cut(damage, log);
        return "cut";
    default:
        swap(damage, log ? LOG_HEADER_BYTES : 0, log ? 24 + 4096 : 4096);
        return "swapped";
    }
}

/* Lays the scene with one file damaged; returns what was done to which. */
static char *damage_scene(const struct scene *scene, struct chance chance)
{
    size_t victim = scene->count == 1 ? 0 : chance_below(&chance, 3) / 2 == 0 ? 1 : 0; /* mostly the log */
    char *said = NULL;
    for (size_t i = 0; i < scene->count; i++) {
        const struct image *image = &scene->images[i];
        if (i != victim) {
            lay(image, image->bytes, image->length, image->size);
            continue;
        }
        struct damage damage = {
            .chance = chance, .bytes = xalloc(image->length), .length = image->length, .size = image->size};
        memcpy(damage.bytes, image->bytes, image->length);
        const char *how = spoil(&damage, i == 1);
        lay(image, damage.bytes, damage.length, damage.size);
        said = xprintf("%s, %s of db%s", scene->name, how, image->suffix);
        free(damage.bytes);
    }
    return said;
}

/* --- trials --------------------------------------------------------------------------------------------- */

static struct {
    int64_t refused, scrubbed, harmless, wrong;
} tally;

static void judge(const char *said, bool read, const struct text *found, const struct text *expected)
{
    bool same =
        found->length == expected->length && memcmp(found->bytes, expected->bytes, found->length) == 0;
    if (read && !same) {
        tally.wrong++;
        printf("seed %lld: %s: not what was written\n", (long long)seed, said);
    } else if (!read) {
        tally.refused++;
    } else if (!scrub()) {
        tally.scrubbed++;
    } else {
        tally.harmless++;
    }
}

static void attempt(const struct text *expected)
{
    struct chance chance = {.state = 0x9e3779b97f4a7c15ULL * (uint64_t)seed};
    autotext struct text found = {0};
    remove_files();
    autofree char *said = damage_scene(chance_of(&chance, 40) ? &ended : &killed, chance);
    bool read = read_all(&found);
    judge(said, read, &found, expected);
    rig_close();
}

/* Without damage nothing is refused. */
static void expect_whole(const struct scene *scene, const struct text *expected)
{
    autotext struct text found = {0};
    remove_files();
    for (size_t i = 0; i < scene->count; i++) {
        const struct image *image = &scene->images[i];
        lay(image, image->bytes, image->length, image->size);
    }
    must(read_all(&found), "read what is whole");
    ck_assert_str_eq(found.bytes, expected->bytes);
    rig_close();
}

static void tell_seed(int number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "seed %lld: signal %d\n", (long long)seed, number);
    ssize_t written = write(STDOUT_FILENO, text, (size_t)length);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static int64_t first = 1, count = MUTATIONS;

START_TEST(damage_is_seen_or_harmless)
{
    autotext struct text expected = {0};
    signal(SIGABRT, tell_seed);
    setvbuf(stdout, NULL, _IOLBF, 0); /* a seed that fails is told before the end */
    make_scenes(&expected);
    expect_whole(&ended, &expected);
    expect_whole(&killed, &expected);
    for (seed = first; seed < first + count; seed++) {
        attempt(&expected);
    }
    remove_files();
    for (size_t i = 0; i < killed.count; i++) {
        free(killed.images[i].bytes);
    }
    free(ended.images[0].bytes);
    rig_end();
    printf("%lld damaged: %lld refused, %lld seen by the scrub, %lld harmless, %lld wrong\n",
           (long long)count, (long long)tally.refused, (long long)tally.scrubbed, (long long)tally.harmless,
           (long long)tally.wrong);
    ck_assert_int_eq(tally.wrong, 0);
    ck_assert_int_gt(tally.refused, count / 2);
    ck_assert_int_gt(tally.refused + tally.scrubbed, count / 10 * 7);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 1 && (argc != 3 || !text_to_int(argv[1], 1, INT32_MAX, &first) ||
                      !text_to_int(argv[2], 1, INT32_MAX, &count))) {
        fprintf(stderr, "usage: corruption [FIRST COUNT]\n");
        return 2;
    }
    Suite *suite = suite_create("corruption");
    TCase *tests = tcase_create("corruption");
    tcase_set_timeout(tests, 0); /* the one who runs it has one */
    tcase_add_test(tests, damage_is_seen_or_harmless);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
