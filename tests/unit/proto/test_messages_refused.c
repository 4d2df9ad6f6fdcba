/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/messages: what means nothing is refused by the name of its member. */
#include <string.h>

#include "proto/base/text/json.h"
#include "proto/limits.h"
#include "proto/limits_agent.h"
#include "proto/wire/messages.h"
#include "tests/unit/proto/proto_suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define TRY(type)                                                                                            \
    static bool try_##type(json_t *json, struct err *err)                                                    \
    {                                                                                                        \
        struct type message;                                                                                 \
        if (!type##_decode(json, &message, err)) {                                                           \
            return false;                                                                                    \
        }                                                                                                    \
        type##_finish(&message);                                                                             \
        return true;                                                                                         \
    }
TRY(register_message)
TRY(register_reply)
TRY(leave_message)
TRY(leave_reply)
TRY(heartbeat_message)
TRY(heartbeat_reply)
TRY(poll_message)
TRY(poll_reply)
TRY(report_message)
TRY(staging_message)
TRY(journal_message)
TRY(log_reply)

/* A sound message of each kind: with a member taken away, or with another type in its place, it is refused.
 */
struct sound {
    bool (*try)(json_t *json, struct err *err);
    const char *needed; /* an object of the members that must be there */
    const char *others; /* an object of those that may be absent */
};

static const struct sound sounds[] = {
    {try_register_message, "{'name':'n','boot_id':'b','host_id':'h','version':'1','address':'a'}",
     "{'protocol':1,'pool':'p','reserved':false,'slots':true,'isolation':'none','devices':[],'attempts':[]}"},
    {try_register_reply, "{'incarnation':1,'beat_ms':5000,'park_ms':25000}", "{}"},
    {try_leave_message, "{'node':'n','boot_id':'b','reason':'idle'}",
     "{'agent_id':'a','stop':true,'forget':true}"},
    {try_leave_reply, "{}", "{'gone':true}"},
    {try_heartbeat_message, "{'node':'n','boot_id':'b','seq':1}", "{'attempts':[],'samples':[]}"},
    {try_heartbeat_reply, "{}", "{'fenced':[1]}"},
    {try_poll_message, "{'node':'n','boot_id':'b','version':0}", "{}"},
    {try_poll_reply, "{'version':1,'live':[1]}",
     "{'orders':[],'shutdown':true,'restored_ms':2,'journal_since_ms':1,"
     "'stagings':[]}"},
    {try_report_message, "{'node':'n','boot_id':'b','epoch':1,'kind':'exited'}",
     "{'address':'a','master_port':1,'at_ms':1,'cause':'NONE','text':'t','ranks':[],'tails':[],'flushed':"
     "true,'said':'s','results':[]}"},
    {try_staging_message, "{'node':'n','boot_id':'b','key':'k','state':'ready'}",
     "{'by_user':true,'lasting':false,'text':'t'}"},
    {try_journal_message, "{'node':'n','boot_id':'b'}", "{'entries':[]}"},
    {try_log_reply, "{'received':1,'durable':1}", "{}"},
};
#define SOUNDS ((int)(sizeof sounds / sizeof sounds[0]))

static json_t *sound_json(const struct sound *sound)
{
    json_t *json = parse_quoted(sound->needed);
    autojson json_t *others = parse_quoted(sound->others);
    json_object_update(json, others);
    return json;
}

static void assert_names(const struct sound *sound, json_t *json, const char *member)
{
    struct err err = {0};
    ck_assert_msg(!sound->try(json, &err), "%s", member);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, member);
    ck_assert_msg(strstr(err.text, member) != NULL, "%s", err.text);
}

START_TEST(a_sound_message_is_taken)
{
    struct err err = {0};
    ck_assert_msg(sounds[_i].try(sound_json(&sounds[_i]), &err), "%s", err.text);
    ck_assert_msg(sounds[_i].try(parse_quoted(sounds[_i].needed), &err), "%s", err.text);
}
END_TEST

START_TEST(a_message_without_a_needed_member_is_refused)
{
    autojson json_t *needed = parse_quoted(sounds[_i].needed);
    for (void *at = json_object_iter(needed); at != NULL; at = json_object_iter_next(needed, at)) {
        json_t *json = sound_json(&sounds[_i]);
        json_object_del(json, json_object_iter_key(at));
        assert_names(&sounds[_i], json, json_object_iter_key(at));
    }
}
END_TEST

