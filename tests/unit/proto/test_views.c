/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/views and proto/problem: the exact JSON that the API shows, and that it is read back. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/wire/audit.h"
#include "proto/wire/views.h"
#include "tests/unit/proto/proto_suites.h"

/* Writes a view, compares the text with `expected` (in single quotes), and reads it into `copy`, which must
 * write the same. */
#define SHOW(type, view, expected, copy)                                                                     \
    struct type copy;                                                                                        \
    do {                                                                                                     \
        autotext struct text first = {0};                                                                    \
        type##_encode(view, &first);                                                                         \
        assert_shows(first.bytes, expected);                                                                 \
        struct err err = {0};                                                                                \
        ck_assert_msg(type##_decode(json_parse(first.bytes, first.length, &err), &copy, &err), "%s",         \
                      err.text);                                                                             \
        autotext struct text second = {0};                                                                   \
        type##_encode(&copy, &second);                                                                       \
        ck_assert_str_eq(second.bytes, first.bytes);                                                         \
    } while (0)

static void assert_shows(const char *text, const char *expected)
{
    autofree char *quoted = xstrdup(expected);
    for (char *at = strchr(quoted, '\''); at != NULL; at = strchr(at, '\'')) {
        *at = '"';
    }
    ck_assert_str_eq(text, quoted);
}

/* --- jobs --- */

START_TEST(a_job_that_waits_shows_nulls)
{
    struct job_view view = {.id = "aaaaaaaaaaaaaaaa",
                            .state = JOB_QUEUED,
                            .owner = "ann",
                            .project = "default",
                            .gpus = 8,
                            .seq = 1,
                            .created_ms = 1795253400125,
                            .exit_code = -1,
                            .failed_rank = -1};
    SHOW(job_view, &view,
         "{'id':'aaaaaaaaaaaaaaaa','state':'QUEUED','name':null,'program':null,'owner':'ann','project':'"
         "default','gpus':8,"
         "'gpu_type':null,'pool':null,'priority':0,'time_limit_s':null,'attempt':0,'seq':1,'created_at':'"
         "2026-11-21T09:30:00.125Z',"
         "'started_at':null,'ended_at':null,'ran_s':0.000,'exit_code':null,'failed_rank':null,'failed_node':"
         "null,'idle_since':null,'kept_until':null,"
         "'cause':null,'reason':null,'array':null,'array_id':null,'task':null}",
         copy);
    ck_assert_int_eq(copy.created_ms, 1795253400125);
    ck_assert_int_eq(copy.started_ms, 0);
    ck_assert_int_eq(copy.exit_code, -1);
    ck_assert_int_eq(copy.failed_rank, -1);
    ck_assert_ptr_null(copy.name);
    ck_assert_ptr_null(copy.spec);
    job_view_finish(&copy);
    ck_assert_ptr_null(copy.json);
}
END_TEST

static struct placement_view placements[] = {
    {.node = "n1",
     .first_rank = 0,
     .local_ranks = 2,
     .devices = "0,1",
     .millicpus = 8000,
     .memory_bytes = 64,
     .isolation = "user",
     .state = MEMBER_EXITED},
    {.node = "n2",
     .node_rank = 1,
     .first_rank = 2,
     .local_ranks = 1,
     .devices = "3",
     .millicpus = 500,
     .state = MEMBER_LOST},
};

