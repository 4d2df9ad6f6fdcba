/* SPDX-License-Identifier: Apache-2.0 */
/* Lives in which power may go at any operation. An image is judged like a disk that was really cut off. A
 * recovery that is itself cut off must end like an uninterrupted one. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/store/database/scrub.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/sim/store/life.h"
#include "tests/sim/store/powerloss.h"
#include "tests/trace/harness/chance.h"

enum { BATCHES = 60, IMAGES_A_SYNC = 2, PERCENT_OF_OTHERS = 15, CUT_RECOVERIES = 3 };

struct filming {
    struct tally *tally;
    struct life life;
    struct chance chance;
    int64_t until; /* number of images */
};

static void expect(struct filming *filming, const char *wrong)
{
    if (wrong != NULL) {
        tally_violation(filming->tally, wrong, disk_operations(filming->life.stage->disk));
    }
}

/* --- images --------------------------------------------------------------------------------------------- */

static bool go_on(void *closure)
{
    return true;
}

/* What a crash leaves is no damage to the scrub either. */
static const char *scrub(struct life *life)
{
    const struct copy_watch watch = {.go_on = go_on};
    return scrub_run(life->stage->image_path, &watch, &life->err) ? NULL : life->err.text;
}

/* Opens the image and judges it; returns its fingerprint. */
static uint64_t recover(struct filming *filming, struct life *life)
{
    struct store *store = store_open(life->stage->image_path, &life->err);
    uint64_t seen = 0;
    expect(filming, store == NULL ? life->err.text : life_judge(life, store, &seen));
    expect(filming, store == NULL ? NULL : scrub(life));
    store_close(store);
    disk_restart(life->stage->image, false);
    return seen;
}

/* Opens the image while power goes repeatedly. */
static void recover_in_pieces(struct filming *filming, struct life *life)
{
    struct disk *image = life->stage->image;
    for (uint64_t cuts = 1 + chance_below(&filming->chance, CUT_RECOVERIES); cuts > 0; cuts--) {
        disk_crash_after(image, 1 + (int64_t)chance_below(&filming->chance, cuts == 1 ? 12 : 140));
        struct store *store = store_open(life->stage->image_path, &life->err);
        if (store != NULL) {
            life->incarnation = store_incarnation(store); /* others know it, so it must not be used again */
        }
        disk_restart(image, chance_of(&filming->chance, 70));
        store_close(store);
    }
}

/* Removes the real lock, which belongs to the database of the previous image. */
static void take(struct filming *filming, uint64_t seed)
{
    autofree char *lock = xprintf("%s.lock", filming->life.stage->image_path);
    unlink(lock);
    disk_seed(filming->life.stage->image, seed);
    disk_image(filming->life.stage->disk, filming->life.stage->path, filming->life.stage->image,
               filming->life.stage->image_path);
}

static void film(struct filming *filming)
{
    struct stage *stage = filming->life.stage;
    struct life life = filming->life; /* a copy of the expectations */
    uint64_t seed = (uint64_t)++filming->tally->images + (filming->tally->seed << 32);
    disk_use(stage->image);
    take(filming, seed);
    uint64_t seen = recover(filming, &life);
    if (chance_of(&filming->chance, 30)) {
        take(filming, seed); /* the same image again */
        recover_in_pieces(filming, &life);
        expect(filming,
               recover(filming, &life) == seen ? NULL : "a recovery that was cut off ends otherwise");
    }
    disk_use(stage->disk);
}

static void before(enum disk_operation operation, void *closure)
{
    struct filming *filming = closure;
    int count = operation == DISK_SYNC ? IMAGES_A_SYNC : chance_of(&filming->chance, PERCENT_OF_OTHERS);
    for (; count > 0 && filming->tally->images < filming->until; count--) {
        film(filming);
    }
}

/* --- lives ---------------------------------------------------------------------------------------------- */

static bool reopen(struct filming *filming)
{
    const char *wrong;
    bool ok = life_open(&filming->life, &wrong);
    expect(filming, ok ? NULL : wrong != NULL ? wrong : filming->life.err.text);
    return ok;
}

/* Ends the process by a kill or a loss of power, after some operations of the next batch. */
static bool die(struct filming *filming, bool power)
{
    disk_crash_after(filming->life.stage->disk, 1 + (int64_t)chance_below(&filming->chance, 12));
    if (life_batch(&filming->life)) {
        life_checkpoint(&filming->life, false);
    }
    life_end(&filming->life, power);
    return reopen(filming);
}

static bool restart(struct filming *filming)
{
    life_close(&filming->life);
    return reopen(filming);
}

static bool must(struct filming *filming, bool ok)
{
    expect(filming, ok ? NULL : filming->life.err.text);
    return ok;
}

static bool step(struct filming *filming)
{
    uint64_t kind = chance_below(&filming->chance, 100);
    if (kind < 8) {
        return must(filming, life_checkpoint(&filming->life, false));
    }
    if (kind < 13) {
        return must(filming, life_checkpoint(&filming->life, true));
    }
    if (kind < 17) {
        return restart(filming);
    }
    if (kind < 33) {
        return die(filming, kind < 25);
    }
    return must(filming, life_batch(&filming->life));
}

static void live(struct filming *filming, const struct script *script)
{
    struct stage stage;
    uint64_t *expected = life_expect(script);
    stage_begin(&stage);
    disk_seed(stage.disk, filming->chance.state);
    disk_watch(stage.disk, before, filming);
    filming->life = (struct life){.stage = &stage, .script = script, .expected = expected};
    bool ok = reopen(filming);
    while (ok && filming->life.done < script->count && filming->tally->images < filming->until) {
        ok = step(filming);
    }
    disk_watch(stage.disk, NULL, NULL);
    life_end(&filming->life, true);
    if (ok && reopen(filming)) {
        life_close(&filming->life);
    }
    stage_finish(&stage);
    free(expected);
}

void powerloss_images(struct tally *tally, int64_t images)
{
    struct filming filming = {.tally = tally, .chance = {.state = tally->seed * 2 + 1}, .until = images};
    for (uint64_t round = 0; tally->images < images && tally->violations == 0; round++) {
        struct script *script = script_create(tally->seed * 1000 + round, BATCHES, round % 4 == 3);
        live(&filming, script);
        script_destroy(script);
    }
}
