/* SPDX-License-Identifier: Apache-2.0 */
/* bench-count OPERATION TIMES: does one of the controller's hot operations so often, on fixed input and a
 * disk in memory, for someone who counts the instructions of `measured` (tests/bench/instructions). An
 * operation is what a request costs between its body and that of its reply: decoding, the writer with core
 * and commit, the answer. HTTP and authentication are left out, but for `authorize`, which is nothing else.
 * Two runs do the same but for what depends on addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blob/logs.h"
#include "daemon/http/auth/authorize.h"
#include "daemon/writer/writer.h"
#include "daemon/writer/spec_environment.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/crypto/hash.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "proto/wire/messages.h"
#include "proto/wire/views.h"
#include "tests/sim/disk/disk.h"

#define GPUS        8
#define LEASE_MS    10000
#define PIECE_BYTES 4096
#define TIMES_MAX   100
#define BATCH_JOBS  100
#define PEOPLE      1000
#define PROJECTS    100
#define MEMBERS     50

static const char spec_body[] =
    "{\"name\":\"train\",\"project\":\"vision\",\"gpus\":1,\"gpu_type\":\"A10\",\"remote\":true,"
    "\"command\":[\"python\",\"train.py\",\"--epochs\",\"10\"],\"env\":{\"SEED\":\"1\",\"DATA\":\"/data/"
    "set\"},"
    "\"time_limit_s\":3600,\"retries\":1,\"priority\":2}";

static struct {
    struct store *store;
    struct writer *writer;
    int64_t now_ms, submitted, heartbeats;
    struct node_orders *orders; /* the newest of the node */
    struct logs *logs;
    int64_t appended; /* bytes */
} bench;