START_TEST(a_single_job_shows_spec_and_nodes)
{
    struct job_view view = {.id = "aaaaaaaaaaaaaaaa",
                            .state = JOB_FAILED,
                            .name = "my \"job\"",
                            .program = "train.py",
                            .owner = "ann",
                            .project = "p",
                            .gpus = 3,
                            .gpu_type = "A10",
                            .pool = "default",
                            .priority = -5,
                            .time_limit_ms = 90500,
                            .attempt = 2,
                            .seq = 7,
                            .created_ms = 1000,
                            .started_ms = 2000,
                            .ended_ms = 3000,
                            .ran_ms = 750,
                            .exit_code = 0,
                            .failed_rank = 0,
                            .failed_node = "n2",
                            .cause = CAUSE_NODE_LOST,
                            .reason = "n2 was fenced",
                            .spec = "{\"gpus\":3}",
                            .placements = placements,
                            .placement_count = 2};
    SHOW(job_view, &view,
         "{'id':'aaaaaaaaaaaaaaaa','state':'FAILED','name':'my "
         "\\'job\\'','program':'train.py','owner':'ann','project':'p','gpus':3,"
         "'gpu_type':'A10','pool':'default','priority':-5,'time_limit_s':90.500,'attempt':2,'seq':7,'created_"
         "at':'1970-01-01T00:00:01.000Z',"
         "'started_at':'1970-01-01T00:00:02.000Z','ended_at':'1970-01-01T00:00:03.000Z','ran_s':0.750,'exit_"
         "code':0,"
         "'failed_rank':0,'failed_node':'n2','idle_since':null,'kept_until':null,'cause':'NODE_LOST','reason'"
         ":'n2 was fenced',"
         "'array':null,'array_id':null,'task':null,'spec':{'gpus':3},"
         "'nodes':[{'node':'n1','node_rank':0,'first_rank':0,'local_ranks':2,'devices':'0,1','cpus':8.000,'"
         "memory_bytes':64,'isolation':'user','state':'EXITED'"
         "},"
         "{'node':'n2','node_rank':1,'first_rank':2,'local_ranks':1,'devices':'3','cpus':0.500,'memory_bytes'"
         ":0,'isolation':null,'state':'LOST'}]}",
         copy);
    ck_assert_int_eq(copy.exit_code, 0);
    ck_assert_int_eq(copy.failed_rank, 0);
    ck_assert_int_eq(copy.cause, CAUSE_NODE_LOST);
    ck_assert_int_eq(copy.priority, -5);
    ck_assert_int_eq(copy.time_limit_ms, 90500);
    ck_assert_int_eq(copy.ran_ms, 750);
    ck_assert_str_eq(copy.name, "my \"job\"");
    ck_assert_str_eq(copy.spec, "{\"gpus\":3}");
    ck_assert_uint_eq(copy.placement_count, 2);
    ck_assert_int_eq(copy.placements[1].state, MEMBER_LOST);
    job_view_finish(&copy);
}
END_TEST

START_TEST(a_single_job_that_waits_shows_no_nodes)
{
    struct job_view view = {.id = "a", .owner = "o", .project = "p", .exit_code = -1, .spec = "{}"};
    autotext struct text out = {0};
    job_view_encode(&view, &out);
    ck_assert_ptr_nonnull(strstr(out.bytes, "\"spec\":{},\"nodes\":[]}"));
}
END_TEST

START_TEST(an_array_shows_how_far_its_tasks_are)
{
    struct job_view view = {.id = "aaaaaaaaaaaaaaaa", .state = JOB_RUNNING, .owner = "o", .project = "p"};
    view.exit_code = view.failed_rank = view.task = -1;
    view.array = (struct array_view){.tasks = 20, .placed = 9, .running = 4, .succeeded = 3, .failed = 2};
    view.sweep = "[\"lr\"]";
    SHOW(job_view, &view,
         "{'id':'aaaaaaaaaaaaaaaa','state':'RUNNING','name':null,'program':null,'owner':'o','project':'p','"
         "gpus':0,"
         "'gpu_type':null,'pool':null,'priority':0,'time_limit_s':null,'attempt':0,'seq':0,'created_at':null,"
         "'started_at':null,"
         "'ended_at':null,'ran_s':0.000,'exit_code':null,'failed_rank':null,'failed_node':null,'idle_since':"
         "null,'kept_until':null,'cause':null,"
         "'reason':null,'array':{'tasks':20,'parallel':null,'placed':9,'running':4,'succeeded':3,"
         "'failed':2,'canceled':0,'sweep':['lr']},'array_id':null,'task':null}",
         copy);
    ck_assert_int_eq(copy.array.placed, 9);
    ck_assert_str_eq(copy.sweep, "[\"lr\"]");
    job_view_finish(&copy);
}
END_TEST

