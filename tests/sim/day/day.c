/* SPDX-License-Identifier: Apache-2.0 */
/* day --output FOLDER [--seed N]: makes the state folder of a controller that has served a cluster for the 24
 * hours that end now, for a real gpuctld to go on with, and prints as JSON what the simulated nodes know of
 * it. All decisions are those of the real writer and core. A seed gives the same day, but for the wall clock.
 */
#include "tests/sim/day/day.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/sim/day/nodes.h"
#include "tests/sim/day/people.h"
#include "tests/sim/day/remains.h"

#define BOOTED_MS          1000 /* what the controller's steady clock shows when the day begins */
#define HEARTBEAT_PAUSE_MS MINUTE_MS

/* Nothing of it has to survive a loss of power, and some 10,000 commits would wait for the disk. */
int fsync(int file);
int fdatasync(int file);

int fsync(int file)
{
    return 0;
}

int fdatasync(int file)
{
    return 0;
}

void day_must(bool ok, const struct err *err)
{
    if (!ok) {
        fprintf(stderr, "day: %s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

/* --- the controller ------------------------------------------------------------------------------------- */

static void due(void *closure);

/* A batch of the writer, and what follows of it. */
static void turn(struct day *day)
{
    struct writer_news news;
    const struct moment now = {.boot_ms = BOOTED_MS + day->world.now_ms,
                               .wall_ms = world_wall_ms(&day->world)};
    bool ok = writer_run_batch(day->writer, now);
    writer_collect(day->writer, &news);
    day_must(ok && !news.failed, &news.error);
    for (size_t i = 0; i < news.order_count; i++) {
        nodes_ordered(day->cluster, news.orders[i]);
        node_orders_destroy(news.orders[i]);
    }
    writer_news_finish(&news);
    int64_t due_ms = writer_due_ms(day->writer);
    day->wake++;
    if (due_ms != INT64_MAX) {
        world_in(&day->world, due_ms - now.boot_ms, due, day, &day->wake);
    }
}

static void due(void *closure)
{
    turn(closure);
}

struct reply {
    struct job_touch *job;
    char **answer;
};

static int render(const struct writer_request *request, const struct step *step, struct text *out)
{
    const struct reply *reply = request->asker;
    if (reply->job != NULL) {
        *reply->job = step->job;
    }
    if (reply->answer != NULL) {
        *reply->answer = step->answer != NULL ? xstrdup(step->answer) : NULL;
    }
    text_append(out, "{}");
    return 200;
}

static void render_each(const struct writer_request *request, size_t index, const struct step *step,
                        struct text *out)
{
}

static bool ask(struct day *day, struct writer_request *request)
{
    request->arrived_ms = BOOTED_MS + day->world.now_ms;
    request->input.wall_ms = world_wall_ms(&day->world);
    request->render = render;
    day_must(writer_ask(day->writer, request), &(struct err){.text = "the writer is full"});
    turn(day);
    text_finish(&request->answer);
    return request->status != 0;
}

bool day_ask(struct day *day, const struct input *input, struct job_touch *ret_job, char **ret_answer)
{
    struct reply reply = {ret_job, ret_answer};
    struct writer_request request = {.kind = WRITER_INPUT, .input = *input, .asker = &reply};
    bool ok = ask(day, &request);
    if (!ok) {
        world_note(&day->world, "refused: %s", request.error.text);
    }
    return ok;
}

void day_ask_all(struct day *day, const struct input *inputs, size_t count)
{
    struct reply reply = {0};
    struct writer_request request = {.kind = WRITER_INPUTS,
                                     .inputs = inputs,
                                     .input_count = count,
                                     .render_each = render_each,
                                     .asker = &reply};
    ask(day, &request);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static void open_all(struct day *day)
{
    const struct writer_config config = {
        .heartbeat_ms = HEARTBEAT_PAUSE_MS, .policy = POLICY_DEFAULT, .idle_after_ms = 30 * MINUTE_MS};
    autofree char *database = xprintf("%s/gpuctl.db", day->folder);
    struct err err;
    day->store = store_open(database, &err);
    day_must(day->store != NULL, &err);
    const struct moment now = {.boot_ms = BOOTED_MS, .wall_ms = world_wall_ms(&day->world)};
    day->writer = writer_open(day->store, &config, now, &err);
    day_must(day->writer != NULL, &err);
    day->remains = remains_create(day);
    day->cluster = nodes_create(day, HEARTBEAT_PAUSE_MS);
    day->people = people_create(day);
}

/* The writer's last batch takes what it has put off. */
static void close_all(struct day *day)
{
    nodes_stop(day->cluster);
    day->world.now_ms += SECOND_MS;
    turn(day);
    autojson json_t *told =
        json_pack("{so,so}", "people", people_tell(day->people), "nodes", nodes_tell(day->cluster));
    autofree char *text = json_text(told);
    printf("%s\n", text);
    writer_close(day->writer);
    store_close(day->store);
    nodes_destroy(day->cluster);
    people_destroy(day->people);
    remains_destroy(day->remains);
    world_finish(&day->world);
}

static int usage(FILE *out)
{
    fprintf(out, "usage: day --output FOLDER [--seed N] [--trace]\n"
                 "Makes FOLDER, the state folder of a controller after a day of 24 h that ends now.\n");
    return out == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"output", required_argument, NULL, 'o'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct day day = {0};
    int64_t seed = 1;
    bool tracing = false;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0) {
        if (option == 'o') {
            day.folder = optarg;
        } else if (option == 's' && text_to_int(optarg, 1, INT64_MAX, &seed)) {
            continue;
        } else if (option == 't') {
            tracing = true;
        } else {
            return usage(option == 'h' ? stdout : stderr);
        }
    }
    if (day.folder == NULL || optind != argc) {
        return usage(stderr);
    }
    struct err err;
    day_must(mkdir(day.folder, 0700) == 0 || err_errno(&err, "cannot make %s", day.folder), &err);
    world_init(&day.world, (uint64_t)seed, tracing);
    day.world.wall_shift_ms = clock_wall_ms() - DAY_MS - world_wall_ms(&day.world);
    open_all(&day);
    while (world_step(&day.world, DAY_MS)) {
    }
    close_all(&day);
    return EXIT_SUCCESS;
}