static void must(bool ok, const struct err *err)
{
    if (!ok) {
        fprintf(stderr, "bench-count: %s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static void keep_orders(struct writer_news *news)
{
    for (size_t i = 0; i < news->order_count; i++) {
        if (bench.orders != NULL) {
            node_orders_destroy(bench.orders);
        }
        bench.orders = news->orders[i];
    }
}

/* Through the writer and back. */
static void ask(struct writer_request *request)
{
    struct writer_news news;
    const struct moment now = {.boot_ms = ++bench.now_ms, .wall_ms = bench.now_ms};
    request->arrived_ms = bench.now_ms;
    request->input.wall_ms = bench.now_ms;
    must(writer_ask(bench.writer, request), &(struct err){.text = "the writer is full"});
    writer_run_batch(bench.writer, now);
    writer_collect(bench.writer, &news);
    must(!news.failed, &news.error);
    must(request->status != 0, &request->error);
    keep_orders(&news);
    writer_news_finish(&news);
    text_finish(&request->answer);
}

static int render_nothing(const struct writer_request *request, const struct step *step, struct text *out)
{
    text_append(out, "{}");
    return 200;
}

/* What the counts are of. */
static __attribute__((noinline)) void measured(void (*serve)(const char *body), const char *body)
{
    serve(body);
}

static json_t *parse(const char *body)
{
    struct err err;
    json_t *json = json_parse(body, strlen(body), &err);
    must(json != NULL, &err);
    return json;
}

/* --- submit --------------------------------------------------------------------------------------------- */

static int render_submitted(const struct writer_request *request, const struct step *step, struct text *out)
{
    job_receipt_encode(step->job.id, step->job.state, step->job.seq, out);
    return 201;
}

static void serve_submit(const char *body)
{
    struct err err;
    struct job_spec spec;
    struct spec_environment environment;
    char id[ID_LENGTH + 1];
    must(job_spec_decode(parse(body), LEASE_MS, &spec, &err), &err);
    snprintf(id, sizeof id, "%016lld", (long long)bench.submitted++);
    struct writer_request request = {.kind = WRITER_INPUT, .keyed = true, .render = render_submitted};
    hash_bytes(id, strlen(id), request.scope);
    hash_bytes(body, strlen(body), request.body);
    request.input = (struct input){
        .kind = INPUT_SUBMIT,
        .submit = {.id = id, .owner = "ann", .spec = &spec, .body = body, .body_length = strlen(body)}};
    request.input.submit.environment =
        spec_environment_of(&spec, "ann", &environment) ? &environment.core : NULL;
    ask(&request);
    spec_environment_finish(&environment);
    job_spec_finish(&spec);
}

static void submit(void)
{
    measured(serve_submit, spec_body);
}

/* --- batch: BATCH_JOBS submissions in one request ------------------------------------------------------- */

struct batched {
    struct job_spec spec;
    struct spec_environment environment;
    char id[ID_LENGTH + 1];
};

static void render_each(const struct writer_request *request, size_t index, const struct step *step,
                        struct text *out)
{
    render_submitted(request, step, out);
}

static void read_batched(const char *body, struct batched *job, struct input *ret_input)
{
    struct err err;
    must(job_spec_decode(parse(body), LEASE_MS, &job->spec, &err), &err);
    snprintf(job->id, sizeof job->id, "%016lld", (long long)bench.submitted++);
    *ret_input = (struct input){
        .kind = INPUT_SUBMIT,
        .submit = {
            .id = job->id, .owner = "ann", .spec = &job->spec, .body = body, .body_length = strlen(body)}};
    bool has = spec_environment_of(&job->spec, "ann", &job->environment);
    ret_input->submit.environment = has ? &job->environment.core : NULL;
}

static void serve_batch(const char *body)
{
    static struct batched jobs[BATCH_JOBS];
    static struct input inputs[BATCH_JOBS];
    struct writer_request request = {.kind = WRITER_INPUTS,
                                     .keyed = true,
                                     .render = render_nothing,
                                     .render_each = render_each,
                                     .inputs = inputs,
                                     .input_count = BATCH_JOBS};
    for (size_t i = 0; i < BATCH_JOBS; i++) {
        read_batched(body, &jobs[i], &inputs[i]);
    }
    hash_bytes(jobs[0].id, strlen(jobs[0].id), request.scope);
    hash_bytes(body, strlen(body), request.body);
    ask(&request);
    for (size_t i = 0; i < BATCH_JOBS; i++) {
        spec_environment_finish(&jobs[i].environment);
        job_spec_finish(&jobs[i].spec);
    }
}

static void batch(void)
{
    measured(serve_batch, spec_body);
}

/* --- heartbeat: of a node whose devices all work -------------------------------------------------------- */

static int render_heartbeat(const struct writer_request *request, const struct step *step, struct text *out)
{
    const struct heartbeat_reply reply = {.fenced = step->fenced, .fenced_count = step->fenced_count};
    autojson json_t *json = heartbeat_reply_encode(&reply);
    autofree char *text = json_text(json);
    text_append(out, text);
    return 200;
}

static void serve_heartbeat(const char *body)
{
    struct err err;
    struct heartbeat_message message;
    must(heartbeat_message_decode(parse(body), &message, &err), &err);
    struct writer_request request = {.kind = WRITER_INPUT, .render = render_heartbeat};
    request.input = (struct input){.kind = INPUT_HEARTBEAT, .heartbeat = &message};
    ask(&request);
    heartbeat_message_finish(&message);
}

static void heartbeat(void)
{
    autotext struct text body = {0};
    text_printf(&body, "{\"node\":\"gpu-1\",\"boot_id\":\"boot-1\",\"seq\":%lld,\"attempts\":[",
                (long long)++bench.heartbeats);
    for (size_t i = 0; i < bench.orders->count; i++) {
        text_printf(&body, "%s{\"epoch\":%llu,\"state\":\"RUNNING\"}", i > 0 ? "," : "",
                    (unsigned long long)bench.orders->items[i].order.attempt_id);
    }
    text_append(&body, "]}");
    measured(serve_heartbeat, body.bytes);
}

/* --- place: a job ends, the next is placed and begins --------------------------------------------------- */

static void serve_report(const char *body)
{
    struct err err;
    struct report_message message;
    must(report_message_decode(parse(body), &message, &err), &err);
    struct writer_request request = {.kind = WRITER_INPUT, .render = render_nothing};
    request.input = (struct input){.kind = INPUT_REPORT, .report = &message};
    ask(&request);
    report_message_finish(&message);
}

static void report(uint64_t attempt_id, const char *more)
{
    autofree char *body = xprintf("{\"node\":\"gpu-1\",\"boot_id\":\"boot-1\",\"epoch\":%llu,%s}",
                                  (unsigned long long)attempt_id, more);
    measured(serve_report, body);
}

static void place(void)
{
    uint64_t attempt_id = UINT64_MAX; /* of the oldest */
    for (size_t i = 0; i < bench.orders->count; i++) {
        uint64_t other = bench.orders->items[i].order.attempt_id;
        attempt_id = other < attempt_id ? other : attempt_id;
    }
    report(attempt_id, "\"kind\":\"running\",\"at_ms\":1");
    report(attempt_id,
           "\"kind\":\"exited\",\"ranks\":[{\"rank\":0,\"code\":0,\"signal\":0,\"at_ms\":2,\"by_us\":false}],"
           "\"flushed\":true");
}

/* --- log append ----------------------------------------------------------------------------------------- */

static void serve_append(const char *piece)
{
    struct err err;
    int64_t received, durable;
    const struct log_name name = {.job_id = "0000000000000000", .attempt = 1, .stream = STREAM_STDOUT};
    must(logs_append(bench.logs, &name, bench.appended, piece, PIECE_BYTES, &received, &durable, &err), &err);
    bench.appended += PIECE_BYTES;
}

static void append_times(const char *folder, int64_t times)
{
    struct err err;
    char piece[PIECE_BYTES];
    autofree char *path = xprintf("%s/logs", folder);
    struct worker *worker = worker_open(&err);
    must(worker != NULL, &err);
    bench.logs = logs_open(path, path, GIB, worker, &err);
    must(bench.logs != NULL, &err);
    for (size_t i = 0; i < sizeof piece; i++) {
        piece[i] = i % 81 == 80 ? '\n' : 'x';
    }
    for (int64_t i = 0; i < times; i++) {
        measured(serve_append, piece);
    }
    worker_close(worker);
    logs_close(bench.logs);
}

/* --- authorization -------------------------------------------------------------------------------------- */

static struct {
    struct auth *auth;
    struct projects *projects;
    struct job_spec spec;
    char header[sizeof "Bearer " + TOKEN_LENGTH];
} known;

/* Who sends it, whether the route, a job of a colleague, and a new job are theirs to ask for. */
static void serve_authorize(const char *header)
{
    struct err err;
    char credential[CREDENTIAL_BYTES];
    auth_credential(header, credential);
    const struct identity *who = auth_check(known.auth, credential, 1000, &err);
    must(who != NULL && authorize_route(ACCESS_USER, identity_role(who), &err) &&
             authorize_see(known.projects, who, "ann", "project-7") &&
             authorize_change(known.projects, who, "ann", "project-7", &err) &&
             authorize_submit(known.projects, who, &known.spec, &err),
         &err);
}

static void add_person(int number)
{
    struct token token;
    uint8_t random[TOKEN_RANDOM_BYTES] = {(uint8_t)number, (uint8_t)(number >> 8)};
    token_make(random, &token);
    autofree char *owner = xprintf("person-%d", number);
    struct token_row row = {.id = token.id, .owner = owner, .role = ROLE_USER, .created_ms = 1};
    memcpy(row.secret, token.secret, sizeof row.secret);
    auth_put(known.auth, &row);
    if (number == 7) {
        snprintf(known.header, sizeof known.header, "Bearer %s", token.text);
    }
}

static void add_project(int number)
{
    struct err err;
    struct account_limits limits;
    autojson json_t *json = json_pack("{s:{}}", "members");
    for (int i = 0; i < MEMBERS; i++) {
        autofree char *name = xprintf("person-%d", i);
        json_object_set_new(json_object_get(json, "members"), name, json_string("operator"));
    }
    must(account_limits_decode(json, ACCOUNT_PROJECT, &limits, &err), &err);
    autofree char *name = xprintf("project-%d", number);
    projects_put(known.projects, name, &limits);
    account_limits_finish(&limits);
}

static void authorize_times(int64_t times)
{
    static char project[] = "project-7";
    known.auth = auth_create();
    known.projects = projects_create();
    known.spec.project = project;
    for (int i = 0; i < PEOPLE; i++) {
        add_person(i);
    }
    for (int i = 0; i < PROJECTS; i++) {
        add_project(i);
    }
    for (int64_t i = 0; i < times; i++) {
        measured(serve_authorize, known.header);
    }
    projects_release(known.projects);
    auth_destroy(known.auth);
}

/* --- the controller ------------------------------------------------------------------------------------- */

static void open_writer(const char *folder)
{
    const struct writer_config config = {.heartbeat_ms = 5000, .policy = POLICY_DEFAULT};
    autofree char *path = xprintf("%s/gpuctl.db", folder);
    struct err err;
    bench.now_ms = 1000;
    bench.store = store_open(path, &err);
    must(bench.store != NULL, &err);
    bench.writer = writer_open(bench.store, &config, (struct moment){.boot_ms = 1000, .wall_ms = 1000}, &err);
    must(bench.writer != NULL, &err);
}

static void register_node(void)
{
    struct device devices[GPUS];
    for (int64_t i = 0; i < GPUS; i++) {
        devices[i] = (struct device){.index = i, .uuid = "GPU", .type = "A10", .group = -1};
    }
    const struct register_message message = {.name = "gpu-1",
                                             .boot_id = "boot-1",
                                             .host_id = "host",
                                             .version = "1",
                                             .address = "10.0.0.1",
                                             .devices = devices,
                                             .device_count = GPUS};
    struct writer_request request = {.kind = WRITER_INPUT, .render = render_nothing};
    request.input = (struct input){.kind = INPUT_REGISTER, .node_register = &message};
    ask(&request);
}

static void close_writer(void)
{
    node_orders_destroy(bench.orders);
    writer_close(bench.writer);
    store_close(bench.store);
}

/* What is there before the operation is the same for any number of times. */
static void run_times(void (*act)(void), const char *folder, int64_t times)
{
    open_writer(folder);
    register_node();
    for (int i = 0; i < GPUS + TIMES_MAX; i++) {
        serve_submit(spec_body);
    }
    for (int64_t i = 0; i < times; i++) {
        act();
    }
    close_writer();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*act)(void); /* NULL: those without a writer */
    } operations[] = {{"submit", submit}, {"batch", batch}, {"beat", heartbeat},
                      {"place", place},   {"log", NULL},    {"authorize", NULL}};
    char folder[] = "/tmp/bench-count-XXXXXX";
    int64_t times;
    size_t at = 0, count = sizeof operations / sizeof operations[0];
    while (argc == 3 && at < count && strcmp(argv[1], operations[at].name) != 0) {
        at++;
    }
    if (argc != 3 || at == count || !text_to_int(argv[2], 0, TIMES_MAX, &times) || mkdtemp(folder) == NULL) {
        fprintf(stderr, "usage: bench-count submit|batch|beat|place|log|authorize TIMES (at most %d)\n",
                TIMES_MAX);
        return 2;
    }
    json_object_seed(1); /* else by chance */
    struct disk *disk = disk_create("count", true, 1);
    if (operations[at].act != NULL) {
        run_times(operations[at].act, folder, times);
    } else if (strcmp(operations[at].name, "log") == 0) {
        append_times(folder, times);
    } else {
        authorize_times(times);
    }
    disk_destroy(disk);
    return file_remove_tree(folder, NULL) ? EXIT_SUCCESS : EXIT_FAILURE;
}