START_TEST(a_task_shows_its_array_and_its_values)
{
    struct job_view view = {.id = "aaaaaaaaaaaaaaaa", .state = JOB_QUEUED, .owner = "o", .project = "p"};
    view.exit_code = view.failed_rank = -1;
    view.array_id = "bbbbbbbbbbbbbbbb";
    view.sweep = "{\"lr\":\"0.1\"}";
    SHOW(job_view, &view,
         "{'id':'aaaaaaaaaaaaaaaa','state':'QUEUED','name':null,'program':null,'owner':'o','project':'p','"
         "gpus':0,"
         "'gpu_type':null,'pool':null,'priority':0,'time_limit_s':null,'attempt':0,'seq':0,'created_at':null,"
         "'started_at':null,"
         "'ended_at':null,'ran_s':0.000,'exit_code':null,'failed_rank':null,'failed_node':null,'idle_since':"
         "null,'kept_until':null,'cause':null,"
         "'reason':null,'array':null,'array_id':'bbbbbbbbbbbbbbbb','task':0,'sweep':{'lr':'0.1'}}",
         copy);
    ck_assert_int_eq(copy.task, 0);
    job_view_finish(&copy);
}
END_TEST

START_TEST(a_single_job_in_staging_shows_who_gets_it_ready)
{
    struct staging_view stagings[] = {
        {.node = "n1", .heard = true, .text = "Installing torch", .since_ms = 34500, .silent_ms = 20},
        {.node = "n2"},
    };
    struct job_view view = {.id = "aaaaaaaaaaaaaaaa",
                            .state = JOB_STAGING,
                            .owner = "o",
                            .project = "p",
                            .gpus = 2,
                            .created_ms = 1000,
                            .exit_code = -1,
                            .failed_rank = -1,
                            .spec = "{}",
                            .stagings = stagings,
                            .staging_count = 2};
    SHOW(job_view, &view,
         "{'id':'aaaaaaaaaaaaaaaa','state':'STAGING','name':null,'program':null,'owner':'o','project':'p','"
         "gpus':2,"
         "'gpu_type':null,'pool':null,'priority':0,'time_limit_s':null,'attempt':0,'seq':0,'created_at':'"
         "1970-01-01T00:00:01.000Z',"
         "'started_at':null,'ended_at':null,'ran_s':0.000,'exit_code':null,'failed_rank':null,'failed_node':"
         "null,'idle_since':null,'kept_until':null,"
         "'cause':null,'reason':null,'array':null,'array_id':null,'task':null,"
         "'spec':{},'nodes':[],"
         "'staging':[{'node':'n1','state':'building','text':'Installing torch','since_s':34.500,'silent_s':"
         "0.020},"
         "{'node':'n2','state':'told','text':null,'since_s':0.000,'silent_s':0.000}]}",
         copy);
    ck_assert_uint_eq(copy.staging_count, 2);
    ck_assert(copy.stagings[0].heard && !copy.stagings[1].heard);
    ck_assert_int_eq(copy.stagings[0].since_ms, 34500);
    job_view_finish(&copy);
}
END_TEST

START_TEST(finish_leaves_what_an_encode_only_borrowed)
{
    char spec[] = "{}";
    struct job_view view = {.id = "a", .spec = spec, .placements = placements, .placement_count = 2};
    job_view_finish(&view);
    ck_assert_ptr_null(view.spec);
    ck_assert_str_eq(spec, "{}");
}
END_TEST

/* --- events, nodes, tokens --- */

START_TEST(an_event_shows_its_detail_as_json)
{
    struct event_view view = {.job_id = "a",
                              .seq = 3,
                              .at_ms = 1000,
                              .kind = EVENT_CANCEL_ASKED,
                              .attempt = 1,
                              .detail = "{\"by\":\"ann\"}"};
    SHOW(event_view, &view,
         "{'job_id':'a','seq':3,'at':'1970-01-01T00:00:01.000Z','kind':'cancel_asked','attempt':1,"
         "'detail':{'by':'ann'}}",
         copy);
    ck_assert_int_eq(copy.kind, EVENT_CANCEL_ASKED);
    ck_assert_int_eq(copy.at_ms, 1000);
    ck_assert_str_eq(copy.detail, "{\"by\":\"ann\"}");
    event_view_finish(&copy);
}
END_TEST

