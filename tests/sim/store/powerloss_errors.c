/* SPDX-License-Identifier: Apache-2.0 */
/* Lives in which one operation of the disk fails, each operation in turn. An error that the store does not
 * report must not cost an acknowledged batch, whatever happens afterwards. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/store/life.h"
#include "tests/sim/store/powerloss.h"
#include "tests/trace/harness/chance.h"

enum { BATCHES = 16, FIRST_BATCHES = 8, LARGE_STRIDE = 200 };

struct failing {
    struct tally *tally;
    const struct script *script;
    const uint64_t *expected;
    struct stage *prepared; /* the state in which lives begin; NULL: an empty disk */
    size_t prepared_batches;
    uint32_t prepared_incarnation;
    struct chance chance;
};

/* The fault of one life. */
struct fault {
    int code;
    bool lasting, reading;
    int64_t at; /* number of operations, or reads, before the failing one */
};

static void expect(struct failing *failing, const char *wrong, const struct fault *fault)
{
    if (wrong != NULL) {
        tally_violation(failing->tally, wrong, fault->at);
    }
}

/* --- one life ------------------------------------------------------------------------------------------- */

static bool first_batches(struct life *life)
{
    for (int i = 0; i < FIRST_BATCHES / 2; i++) {
        if (!life_batch(life)) {
            return false;
        }
    }
    return life_checkpoint(life, false) && life_batch(life) && life_batch(life);
}

/* Runs the script to its end; its last batches are larger than the cache. */
static bool last_batches(struct life *life)
{
    if (!life_checkpoint(life, true)) {
        return false;
    }
    while (life->done < life->script->count) {
        if (!life_batch(life)) {
            return false;
        }
    }
    return life_checkpoint(life, false);
}

static bool lives(struct life *life, bool prepared, const char **ret_wrong)
{
    return life_open(life, ret_wrong) && (prepared ? last_batches(life) : first_batches(life));
}

/* A failure of a running store must be reported as an unknown outcome. */
static const char *wrong_answer(const struct life *life)
{
    bool unknown = life->err.code == ERR_UNKNOWN_OUTCOME || life->err.code == ERR_DISK_FULL;
    bool opening = life->store == NULL && life->err.code == ERR_IO;
    return unknown || opening ? NULL : "a failure is reported as something else";
}

static void set(struct disk *disk, const struct fault *fault)
{
    if (fault->reading) {
        disk_fail_read_after(disk, fault->at, fault->code);
    } else {
        disk_fail_after(disk, fault->at, fault->code, fault->lasting);
    }
}

/* Starts the next process, on a disk that works again. */
static void expect_recovery(struct failing *failing, struct life *life, const struct fault *fault)
{
    const char *wrong;
    disk_heal(life->stage->disk);
    life_end(life, chance_of(&failing->chance, 50));
    bool ok = life_open(life, &wrong);
    expect(failing, ok ? NULL : wrong != NULL ? wrong : life->err.text, fault);
    if (ok && life->done < life->script->count && !life_batch(life)) {
        expect(failing, life->err.text, fault);
    }
    life_end(life, true);
}

/* False: the life ended before the fault. */
static bool suffer(struct failing *failing, struct stage *stage, const struct fault *fault)
{
    struct life life = {.stage = stage, .script = failing->script, .expected = failing->expected};
    const char *wrong = NULL;
    if (failing->prepared != NULL) {
        disk_image(failing->prepared->disk, failing->prepared->path, stage->disk, stage->path);
        life.done = failing->prepared_batches;
        life.incarnation = failing->prepared_incarnation;
    }
    int64_t failures = disk_failures(stage->disk);
    set(stage->disk, fault);
    bool ok = lives(&life, failing->prepared != NULL, &wrong);
    bool failed = disk_failures(stage->disk) > failures;
    expect(failing, wrong, fault);
    if (!ok && wrong == NULL) {
        expect(failing, failed ? wrong_answer(&life) : life.err.text, fault);
    }
    expect_recovery(failing, &life, fault);
    failing->tally->error_points += failed;
    return failed;
}

/* --- all faults ----------------------------------------------------------------------------------------- */

static void suffer_at_each(struct failing *failing, struct fault fault, int64_t stride)
{
    bool failed = true;
    for (fault.at = (int64_t)chance_below(&failing->chance, (uint64_t)stride);
         failed && failing->tally->violations == 0; fault.at += stride) {
        struct stage stage;
        stage_begin(&stage);
        disk_seed(stage.disk, chance_below(&failing->chance, INT64_MAX));
        failed = suffer(failing, &stage, &fault);
        stage_finish(&stage);
    }
}

static void suffer_all(struct failing *failing, int64_t stride)
{
    static const struct fault faults[] = {
        {.code = SQLITE_IOERR},
        {.code = SQLITE_IOERR, .lasting = true},
        {.code = SQLITE_FULL},
        {.code = SQLITE_FULL, .lasting = true},
        {.code = SQLITE_IOERR, .reading = true},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        suffer_at_each(failing, faults[i], stride);
    }
}

/* Leaves the first batches in the log of a killed process. */
static bool prepare(struct failing *failing, struct stage *stage)
{
    struct life life = {.stage = stage, .script = failing->script, .expected = failing->expected};
    const char *wrong = NULL;
    bool ok = lives(&life, false, &wrong);
    if (!ok) {
        tally_violation(failing->tally, wrong != NULL ? wrong : life.err.text, 0);
    }
    failing->prepared_batches = life.done;
    failing->prepared_incarnation = life.incarnation;
    life_end(&life, false);
    return ok;
}

static void live_a_script(struct tally *tally, bool large, int64_t stride)
{
    struct script *script = script_create(tally->seed * 1000 + 999, BATCHES, large);
    uint64_t *expected = life_expect(script);
    struct failing failing = {
        .tally = tally, .script = script, .expected = expected, .chance = {.state = tally->seed * 2 + 1}};
    if (!large) {
        suffer_all(&failing, stride);
    }
    struct stage stage;
    stage_begin(&stage);
    if (prepare(&failing, &stage)) {
        failing.prepared = &stage;
        suffer_all(&failing, stride);
    }
    stage_finish(&stage);
    free(expected);
    script_destroy(script);
}

void powerloss_errors(struct tally *tally, int64_t stride)
{
    live_a_script(tally, false, stride);
    live_a_script(tally, true, LARGE_STRIDE * stride); /* all pages are alike */
}