START_TEST(a_member_of_another_type_is_refused)
{
    autojson json_t *whole = sound_json(&sounds[_i]);
    for (void *at = json_object_iter(whole); at != NULL; at = json_object_iter_next(whole, at)) {
        json_t *json = sound_json(&sounds[_i]);
        json_object_set_new(json, json_object_iter_key(at), parse_quoted("{'x':1}"));
        assert_names(&sounds[_i], json, json_object_iter_key(at));
    }
}
END_TEST

START_TEST(a_body_that_is_no_object_is_refused)
{
    struct err err = {0};
    ck_assert(!sounds[_i].try(parse_quoted("[]"), &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert(!sounds[_i].try(NULL, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    bool empty_is_sound = strcmp(sounds[_i].needed, "{}") == 0;
    ck_assert(sounds[_i].try(parse_quoted("{}"), NULL) == empty_is_sound);
}
END_TEST

struct broken {
    bool (*try)(json_t *json, struct err *err);
    const char *needed;
    const char *member; /* as it is, with its fault */
    const char *field;
};

#define REPORT    "{'node':'n','boot_id':'b','epoch':1,'kind':'exited'}"
#define HEARTBEAT "{'node':'n','boot_id':'b','seq':1}"
#define NODE      "{'name':'n','boot_id':'b','host_id':'h','version':'1','address':'a'}"
#define STAGED    "{'node':'n','boot_id':'b','key':'k','state':'ready'}"
#define POLLED    "{'version':1,'live':[1]}"

static const struct broken brokens[] = {
    {try_report_message, REPORT, "{'epoch':0}", "epoch"},
    {try_report_message, REPORT, "{'epoch':-1}", "epoch"},
    {try_report_message, REPORT, "{'epoch':1.5}", "epoch"},
    {try_report_message, REPORT, "{'kind':'EXITED'}", "kind"},
    {try_report_message, REPORT, "{'cause':'none'}", "cause"},
    {try_report_message, REPORT, "{'master_port':65536}", "master_port"},
    {try_report_message, REPORT, "{'ranks':[{'rank':0,'code':0},{'rank':1}]}", "ranks[1].code"},
    {try_report_message, REPORT, "{'ranks':[{'rank':0,'code':256}]}", "ranks[0].code"},
    {try_report_message, REPORT, "{'ranks':[{'rank':-1,'code':0}]}", "ranks[0].rank"},
    {try_report_message, REPORT, "{'ranks':[7]}", "ranks[0].rank"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdin','offset':0,'base64':''}]}",
     "tails[0].stream"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdout','base64':''}]}", "tails[0].offset"},
    {try_report_message, REPORT, "{'tails':[{'rank':0,'stream':'stdout','offset':0}]}", "tails[0].base64"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value'},{'kind':'value'}]}",
     "results[1].rank"},
    {try_report_message, REPORT, "{'results':[{'rank':65536,'kind':'value'}]}", "results[0].rank"},
    {try_report_message, REPORT, "{'results':[{'rank':0}]}", "results[0].kind"},
    {try_report_message, REPORT, "{'start':7}", "start"},
    {try_report_message, REPORT, "{'use':7}", "use"},
    {try_report_message, REPORT, "{'use':{'idle_ms':0,'energy_mj':0}}", "measured_ms"},
    {try_report_message, REPORT, "{'use':{'measured_ms':-1,'idle_ms':0,'energy_mj':0}}", "measured_ms"},
    {try_report_message, REPORT, "{'use':{'measured_ms':5,'idle_ms':6,'energy_mj':0}}", "idle_ms"},
    {try_report_message, REPORT, "{'use':{'measured_ms':9000000000000000,'idle_ms':0,'energy_mj':0}}",
     "measured_ms"},
    {try_report_message, REPORT, "{'use':{'measured_ms':5,'idle_ms':0,'energy_mj':9000000000000000}}",
     "energy_mj"},
    {try_report_message, REPORT, "{'use':{'measured_ms':5,'idle_ms':5,'energy_mj':0,'io_read_bytes':-1}}",
     "io_read_bytes"},
    {try_report_message, REPORT, "{'timing':[]}", "timing"},
    {try_report_message, REPORT, "{'timing':{'running_us':-1}}", "running_us"},
    {try_report_message, REPORT, "{'timing':{'output_us':'soon'}}", "output_us"},
    {try_report_message, REPORT, "{'timing':{'marks':[{'rank':0,'after_us':1}]}}", "marks[0].name"},
    {try_report_message, REPORT, "{'timing':{'marks':[{'name':'','rank':0,'after_us':1}]}}", "marks[0].name"},
    {try_report_message, REPORT, "{'timing':{'marks':[{'name':'a\\\\b','rank':0,'after_us':1}]}}",
     "marks[0].name"},
    {try_report_message, REPORT,
     "{'timing':{'marks':[{'name':'12345678901234567890123456789012345678901','rank':0,'after_us':1}]}}",
     "marks[0].name"},
    {try_report_message, REPORT, "{'timing':{'marks':[{'name':'m','rank':65536,'after_us':1}]}}",
     "marks[0].rank"},
    {try_report_message, REPORT, "{'timing':{'marks':[{'name':'m','rank':0}]}}", "marks[0].after_us"},
    {try_report_message, REPORT, "{'timing':{'marks':[1,2,3,4,5,6,7,8,9]}}", "marks"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'VALUE'}]}", "results[0].kind"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','size':-1}]}", "results[0].size"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','sha256':1}]}", "results[0].sha256"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','base64':1}]}", "results[0].base64"},
    {try_report_message, REPORT, "{'results':[{'rank':0,'kind':'value','json':{}}]}", "results[0].json"},
    {try_register_message, NODE, "{'protocol':0}", "protocol"},
    {try_register_message, NODE, "{'isolation':'jail'}", "isolation"},
    {try_register_message, NODE, "{'expires_at_ms':-1}", "expires_at_ms"},
    {try_register_message, NODE, "{'word':-1}", "word"},
    /* M15: names that no path and no table can carry */
    {try_register_message, NODE, "{'name':'a/b'}", "name"},
    {try_register_message, NODE, "{'name':''}", "name"},
    {try_register_message, NODE,
     "{'name':'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'}", "name"},
    {try_register_message, NODE, "{'pool':'on demand'}", "pool"},
    {try_register_message, NODE, "{'address':''}", "address"},
    {try_register_message, NODE, "{'address':'10.0.0.1\\n'}", "address"},
    {try_register_message, NODE, "{'boot_id':'\\u001b[2J'}", "boot_id"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'\\t','type':'A10'}]}", "devices[0].uuid"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'u','type':'A10|H100'}]}", "devices[0].type"},
    {try_register_message, NODE, "{'devices':[{'index':0,'type':'A10'}]}", "devices[0].uuid"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'u'}]}", "devices[0].type"},
    {try_register_message, NODE, "{'devices':[{'index':-1,'uuid':'u','type':'A10'}]}", "devices[0].index"},
    {try_register_message, NODE, "{'labels':['zone=a']}", "labels"},
    {try_register_message, NODE, "{'labels':{'zone':'a b'}}", "labels.zone"},
    {try_register_message, NODE, "{'labels':{'zone':'a,b'}}", "labels.zone"},
    {try_register_message, NODE, "{'labels':{'pool':'a'}}", "labels.pool"},
    {try_register_message, NODE, "{'devices':[{'index':0,'uuid':'u','type':'A10','group':-2}]}",
     "devices[0].group"},
    {try_register_message, NODE, "{'attempts':[{'epoch':1,'state':'running'}]}", "attempts[0].state"},
    {try_register_message, NODE, "{'attempts':[{'state':'RUNNING'}]}", "attempts[0].epoch"},
    {try_heartbeat_reply, "{}", "{'fenced':[1,-1]}", "fenced[1]"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[1]}", "samples[0].epoch"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'at_ms':1,'step':0}]}", "samples[0].epoch"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'epoch':1,'at_ms':-1,'step':0}]}", "samples[0].at_ms"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'epoch':1,'at_ms':1}]}", "samples[0].step"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'epoch':1,'at_ms':1,'step':0,'cpu_percent':100.5}]}",
     "samples[0].cpu_percent"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'epoch':1,'at_ms':1,'step':0,'cpu_percent':'1'}]}",
     "samples[0].cpu_percent"},
    {try_heartbeat_message, HEARTBEAT, "{'samples':[{'epoch':1,'at_ms':1,'step':0,'memory_bytes':-1}]}",
     "samples[0].memory_bytes"},
    {try_heartbeat_message, HEARTBEAT,
     "{'samples':[{'epoch':1,'at_ms':1,'step':0,'gpus':[{},{'busy_percent':101}]}]}",
     "samples[0].gpus[1].busy_percent"},
    {try_poll_reply, POLLED, "{'live':[1,0]}", "live[1]"},
    {try_poll_reply, POLLED, "{'live':['1']}", "live[0]"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'go','job_id':'j'}]}", "orders[0].phase"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'stop'}]}", "orders[0].job_id"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'run','job_id':'j'}]}", "orders[0].spec"},
    {try_poll_reply, POLLED,
     "{'orders':[{'epoch':1,'phase':'run','job_id':'j','spec':{},'devices':[0,'1']}]}",
     "orders[0].devices[1]"},
    {try_poll_reply, POLLED, "{'orders':[{'epoch':1,'phase':'stop','job_id':'j','devices':[0,-1]}]}",
     "orders[0].devices[1]"},
    {try_poll_reply, POLLED, "{'stagings':[{'blobs':[]}]}", "stagings[0].key"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'k'}]}", "stagings[0].key"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'" HASH "','requirements':'x'}]}",
     "stagings[0].requirements"},
    {try_poll_reply, POLLED, "{'stagings':[{'key':'" HASH "','blobs':['" HASH "','x']}]}",
     "stagings[0].blobs[1]"},
    {try_staging_message, STAGED, "{'state':'READY'}", "state"},
    {try_staging_message, STAGED, "{'by_user':'yes'}", "by_user"},
    {try_staging_message, STAGED, "{'lasting':1}", "lasting"},
};
#define BROKENS ((int)(sizeof brokens / sizeof brokens[0]))