START_TEST(an_event_without_detail_shows_null)
{
    struct event_view view = {.job_id = "a", .seq = 1, .at_ms = 1, .kind = EVENT_SUBMITTED};
    SHOW(
        event_view, &view,
        "{'job_id':'a','seq':1,'at':'1970-01-01T00:00:00.001Z','kind':'submitted','attempt':0,'detail':null}",
        copy);
    ck_assert_ptr_null(copy.detail);
    event_view_finish(&copy);
}
END_TEST

START_TEST(a_node_shows_its_devices_and_the_age_of_its_heartbeat)
{
    struct node_view view = {.name = "n1",
                             .state = NODE_DRAINING,
                             .pool = "reserved",
                             .pool_kind = POOL_RESERVED,
                             .gpu_type = "A10",
                             .gpus = 4,
                             .free_gpus = 1,
                             .unavailable_gpus = 1,
                             .unavailable = "GPU is lost",
                             .millicpus = 64000,
                             .free_millicpus = 1500,
                             .memory_bytes = 512,
                             .free_memory_bytes = 7,
                             .address = "10.0.0.1",
                             .version = "0.1.0",
                             .host_id = "h",
                             .isolation = ISOLATION_CGROUP1,
                             .slots = true,
                             .heartbeat_age_ms = 12034,
                             .reason = "new fan",
                             .labels = "{\"zone\":\"a\"}",
                             .expires_ms = 1795253400125,
                             .window_from_ms = 1000,
                             .window_until_ms = 2000,
                             .window_hard = true,
                             .devices = "[{\"index\":0}]"};
    SHOW(node_view, &view,
         "{'name':'n1','state':'DRAINING','pool':'reserved','pool_kind':'reserved','gpu_type':'A10','gpus':4,"
         "'free_gpus':1,'unavailable_gpus':1,'unavailable':'GPU is "
         "lost','cpus':64.000,'free_cpus':1.500,'memory_bytes':512,'free_memory_bytes':7,'address':'10.0.0.1'"
         ",'version':'0.1.0','host_id':'h','isolation':'cgroup1','slots':"
         "true,"
         "'beat_age_s':12.034,'reason':'new "
         "fan','labels':{'zone':'a'},'expires_at':'2026-11-21T09:30:00.125Z',"
         "'window':{'from':'1970-01-01T00:00:01.000Z','until':'1970-01-01T00:00:02.000Z','hard':true},"
         "'devices':[{'index':0}]}",
         copy);
    ck_assert_int_eq(copy.expires_ms, 1795253400125);
    ck_assert_int_eq(copy.window_until_ms, 2000);
    ck_assert_int_eq(copy.state, NODE_DRAINING);
    ck_assert_int_eq(copy.pool_kind, POOL_RESERVED);
    ck_assert_int_eq(copy.heartbeat_age_ms, 12034);
    ck_assert_str_eq(copy.labels, "{\"zone\":\"a\"}");
    ck_assert_str_eq(copy.devices, "[{\"index\":0}]");
    node_view_finish(&copy);
}
END_TEST

START_TEST(a_node_that_never_heartbeat_shows_null)
{
    struct node_view view = {.name = "n1", .heartbeat_age_ms = -1};
    SHOW(node_view, &view,
         "{'name':'n1','state':'READY','pool':null,'pool_kind':'on-demand','gpu_type':null,'gpus':0,'free_"
         "gpus':0,'unavailable_gpus':0,'unavailable':null,'cpus':0.000,'free_cpus':0.000,'memory_bytes':0,'"
         "free_memory_bytes':0,"
         "'address':null,'version':null,'host_id':null,'isolation':'none','slots':false,'beat_age_s':null,"
         "'reason':null,'labels':null,'expires_at':null,'window':null,'devices':null}",
         copy);
    ck_assert_int_eq(copy.heartbeat_age_ms, -1);
    ck_assert_ptr_null(copy.devices);
    node_view_finish(&copy);
}
END_TEST

