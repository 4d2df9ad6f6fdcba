/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl notebook`: JupyterLab as a job, at a port of this machine. The token that lets in is made by
 * the job on the node, and read there beside the rank: it is on no command line, and not in the output. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/common/browser.h"
#include "client/cli/common/follow.h"
#include "client/cli/common/jobs.h"
#include "client/cli/controller/connect.h"
#include "client/cli/jobs/notebook_script.h"
#include "client/cli/jobs/submit.h"
#include "client/cli/show/print.h"
#include "client/cli/stream/collect.h"
#include "client/cli/stream/forward.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

#define IDLE_MS  (30 * 60000LL)
#define PAUSE_MS 300 /* between two looks for a JupyterLab that starts */

/* A job of `gpuctl notebook` is known by this word of its command. */
#define SCRIPT_NAME  "gpuctl-notebook"
#define WORD_OF_NAME 3

struct notebook_options {
    struct spec_options spec; /* first: spec_rows have their offsets in it */
    int64_t idle_ms, port;
    bool link;
};

static const struct option_row rows[] = {
    ROW_DURATION(struct notebook_options, idle_ms, 0, "idle",
                 "end the job when nobody has used it for so long (default 30m)", .absent = IDLE_MS),
    ROW_INT(struct notebook_options, port, 0, "port", "N", "of this machine (default: any that is free)", 0,
            UINT16_MAX),
    ROW_FLAG(struct notebook_options, link, 0, "link", "print the link, and open no browser"), ROWS_END};

/* --- the job -------------------------------------------------------------------------------------------- */

/* The call of a job whose command is the script. */
static bool send(const struct call *call, struct api *api, json_t **ret_json, struct err *err)
{
    const struct notebook_options *options = call->options;
    autofree char *script = xstrndup((const char *)notebook_script, notebook_script_length);
    autofree char *idle = xprintf("%lld", (long long)(options->idle_ms / 1000));
    const char *words[] = {"sh", "-c", script, SCRIPT_NAME, idle, NULL};
    struct call own = *call;
    struct spec_options spec = options->spec;
    autojobfile struct jobfile file = {0};
    own.rest = (char **)(uintptr_t)words;
    own.rest_count = sizeof words / sizeof words[0] - 1;
    spec.name = spec.name != NULL ? spec.name : "notebook";
    return submit_read(&spec, &own, &file, err) && submit_send(api, &file, &spec, &own, ret_json, err);
}

/* Nobody is to wait for a JupyterLab of a job that starts none. */
static bool check_notebook(const struct job_view *job, struct err *err)
{
    struct err ignored;
    autojson json_t *spec = job->spec != NULL ? json_parse(job->spec, strlen(job->spec), &ignored) : NULL;
    const char *word =
        json_string_value(json_array_get(json_object_get(spec, "command"), (size_t)WORD_OF_NAME));
    if (word != NULL && strcmp(word, SCRIPT_NAME) == 0) {
        return true;
    }
    err_set(err, ERR_CONFLICT, "job %s is no job of gpuctl notebook", job->id);
    return err_hint(err, "gpuctl port-forward leads to a port of any job");
}

/* One that was there before. */
static bool find_earlier(struct api *api, const char *word, struct job_view *ret_job, struct err *err)
{
    char id[RESOLVED_BYTES];
    if (!resolve_job(api, word, id, err) || !ranks_get_job(api, id, true, ret_job, err)) {
        return false;
    }
    bool good = check_notebook(ret_job, err);
    if (!good) {
        job_view_finish(ret_job);
    }
    return good;
}

static bool find_job(const struct call *call, struct api *api, struct job_view *ret_job, struct err *err)
{
    json_t *json = NULL;
    if (call->rest_count > 0) {
        return find_earlier(api, call->rest[0], ret_job, err);
    }
    if (!send(call, api, &json, err) || !job_view_decode(json, ret_job, err)) {
        return false;
    }
    print_note("job %s", ret_job->id);
    return true;
}

/* --- the server ----------------------------------------------------------------------------------------- */

struct server {
    int64_t port;
    char *token; /* owned */
};

static bool read_server(const struct collected *found, struct server *server)
{
    struct err ignored;
    autojson json_t *json =
        found->output.bytes != NULL ? json_parse(found->output.bytes, found->output.length, &ignored) : NULL;
    const char *token = json_string_of(json, "token");
    if (token == NULL || !json_need_int(json, "port", 1, UINT16_MAX, &server->port, &ignored)) {
        return false;
    }
    server->token = xstrdup(token);
    return true;
}

/* What JupyterLab has written down beside the rank. *ret_found false: nothing yet. False: the person may not
 * look. */
static bool look(struct api *api, const char *id, struct server *server, bool *ret_found, struct err *err)
{
    struct err ignored;
    struct collected found = {.rank = 0};
    autojson json_t *command = json_pack(
        "[s,s,s]", "sh", "-c", "cat \"${TORCHELASTIC_ERROR_FILE%/*}\"/notebook/jpserver-*.json 2>/dev/null");
    *ret_found = collect_run(api, id, command, &found, 1, &ignored) && !found.failed &&
                 found.exit_code == 0 && read_server(&found, server);
    bool refused = found.failed && found.err.code == ERR_FORBIDDEN;
    if (refused) {
        *err = found.err;
    }
    collected_finish(&found, 1);
    return !refused;
}

/* *ret_over: the job has ended, or the person wants no more of it. */
static bool await_server(struct api *api, const char *id, struct server *server, bool *ret_over,
                         struct err *err)
{
    struct job_view job;
    bool found = false;
    *ret_over = false;
    while (look(api, id, server, &found, err)) {
        if (found) {
            return true;
        }
        if (!ranks_get_job(api, id, true, &job, err)) {
            return false;
        }
        *ret_over = job_state_terminal(job.state) || api_interrupts(api) > 0;
        job_view_finish(&job);
        if (*ret_over) {
            return true;
        }
        api_pause(api, PAUSE_MS);
    }
    return false;
}

/* --- the verb ------------------------------------------------------------------------------------------- */

static bool tell(const struct call *call, struct api *api, const struct forward *forward,
                 const struct server *server, struct err *err)
{
    const struct notebook_options *options = call->options;
    autotext struct text link = {0};
    struct err why;
    text_printf(&link, "http://127.0.0.1:%lld/lab?token=", (long long)forward->local);
    api_part(&link, server->token);
    text_append(&link, "\n");
    if (!print_out(&link, err)) {
        return false;
    }
    fflush(stdout);
    link.bytes[link.length - 1] = '\0';
    if (!options->link && !browser_open_link(api_context(api)->state, link.bytes, &why)) {
        print_note("%s: open the address in a browser", why.text);
    }
    print_note(call->rest_count > 0 ? "Ctrl-C leaves the job alone" : "Ctrl-C ends the job");
    return true;
}

static bool cancel(struct api *api, const char *id, struct err *err)
{
    print_note("ending job %s", id);
    autojson json_t *reply = api_ask(api, "POST", NULL, err, "/v1/jobs/%s/cancel", id);
    return reply != NULL;
}

static bool serve(const struct call *call, struct api *api, const char *id, const struct server *server,
                  int *ret_exit, struct err *err)
{
    const struct notebook_options *options = call->options;
    struct forward forward = {.api = api, .job_id = id, .local = options->port, .remote = server->port};
    bool good =
        forward_open(&forward, err) && tell(call, api, &forward, server, err) && forward_run(&forward, err);
    if (good && forward.ended) {
        print_note("job %s has ended", id);
    }
    bool ends = call->rest_count == 0 && !forward.ended;
    forward_close(&forward);
    *ret_exit = good && !forward.ended ? EXIT_LEFT : 0;
    return (!ends || cancel(api, id, err)) && good;
}

static bool run_job(const struct call *call, struct api *api, const struct job_view *job, int *ret_exit,
                    struct err *err)
{
    struct server server = {0};
    bool runs = true, over = false;
    bool ours = call->rest_count == 0;
    if (!follow_start(api, job, false, ours, &runs, ret_exit, err)) {
        return false;
    }
    if (!runs) {
        return true;
    }
    bool good = await_server(api, job->id, &server, &over, err);
    if (good && over) {
        good = (ours ? follow_job : follow_attach)(api, job, false, ret_exit, err);
    } else if (good) {
        good = serve(call, api, job->id, &server, ret_exit, err);
    }
    free(server.token);
    return good;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    autoapi struct api *api = NULL;
    struct job_view job;
    if (!connect_controller(call, true, &api, err) || !api_catch_interrupts(api, err) ||
        !find_job(call, api, &job, err)) {
        return false;
    }
    bool good = run_job(call, api, &job, ret_exit, err);
    job_view_finish(&job);
    return good;
}

const struct verb verb_notebook = {
    .name = "notebook",
    .arguments = "[JOB]",
    .summary = "Work with JupyterLab on a node, in your browser.",
    .details = "It is a job, with the options of run, whose port leads to one of this machine until it ends. "
               "JupyterLab has to be\n"
               "in the job's environment. Who has the link can do what the job can do. With JOB it is a "
               "notebook that runs\n"
               "already, as after a restart of this machine.\n"
               "\n"
               "Examples:\n"
               "  gpuctl notebook --gpus 1 --gpu-type A10\n"
               "  gpuctl notebook x7k2",
    .argument = ARGUMENT_JOB,
    .most = 1,
    .reach = REACH_CONTROLLER,
    .own_failure = EXIT_OWN_FAILURE,
    .options_size = sizeof(struct notebook_options),
    .rows = {spec_rows, rows},
    .run = run,
};