START_TEST(a_wrong_part_is_named_by_its_whole_path)
{
    const struct broken *broken = &brokens[_i];
    json_t *json = parse_quoted(broken->needed);
    autojson json_t *member = parse_quoted(broken->member);
    json_object_update(json, member);
    struct err err = {0};
    ck_assert_msg(!broken->try(json, &err), "%s", broken->member);
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, broken->field);
    ck_assert_msg(strncmp(err.text, broken->field, strlen(broken->field)) == 0, "%s", err.text);
}
END_TEST

START_TEST(more_results_than_a_node_has_ranks_are_refused)
{
    json_t *json = parse_quoted(REPORT);
    json_t *results = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_DEVICES; i++) {
        json_array_append_new(results, parse_quoted("{'rank':0,'kind':'value'}"));
    }
    json_object_set_new(json, "results", results);
    struct err err = {0};
    ck_assert(!try_report_message(json, &err));
    ck_assert_str_eq(err.field, "results");
}
END_TEST

START_TEST(more_stagings_than_a_node_may_have_are_refused)
{
    json_t *json = parse_quoted(POLLED);
    json_t *stagings = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_STAGINGS; i++) {
        json_array_append_new(stagings, parse_quoted("{'key':'" HASH "','blobs':[]}"));
    }
    json_object_set_new(json, "stagings", stagings);
    struct err err = {0};
    ck_assert(!try_poll_reply(json, &err));
    ck_assert_str_eq(err.field, "stagings");
}
END_TEST