START_TEST(a_window_shows_whose_it_is)
{
    struct window_view view = {.id = "w",
                               .nodes = "[\"n1\",\"n2\"]",
                               .from_ms = 1000,
                               .until_ms = 2000,
                               .hard = true,
                               .reason = "fan",
                               .owner = "ann",
                               .created_ms = 500};
    SHOW(window_view, &view,
         "{'id':'w','nodes':['n1','n2'],'pool':null,'from':'1970-01-01T00:00:01.000Z',"
         "'until':'1970-01-01T00:00:02.000Z','hard':true,'reason':'fan','owner':'ann',"
         "'created_at':'1970-01-01T00:00:00.500Z'}",
         copy);
    ck_assert_int_eq(copy.until_ms, 2000);
    ck_assert_str_eq(copy.nodes, "[\"n1\",\"n2\"]");
    window_view_finish(&copy);
}
END_TEST

START_TEST(a_token_shows_its_secret_only_when_it_has_one)
{
    struct token_view view = {
        .id = "t", .role = ROLE_USER, .owner = "ann", .created_ms = 1000, .revoked = true};
    SHOW(token_view, &view,
         "{'id':'t','role':'user','owner':'ann','created_at':'1970-01-01T00:00:01.000Z','expires_at':null,"
         "'revoked':true,'last_used_at':null}",
         listed);
    ck_assert_ptr_null(listed.secret);
    token_view_finish(&listed);
    view.revoked = false;
    view.expires_ms = 2000;
    view.used_ms = 1500;
    view.secret = "s";
    SHOW(token_view, &view,
         "{'id':'t','role':'user','owner':'ann','created_at':'1970-01-01T00:00:01.000Z',"
         "'expires_at':'1970-01-01T00:00:02.000Z','revoked':false,"
         "'last_used_at':'1970-01-01T00:00:01.500Z','secret':'s'}",
         made);
    ck_assert_str_eq(made.secret, "s");
    ck_assert_int_eq(made.expires_ms, 2000);
    ck_assert_int_eq(made.used_ms, 1500);
    token_view_finish(&made);
    view.secret = NULL;
    view.project = "web";
    view.subject = "i a1";
    view.groups = "\nml\n";
    SHOW(token_view, &view,
         "{'id':'t','role':'user','owner':'ann','created_at':'1970-01-01T00:00:01.000Z',"
         "'expires_at':'1970-01-01T00:00:02.000Z','revoked':false,"
         "'last_used_at':'1970-01-01T00:00:01.500Z','project':'web','subject':'i a1','groups':'\\nml\\n'}",
         bound);
    ck_assert_str_eq(bound.groups, "\nml\n");
    token_view_finish(&bound);
}
END_TEST

START_TEST(a_row_of_the_audit_reads_back_with_the_same_hash)
{
    const uint8_t before[HASH_BYTES] = {1};
    uint8_t hash[HASH_BYTES], again[HASH_BYTES], other[HASH_BYTES];
    struct audit_view view = {.seq = 7,
                              .at_ms = 1500,
                              .owner = "ann",
                              .role = ROLE_ADMIN,
                              .token = "aaaaaaaa",
                              .address = "::1",
                              .method = "POST",
                              .path = "/v1/nodes/n1/drain",
                              .status = 200,
                              .detail = "{\"reason\":\"a fan\"}",
                              .hash = "00"};
    SHOW(audit_view, &view,
         "{'seq':7,'at':'1970-01-01T00:00:01.500Z','owner':'ann','role':'admin','token':'aaaaaaaa',"
         "'address':'::1','method':'POST','path':'/v1/nodes/n1/drain','subject':null,'status':200,"
         "'code':null,'detail':'{\\'reason\\':\\'a fan\\'}','hash':'00'}",
         copy);
    audit_hash(before, &view, hash);
    audit_hash(before, &copy, again);
    ck_assert_mem_eq(hash, again, HASH_BYTES);
    copy.subject = copy.detail; /* the same bytes in another place */
    copy.detail = NULL;
    audit_hash(before, &copy, other);
    ck_assert_mem_ne(hash, other, HASH_BYTES);
    audit_view_finish(&copy);
}
END_TEST

/* --- refusals --- */

#define TRY(type)                                                                                            \
    static bool try_##type(json_t *json, struct err *err)                                                    \
    {                                                                                                        \
        struct type view;                                                                                    \
        if (!type##_decode(json, &view, err)) {                                                              \
            return false;                                                                                    \
        }                                                                                                    \
        type##_finish(&view);                                                                                \
        return true;                                                                                         \
    }
