/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl top`: shows nodes, jobs and the queue, or one job, and shows them again as they change. It promises
 * that keys are answered while requests are under way, that a controller which does not answer leaves the
 * picture as it is, and that the program goes on by itself when it answers again. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/common/jobs.h"
#include "client/cli/frame/verb.h"
#include "client/cli/show/print.h"
#include "client/cli/top/data/top_data.h"
#include "client/cli/top/data/top_details.h"
#include "client/cli/top/top_draw.h"
#include "client/cli/top/data/top_job.h"
#include "client/cli/top/top_keys.h"
#include "client/cli/top/data/top_requests.h"
#include "client/cli/top/top_screen.h"
#include "client/cli/top/top_view.h"
#include "client/cli/transport/api.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text/json.h"
#include "proto/limits_client.h"

#define TICK_MS       1000 /* the longest pause between two pictures: times go on */
#define DEFAULT_S     2
#define LONGEST_S     3600
#define ONCE_WIDTH    100000 /* characters of a line that no terminal cuts */
#define SIGNAL_EXIT   128
#define CLOCK_OFFSET  11 /* of "2026-11-21 09:30:00" */
#define TROUBLE_BYTES 512

struct top_options {
    int64_t interval_s;
    bool once;
};

static const struct option_row rows[] = {
    ROW_INT(struct top_options, interval_s, 'i', "interval", "SECONDS", "between two readings (default 2)", 1,
            LONGEST_S, .absent = DEFAULT_S),
    ROW_FLAG(struct top_options, once, 0, "once", "print it once, as plain text"), ROWS_END};

struct top {
    struct api *api; /* borrowed */
    struct top_data *data;
    struct top_details *details;
    struct top_job *job;         /* of the view; NULL: it shows tables */
    struct top_requests changes; /* that the person asked for */
    struct top_view view;
    struct top_screen *screen; /* NULL: the picture is printed once */
    struct top_keys keys;
    struct top_shown shown; /* rows on the screen */
    int64_t key_ms;         /* boot clock of the last bytes of keys */
    int64_t interval_ms, next_ms;
    int64_t read_ms; /* wall clock of the last lists or job that came */
    char trouble[TROUBLE_BYTES];
    bool again; /* what is read next is asked for at once */
    bool quits;
};

/* --- reading -------------------------------------------------------------------------------------------- */

static void begin_reading(struct top *top)
{
    top->again = false;
    if (top->job != NULL) {
        top_job_begin(top->job, top_view_rank(&top->view), top->view.stream);
    } else {
        top_data_begin(top->data);
    }
}

static bool is_reading(const struct top *top)
{
    return top->job != NULL ? !top_job_idle(top->job) : !top_data_idle(top->data);
}

/* Has something not been read yet at all? */
static bool is_partial(const struct top *top)
{
    bool partial = false;
    for (int i = 0; i < TOP_RANKS && top->job == NULL; i++) {
        partial = partial || top_data_extent(top->data, (enum top_table_id)i) == TOP_PARTLY;
    }
    return partial;
}

static void note_success(struct top *top)
{
    top->trouble[0] = '\0';
    top->read_ms = clock_wall_ms();
    top->next_ms = clock_boot_ms() + (is_partial(top) ? 0 : top->interval_ms);
}

static void note_failure(struct top *top, const struct err *err)
{
    bool away = err_retryable(err->code);
    char since[32];
    print_time(top->read_ms, since);
    snprintf(top->trouble, sizeof top->trouble, "%s since %s: %s",
             away ? "the controller does not answer" : "nothing new", since + CLOCK_OFFSET, err->text);
    top->next_ms = clock_boot_ms() + top->interval_ms;
    if (away) {
        api_refresh(top->api);
    }
}

/* Takes in what has come. *ret_new: all that was asked for; false: it could not be read. */
static bool step_reading(struct top *top, bool *ret_new, struct err *err)
{
    if (top->job != NULL) {
        enum top_job_state state = top_job_step(top->job, err);
        *ret_new = state == TOP_JOB_NEW;
        return state != TOP_JOB_FAILED;
    }
    enum top_data_state state = top_data_step(top->data, err);
    *ret_new = state == TOP_DATA_NEW;
    return state != TOP_DATA_FAILED;
}

static void step(struct top *top)
{
    bool new;
    struct err err = {0};
    if (!step_reading(top, &new, &err)) {
        note_failure(top, &err);
    } else if (new) {
        note_success(top);
    }
    if (top_details_step(top->details) || new) {
        top_data_add_details(top->data, top->details);
    }
    top_requests_step(&top->changes);
    if (!is_reading(top) && (top->again || clock_boot_ms() >= top->next_ms)) {
        begin_reading(top);
    }
}

/* Reads for the first time: all that there is, or as much as there is to show at once. */
static bool read_first(struct top *top, bool all, struct err *err)
{
    do {
        bool new = false;
        begin_reading(top);
        while (!new) {
            api_turn(top->api, TICK_MS);
            if (!step_reading(top, &new, err)) {
                return false;
            }
        }
    } while (all && is_partial(top));
    note_success(top);
    return true;
}

/* --- drawing -------------------------------------------------------------------------------------------- */

/* ranks: of the job, or NULL. */
static struct top_picture picture_of(const struct top *top, const json_t *ranks)
{
    struct top_picture picture = {.url = api_context(top->api)->url,
                                  .trouble = top->trouble[0] != '\0' ? top->trouble : NULL};
    for (int i = 0; i < TOP_RANKS; i++) {
        picture.rows[i] = top_data_rows(top->data, (enum top_table_id)i);
        picture.extent[i] = top_data_extent(top->data, (enum top_table_id)i);
    }
    picture.rows[TOP_RANKS] = ranks;
    if (top->job != NULL) {
        picture.job = top_job_view(top->job);
        picture.output = top_job_output(top->job, top_view_rank(&top->view), top->view.stream);
    }
    return picture;
}

static json_t *ranks_of(const struct top *top)
{
    const json_t *view = top->job != NULL ? top_job_view(top->job) : NULL;
    return view != NULL ? top_job_ranks(view, top->details) : NULL;
}

static bool show(struct top *top, struct err *err)
{
    struct top_look look = {
        .utf8 = print_utf8(), .escapes = true, .colour = print_colour(), .now_ms = clock_wall_ms()};
    struct text_list frame = {0};
    autojson json_t *ranks = ranks_of(top);
    struct top_picture picture = picture_of(top, ranks);
    top_screen_size(top->screen, &look.width, &look.height);
    top_shown_finish(&top->shown);
    top_draw(&top->view, &picture, &look, &frame, &top->shown);
    bool shown = top_screen_show(top->screen, &frame, err);
    text_list_finish(&frame);
    return shown;
}

/* --- acts ----------------------------------------------------------------------------------------------- */

/* The controller's word on a change. */
static void take_change(void *closure, const struct text *body, const struct err *err)
{
    struct top *top = closure;
    autojson json_t *reply = body != NULL ? json_parse(body->bytes, body->length, NULL) : NULL;
    const char *state = json_string_of(reply, "state");
    if (body == NULL) {
        snprintf(top->view.message, sizeof top->view.message, "refused: %s%s%s", err->text,
                 err->hint[0] != '\0' ? "; " : "", err->hint);
    } else {
        snprintf(top->view.message, sizeof top->view.message, "done%s%s", state != NULL ? "; it is " : "",
                 state != NULL ? state : "");
    }
    top->again = true;
}

static void change(struct top *top, enum top_act act)
{
    autotext struct text path = {0};
    if (!top_requests_room(&top->changes)) {
        snprintf(top->view.message, sizeof top->view.message,
                 "the controller has not answered to earlier changes");
        return;
    }
    text_append(&path, top_act_of_node(act) ? "/v1/nodes/" : "/v1/jobs/");
    api_part(&path, top->view.target);
    text_printf(&path, "/%s", top_act_verb(act));
    top_requests_post(&top->changes, path.bytes, (struct top_taker){take_change, top});
    snprintf(top->view.message, sizeof top->view.message, "%s is asked for", top_act_verb(act));
}

static void open_job(struct top *top, const char *id)
{
    top_job_destroy(top->job);
    top->job = top_job_create(top->api, id);
    top_view_open(&top->view, id);
    top->again = true;
}

static void act(struct top *top, enum top_act act)
{
    switch (act) {
    case TOP_NOTHING:
        break;
    case TOP_QUIT:
        top->quits = true;
        break;
    case TOP_OPEN:
        open_job(top, top->view.target);
        break;
    case TOP_BACK:
        top_job_destroy(top->job);
        top->job = NULL;
        top->again = true;
        break;
    case TOP_REREAD:
        top->again = true;
        break;
    case TOP_CANCEL:
    case TOP_HOLD:
    case TOP_RELEASE:
    case TOP_DRAIN:
    case TOP_RESUME:
        change(top, act);
        break;
    }
}

/* A key is about the picture that the one before has left. */
static bool take_keys(struct top *top, struct err *err)
{
    bool silent = clock_boot_ms() - top->key_ms >= CLIENT_TOP_ESCAPE_MS;
    struct top_key key;
    while (!top->quits && top_keys_next(&top->keys, silent, &key)) {
        act(top, top_view_key(&top->view, &key));
        if (!show(top, err)) {
            return false;
        }
    }
    return true;
}

/* --- the loop ------------------------------------------------------------------------------------------- */

/* Until there is something to do without a reply or a key. */
static int64_t pause_of(const struct top *top)
{
    if (top->keys.length > 0) {
        return CLIENT_TOP_ESCAPE_MS;
    }
    int64_t left_ms = is_reading(top) ? TICK_MS : top->again ? 0 : top->next_ms - clock_boot_ms();
    return left_ms < 0 ? 0 : left_ms < TICK_MS ? left_ms : TICK_MS;
}

/* *ret_end: the signal that ended it; 0: the person did. */
static bool show_on(struct top *top, int *ret_end, struct err *err)
{
    while (!top->quits && *ret_end == 0) {
        if (!take_keys(top, err) || !show(top, err)) {
            return false;
        }
        if (top_details_idle(top->details)) {
            top_details_want(top->details, &top->shown);
        }
        api_turn(top->api, pause_of(top));
        if (top_screen_read(top->screen, &top->keys, ret_end)) {
            top->key_ms = clock_boot_ms();
        }
        step(top);
    }
    return true;
}

static bool run_screen(struct top *top, int *ret_exit, struct err *err)
{
    int files[API_WATCHED], end = 0;
    top->screen = top_screen_create(err);
    if (top->screen == NULL) {
        return false;
    }
    top_screen_files(top->screen, files);
    api_watch(top->api, files, API_WATCHED);
    bool good = show_on(top, &end, err);
    api_watch(top->api, NULL, 0);
    top_screen_destroy(top->screen);
    *ret_exit = end == 0 || end == SIGINT ? 0 : SIGNAL_EXIT + end;
    return good || end != 0;
}

/* --- once ----------------------------------------------------------------------------------------------- */

static void draw_once(struct top *top, struct text_list *frame)
{
    size_t width = print_width();
    const struct top_look look = {
        .width = width > 0 ? width : ONCE_WIDTH, .utf8 = print_utf8(), .now_ms = clock_wall_ms()};
    autojson json_t *ranks = ranks_of(top);
    struct top_picture picture = picture_of(top, ranks);
    top_shown_finish(&top->shown);
    top_draw_once(&top->view, &picture, &look, frame, &top->shown);
}

/* The first picture says which details the second one needs. */
static bool print_once(struct top *top, struct err *err)
{
    struct text_list frame = {0};
    autotext struct text out = {0};
    draw_once(top, &frame);
    text_list_finish(&frame);
    top_details_want(top->details, &top->shown);
    while (!top_details_idle(top->details)) {
        api_turn(top->api, TICK_MS);
        top_details_step(top->details);
    }
    top_data_add_details(top->data, top->details);
    draw_once(top, &frame);
    for (size_t i = 0; i < frame.count; i++) {
        text_printf(&out, "%s\n", frame.items[i]);
    }
    text_list_finish(&frame);
    return print_out(&out, err);
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static void begin(struct top *top, const struct call *call)
{
    const struct top_options *options = call->options;
    *top = (struct top){.api = call->api,
                        .changes = {.api = call->api},
                        .interval_ms = options->interval_s * 1000,
                        .data = top_data_create(call->api),
                        .details = top_details_create(call->api)};
    top_view_init(&top->view);
}

static void end(struct top *top)
{
    top_requests_drop(&top->changes);
    top_job_destroy(top->job);
    top_details_destroy(top->details);
    top_data_destroy(top->data);
    top_shown_finish(&top->shown);
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct top_options *options = call->options;
    char id[RESOLVED_BYTES] = "";
    if (call->rest_count > 0 && !resolve_job(call->api, call->rest[0], id, err)) {
        return false;
    }
    struct top top;
    begin(&top, call);
    if (id[0] != '\0') {
        open_job(&top, id);
    }
    bool once = options->once || !top_screen_possible();
    bool good =
        read_first(&top, once, err) && (once ? print_once(&top, err) : run_screen(&top, ret_exit, err));
    end(&top);
    return good;
}

const struct verb verb_top = {
    .name = "top",
    .arguments = "[ID]",
    .summary = "Show nodes, jobs and the queue, or one job, live in the terminal.",
    .details =
        "Keys show other tables, sort and filter them, and cancel, hold and release jobs; ? lists them.\n"
        "What nodes use is from their newest samples, one each 30 s. Without a terminal it prints what\n"
        "it would show once, and ends.",
    .argument = ARGUMENT_JOB,
    .least = 0,
    .most = 1,
    OF_THE_CONTROLLER,
    .options_size = sizeof(struct top_options),
    .rows = {rows},
    .run = run,
};