START_TEST(more_items_than_a_node_can_have_are_refused)
{
    json_t *json = parse_quoted(POLLED);
    json_t *live = json_array();
    for (int64_t i = 0; i <= LIMIT_NODE_ATTEMPTS; i++) {
        json_array_append_new(live, json_integer(i + 1));
    }
    json_object_set_new(json, "live", live);
    struct err err = {0};
    ck_assert(!try_poll_reply(json, &err));
    ck_assert_str_eq(err.field, "live");
    ck_assert_str_eq(err.text, "live has 1025 items, the limit is 1024");
}
END_TEST

Suite *messages_refused_suite(void)
{
    Suite *suite = suite_create("messages_refused");
    TCase *refusals = tcase_create("refusals");
    tcase_add_loop_test(refusals, a_sound_message_is_taken, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_message_without_a_needed_member_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_member_of_another_type_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_body_that_is_no_object_is_refused, 0, SOUNDS);
    tcase_add_loop_test(refusals, a_wrong_part_is_named_by_its_whole_path, 0, BROKENS);
    tcase_add_test(refusals, more_results_than_a_node_has_ranks_are_refused);
    tcase_add_test(refusals, more_stagings_than_a_node_may_have_are_refused);
    tcase_add_test(refusals, more_items_than_a_node_can_have_are_refused);
    suite_add_tcase(suite, refusals);
    return suite;
}