TRY(job_view)
TRY(event_view)
TRY(node_view)
TRY(token_view)

struct broken {
    bool (*try)(json_t *json, struct err *err);
    const char *json;
    const char *field;
};

static const struct broken brokens[] = {
    {try_job_view, "{'state':'QUEUED'}", "id"},
    {try_job_view, "{'id':'a'}", "state"},
    {try_job_view, "{'id':'a','state':'Queued'}", "state"},
    {try_job_view, "{'id':'a','state':'QUEUED','created_at':'today'}", "created_at"},
    {try_job_view, "{'id':'a','state':'QUEUED','created_at':7}", "created_at"},
    {try_job_view, "{'id':'a','state':'QUEUED','exit_code':256}", "exit_code"},
    {try_job_view, "{'id':'a','state':'QUEUED','cause':'none'}", "cause"},
    {try_job_view, "{'id':'a','state':'QUEUED','nodes':{}}", "nodes"},
    {try_job_view, "{'id':'a','state':'QUEUED','spec':{},'nodes':[{'node':'n'}]}", "nodes[0].state"},
    {try_event_view, "{'seq':1,'kind':'placed'}", "job_id"},
    {try_event_view, "{'job_id':'a','kind':'placed'}", "seq"},
    {try_event_view, "{'job_id':'a','seq':1}", "kind"},
    {try_event_view, "{'job_id':'a','seq':1,'kind':'x'}", "kind"},
    {try_node_view, "{'state':'READY'}", "name"},
    {try_node_view, "{'name':'n'}", "state"},
    {try_node_view, "{'name':'n','state':'READY','pool_kind':'x'}", "pool_kind"},
    {try_node_view, "{'name':'n','state':'READY','isolation':'x'}", "isolation"},
    {try_node_view, "{'name':'n','state':'READY','beat_age_s':-1}", "beat_age_s"},
    {try_token_view, "{'role':'user'}", "id"},
    {try_token_view, "{'id':'t'}", "role"},
    {try_token_view, "{'id':'t','role':'root'}", "role"},
    {try_token_view, "{'id':'t','role':'user','expires_at':'never'}", "expires_at"},
};
#define BROKENS ((int)(sizeof brokens / sizeof brokens[0]))

START_TEST(a_view_that_means_nothing_is_refused)
{
    struct err err = {0};
    ck_assert_msg(!brokens[_i].try(parse_quoted(brokens[_i].json), &err), "%s", brokens[_i].json);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, brokens[_i].field);
}
END_TEST

START_TEST(a_view_that_is_no_object_is_refused)
{
    struct err err = {0};
    ck_assert(!try_job_view(parse_quoted("[]"), &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert(!try_event_view(NULL, &err));
    ck_assert(!try_node_view(parse_quoted("1"), &err));
    ck_assert(!try_token_view(parse_quoted("null"), &err));
}
END_TEST

START_TEST(members_that_are_not_known_are_ignored)
{
    struct err err = {0};
    ck_assert_msg(try_job_view(parse_quoted("{'id':'a','state':'QUEUED','mood':[]}"), &err), "%s", err.text);
}
END_TEST

/* --- problems --- */

START_TEST(a_problem_shows_all_that_an_error_knows)
{
    struct err err;
    err_field(&err, ERR_FIELD, "gpus", "ask for \"1\"", "gpus must be at least %d", 1);
    autotext struct text out = {0};
    problem_encode(&err, &out);
    assert_shows(out.bytes,
                 "{'type':'urn:gpuctl:problem:invalid_field','title':'A field has a value that is not "
                 "allowed','status':422,'detail':'gpus must be at least 1','code':'invalid_field',"
                 "'field':'gpus','hint':'ask for \\'1\\'','retryable':false}");
    struct err copy;
    problem_decode(out.bytes, out.length, 422, &copy);
    ck_assert_int_eq(copy.code, ERR_FIELD);
    ck_assert_str_eq(copy.text, err.text);
    ck_assert_str_eq(copy.field, err.field);
    ck_assert_str_eq(copy.hint, err.hint);
}
END_TEST

START_TEST(every_error_survives_http)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        struct err err;
        err_set(&err, (enum err_code)code, "it is so");
        autotext struct text out = {0};
        problem_encode(&err, &out);
        autojson json_t *json = json_parse(out.bytes, out.length, &err);
        ck_assert_int_ge(json_integer_value(json_object_get(json, "status")), 400);
        ck_assert(json_is_null(json_object_get(json, "field")));
        ck_assert(json_is_null(json_object_get(json, "hint")));
        problem_decode(out.bytes, out.length, 400, &err);
        ck_assert_int_eq(err.code, code);
    }
}
END_TEST

START_TEST(any_other_answer_becomes_an_error_that_names_its_status)
{
    static const struct {
        const char *body;
        int status;
        enum err_code code;
    } answers[] = {
        {"<html>Bad Gateway</html>", 502, ERR_UNAVAILABLE},
        {"", 503, ERR_UNAVAILABLE},
        {"", 504, ERR_UNAVAILABLE},
        {"{}", 400, ERR_MALFORMED},
        {"null", 401, ERR_UNAUTHENTICATED},
        {"[1]", 403, ERR_FORBIDDEN},
        {"{\"code\":7,\"detail\":\"x\"}", 404, ERR_NOT_FOUND},
        {"{\"code\":\"io\"}", 413, ERR_TOO_LARGE},
        {"{\"code\":\"io\",\"detail\":\"x\",\"hint\":1}", 429, ERR_TOO_MANY},
        {"{\"detail\":\"x\"}", 500, ERR_INTERNAL},
        {"{\"code\":\"io\",\"detail\":\"\"}", 500, ERR_INTERNAL},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct err err;
        problem_decode(answers[i].body, strlen(answers[i].body), answers[i].status, &err);
        ck_assert_msg(err.code == answers[i].code, "%s", answers[i].body);
        autofree char *named = xprintf("HTTP %d", answers[i].status);
        ck_assert_msg(strstr(err.text, named) != NULL, "%s", err.text);
    }
}
END_TEST

START_TEST(a_code_of_a_later_version_keeps_its_words)
{
    const char *body = "{\"code\":\"brand_new\",\"detail\":\"it is new\"}";
    struct err err;
    problem_decode(body, strlen(body), 422, &err);
    ck_assert_int_eq(err.code, ERR_INTERNAL);
    ck_assert_str_eq(err.text, "it is new");
}
END_TEST

Suite *views_suite(void)
{
    Suite *suite = suite_create("views");
    TCase *views = tcase_create("views");
    tcase_add_test(views, a_job_that_waits_shows_nulls);
    tcase_add_test(views, a_single_job_shows_spec_and_nodes);
    tcase_add_test(views, a_single_job_that_waits_shows_no_nodes);
    tcase_add_test(views, an_array_shows_how_far_its_tasks_are);
    tcase_add_test(views, a_task_shows_its_array_and_its_values);
    tcase_add_test(views, a_single_job_in_staging_shows_who_gets_it_ready);
    tcase_add_test(views, finish_leaves_what_an_encode_only_borrowed);
    tcase_add_test(views, an_event_shows_its_detail_as_json);
    tcase_add_test(views, an_event_without_detail_shows_null);
    tcase_add_test(views, a_node_shows_its_devices_and_the_age_of_its_heartbeat);
    tcase_add_test(views, a_node_that_never_heartbeat_shows_null);
    tcase_add_test(views, a_window_shows_whose_it_is);
    tcase_add_test(views, a_token_shows_its_secret_only_when_it_has_one);
    tcase_add_test(views, a_row_of_the_audit_reads_back_with_the_same_hash);
    tcase_add_loop_test(views, a_view_that_means_nothing_is_refused, 0, BROKENS);
    tcase_add_test(views, a_view_that_is_no_object_is_refused);
    tcase_add_test(views, members_that_are_not_known_are_ignored);
    suite_add_tcase(suite, views);
    TCase *problems = tcase_create("problems");
    tcase_add_test(problems, a_problem_shows_all_that_an_error_knows);
    tcase_add_test(problems, every_error_survives_http);
    tcase_add_test(problems, any_other_answer_becomes_an_error_that_names_its_status);
    tcase_add_test(problems, a_code_of_a_later_version_keeps_its_words);
    suite_add_tcase(suite, problems);
    return suite;
}
