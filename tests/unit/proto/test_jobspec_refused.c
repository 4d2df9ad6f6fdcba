/* SPDX-License-Identifier: Apache-2.0 */
/* What job specs refuse, with code, field and remedy. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "proto/spec/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/proto/jobspec_rig.h"
#include "tests/unit/proto/proto_suites.h"

struct refused {
    const char *members;
    enum err_code code;
    const char *field;
};

#define ONE_FILE(rest) "{'files':[{'path':'a','text':''},{" rest "}]}"

static const struct refused refuseds[] = {
    {"{'gpus':null}", ERR_FIELD, "gpus"},
    {"{'gpus':3,'nodes':2}", ERR_FIELD, "nodes"},
    {"{'gpus':2,'nodes':0}", ERR_FIELD, "nodes"},
    {"{'gpus':2,'nodes':2,'remote':false,'host_id':'" HASH "'}", ERR_FIELD, "nodes"},
    {"{'gpus':0,'gpu_type':'A10'}", ERR_FIELD, "gpu_type"},
    {"{'gpus':0,'nodes':2}", ERR_FIELD, "nodes"},
    {"{'cpus':0}", ERR_FIELD, "cpus"},
    {"{'cpus':-2}", ERR_FIELD, "cpus"},
    {"{'cpus':1.0005}", ERR_FIELD, "cpus"},
    {"{'cpus':1048577}", ERR_FIELD, "cpus"},
    {"{'cpus':'4'}", ERR_FIELD, "cpus"},
    {"{'gpus':8,'cpus':0.007}", ERR_FIELD, "cpus"},
    {"{'memory':1048576}", ERR_FIELD, "memory"},
    {"{'memory':'1025T'}", ERR_FIELD, "memory"},
    {"{'memory':'much'}", ERR_FIELD, "memory"},
    {"{'gpus':8,'memory':'31M'}", ERR_FIELD, "memory"},
    {"{'gpus':-1}", ERR_FIELD, "gpus"},
    {"{'gpus':65537}", ERR_FIELD, "gpus"},
    {"{'gpus':1.5}", ERR_FIELD, "gpus"},
    {"{'gpus':'1'}", ERR_FIELD, "gpus"},
    {"{'command':null}", ERR_FIELD, "command"},
    {"{'command':'python train.py'}", ERR_FIELD, "command"},
    {"{'command':{}}", ERR_FIELD, "command"},
    {"{'command':[]}", ERR_FIELD, "command"},
    {"{'command':['']}", ERR_FIELD, "command[0]"},
    {"{'command':['x',1]}", ERR_FIELD, "command[1]"},
    {"{'gpu':1}", ERR_UNKNOWN_FIELD, "gpu"},
    {"{'unheard of':1}", ERR_UNKNOWN_FIELD, "unheard of"},
    {"{'name':''}", ERR_FIELD, "name"},
    {"{'name':'two words'}", ERR_FIELD, "name"},
    {"{'name':7}", ERR_FIELD, "name"},
    {"{'name':'" HASH "'}", ERR_FIELD, "name"},
    {"{'gpu_type':''}", ERR_FIELD, "gpu_type"},
    {"{'gpu_type':'" HASH "'}", ERR_FIELD, "gpu_type"},
    {"{'pool':'/'}", ERR_FIELD, "pool"},
    {"{'project':[]}", ERR_FIELD, "project"},
    {"{'remote':1}", ERR_FIELD, "remote"},
    {"{'remote':false}", ERR_FIELD, "host_id"},
    {"{'host_id':'me'}", ERR_FIELD, "host_id"},
    {"{'host_id':'" HASH "0'}", ERR_FIELD, "host_id"},
    {"{'host_id':7}", ERR_FIELD, "host_id"},
    {"{'use_reserved_pool':'auto'}", ERR_FIELD, "use_reserved_pool"},
    {"{'launch_mode':'mpi'}", ERR_FIELD, "launch_mode"},
    {"{'launch_mode':1}", ERR_FIELD, "launch_mode"},
    {"{'on_disconnect':'stop'}", ERR_FIELD, "on_disconnect"},
    {"{'on_disconnect':true}", ERR_FIELD, "on_disconnect"},
    {"{'workdir':'data'}", ERR_FIELD, "workdir"},
    {"{'workdir':''}", ERR_FIELD, "workdir"},
    {"{'python':''}", ERR_FIELD, "python"},
    {"{'python':3}", ERR_FIELD, "python"},
    {"{'image':''}", ERR_FIELD, "image"},
    {"{'image':7}", ERR_FIELD, "image"},
    {"{'image':'-x'}", ERR_FIELD, "image"},
    {"{'image':'a b'}", ERR_FIELD, "image"},
    {"{'image':'docker://a'}", ERR_FIELD, "image"},
    {"{'image':'a@sha256:12'}", ERR_FIELD, "image"},
    {"{'image':'a@md5:" HASH "'}", ERR_FIELD, "image"},
    {"{'image':'a@sha256:" HASH "x'}", ERR_FIELD, "image"},
    {"{'image':'a','image_secret':'9'}", ERR_FIELD, "image_secret"},
    {"{'image_secret':'A'}", ERR_FIELD, "image_secret"},
    {"{'image':'a','worker_image':'b c'}", ERR_FIELD, "worker_image"},
    {"{'image':'a','worker_image':'b@sha256:12'}", ERR_FIELD, "worker_image"},
    {"{'worker_image':'a','image_secret':'A'}", ERR_FIELD, "worker_image"},
    {"{'image':'a','environment':{'requirements':[]}}", ERR_FIELD, "environment"},
    {"{'volumes':{}}", ERR_FIELD, "volumes"},
    {"{'volumes':['a','b','c','d','e','f','g','h','i']}", ERR_FIELD, "volumes"},
    {"{'volumes':['a.b','a_b']}", ERR_FIELD, "volumes[1]"},
    {"{'volumes':['a',7]}", ERR_FIELD, "volumes[1]"},
    {"{'volumes':['']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':[':ro']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:/']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:/data/']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:data']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:/data/../etc']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:/etc/x:ro']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a:/tmp']}", ERR_FIELD, "volumes[0]"},
    {"{'volumes':['a','a:/data']}", ERR_FIELD, "volumes[1]"},
    {"{'volumes':['a:/data','b:/data/b']}", ERR_FIELD, "volumes[1]"},
    {"{'volumes':['a:/data'],'checkpoint_volume':'/data'}", ERR_FIELD, "checkpoint_volume"},
    {"{'volumes':['a:/data'],'checkpoint_volume':'b'}", ERR_FIELD, "checkpoint_volume"},
    {"{'volumes':['a:/data:ro'],'checkpoint_volume':'a'}", ERR_FIELD, "checkpoint_volume"},
    {"{'volumes':['a:/data'],'checkpoint_volume':['a']}", ERR_FIELD, "checkpoint_volume"},
    {"{'checkpoint_volume':'a'}", ERR_FIELD, "checkpoint_volume"},
    {"{'inputs':{}}", ERR_FIELD, "inputs"},
    {"{'inputs':['https://h/x',7]}", ERR_FIELD, "inputs[1]"},
    {"{'inputs':['']}", ERR_FIELD, "inputs[0]"},
    {"{'inputs':['n=']}", ERR_FIELD, "inputs[0]"},
    {"{'inputs':['n o=https://h/x']}", ERR_FIELD, "inputs[0]"},
    {"{'inputs':['https://h/x:/data/../etc']}", ERR_FIELD, "inputs[0]"},
    {"{'inputs':['https://h/x#secret=S&secret=T']}", ERR_FIELD, "inputs[0]"},
    {"{'inputs':['volume:a b/x']}", ERR_FIELD, "inputs[0]"},
    {"{'volumes':['a:/data'],'inputs':['https://h/x:/data/b']}", ERR_FIELD, "inputs[0]"},
    {"{'secrets':{}}", ERR_FIELD, "secrets"},
    {"{'secrets':['A','B','C','D','E','F','G','H','I','J','K','L','M','N','O','P','Q']}", ERR_FIELD,
     "secrets"},
    {"{'secrets':['A',7]}", ERR_FIELD, "secrets[1]"},
    {"{'secrets':['']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['9A']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A-B']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A=']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A=9B']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A=B:files']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A:file=B']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A123456789012345678901234567890123456789012345678901234567890123']}", ERR_FIELD,
     "secrets[0]"},
    {"{'secrets':['A=A123456789012345678901234567890123456789012345678901234567890123']}", ERR_FIELD,
     "secrets[0]"},
    {"{'secrets':['A=MASTER_PORT']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A=GPUCTL_X']}", ERR_FIELD, "secrets[0]"},
    {"{'secrets':['A','B=A']}", ERR_FIELD, "secrets[1]"},
    {"{'secrets':['A','A']}", ERR_FIELD, "secrets[1]"},
    {"{'secrets':['A','B'],'env':{'B':'x'}}", ERR_FIELD, "secrets[1]"},
    {"{'secrets':['A','B'],'sweep':{'B':[1,2]}}", ERR_FIELD, "secrets[1]"},
    {"{'priority':1001}", ERR_FIELD, "priority"},
    {"{'priority':-1001}", ERR_FIELD, "priority"},
    {"{'time_limit_s':-1}", ERR_FIELD, "time_limit_s"},
    {"{'time_limit_s':'1h'}", ERR_FIELD, "time_limit_s"},
    {"{'time_limit_s':31622401}", ERR_FIELD, "time_limit_s"},
    {"{'grace_s':3601}", ERR_FIELD, "grace_s"},
    {"{'keep_on_failure_s':86401}", ERR_FIELD, "keep_on_failure_s"},
    {"{'early_signal':'USR1@60'}", ERR_FIELD, "early_signal"},
    {"{'early_signal':{}}", ERR_FIELD, "early_signal.signal"},
    {"{'early_signal':{'signal':'KILL'}}", ERR_FIELD, "early_signal.signal"},
    {"{'early_signal':{'signal':'none'}}", ERR_FIELD, "early_signal.signal"},
    {"{'early_signal':{'signal':10}}", ERR_FIELD, "early_signal.signal"},
    {"{'early_signal':{'signal':'USR1','before_s':0}}", ERR_FIELD, "early_signal.before_s"},
    {"{'early_signal':{'signal':'USR1','before_s':'1m'}}", ERR_FIELD, "early_signal.before_s"},
    {"{'early_signal':{'signal':'USR1','before':60}}", ERR_UNKNOWN_FIELD, "early_signal.before"},
    {"{'time_limit_s':60,'early_signal':{'signal':'USR1','before_s':60}}", ERR_FIELD,
     "early_signal.before_s"},
    {"{'time_limit_s':30,'early_signal':{'signal':'USR1'}}", ERR_FIELD, "early_signal.before_s"},
    {"{'lease_s':59}", ERR_FIELD, "lease_s"},
    {"{'lease_s':86401}", ERR_FIELD, "lease_s"},
    {"{'retries':101}", ERR_FIELD, "retries"},
    {"{'retries':-1}", ERR_FIELD, "retries"},
    {"{'infra_retries':101}", ERR_FIELD, "infra_retries"},
    {"{'env':[]}", ERR_FIELD, "env"},
    {"{'env':{'A':1}}", ERR_FIELD, "env.A"},
    {"{'env':{'':'x'}}", ERR_FIELD, "env."},
    {"{'env':{'9A':'x'}}", ERR_FIELD, "env.9A"},
    {"{'env':{'A=B':'x'}}", ERR_FIELD, "env.A=B"},
    {"{'env':{'RANK':'0'}}", ERR_FIELD, "env.RANK"},
    {"{'env':{'WORLD_SIZE':'0'}}", ERR_FIELD, "env.WORLD_SIZE"},
    {"{'env':{'LOCAL_RANK':'0'}}", ERR_FIELD, "env.LOCAL_RANK"},
    {"{'env':{'MASTER_ADDR':'x'}}", ERR_FIELD, "env.MASTER_ADDR"},
    {"{'env':{'MASTER_PORT':'1'}}", ERR_FIELD, "env.MASTER_PORT"},
    {"{'env':{'CUDA_VISIBLE_DEVICES':''}}", ERR_FIELD, "env.CUDA_VISIBLE_DEVICES"},
    {"{'env':{'GPUCTL_SOCKET':'x'}}", ERR_FIELD, "env.GPUCTL_SOCKET"},
    {"{'labels':'x'}", ERR_FIELD, "labels"},
    {"{'labels':{'a b':'x'}}", ERR_FIELD, "labels.a b"},
    {"{'labels':{'a':1}}", ERR_FIELD, "labels.a"},
    {"{'files':{}}", ERR_FIELD, "files"},
    {"{'files':['a']}", ERR_FIELD, "files[0]"},
    {ONE_FILE("'text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':7,'text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'/etc/passwd','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'b/','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'b//c','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'b/../../c','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'..','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'./b','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'" HASH HASH HASH HASH "','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'a','text':''"), ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'a/b','text':''"), ERR_FIELD, "files[1].path"},
    {"{'files':[{'path':'b/c','text':''},{'path':'b','text':''}]}", ERR_FIELD, "files[1].path"},
    {ONE_FILE("'path':'b'"), ERR_FIELD, "files[1]"},
    {ONE_FILE("'path':'b','text':'','base64':''"), ERR_FIELD, "files[1]"},
    {ONE_FILE("'path':'b','text':1"), ERR_FIELD, "files[1].text"},
    {ONE_FILE("'path':'b','base64':'a'"), ERR_FIELD, "files[1].base64"},
    {ONE_FILE("'path':'b','base64':'a-_='"), ERR_FIELD, "files[1].base64"},
    {ONE_FILE("'path':'b','base64':1"), ERR_FIELD, "files[1].base64"},
    {ONE_FILE("'path':'b','blob':'x'"), ERR_FIELD, "files[1].blob"},
    {ONE_FILE("'path':'b','blob':1"), ERR_FIELD, "files[1].blob"},
    {ONE_FILE("'path':'b','text':'','executable':'yes'"), ERR_FIELD, "files[1].executable"},
    {ONE_FILE("'path':'b','text':'','mode':493"), ERR_UNKNOWN_FIELD, "files[1].mode"},
    {"{'function':'x'}", ERR_FIELD, "function"},
    {"{'function':{}}", ERR_FIELD, "function"},
    {"{'function':{'inline':null}}", ERR_FIELD, "function"},
    {"{'function':{'modules':'" HASH "'}}", ERR_FIELD, "function"},
    {"{'function':{'inline':'','blob':'" HASH "'}}", ERR_FIELD, "function"},
    {"{'function':{'inline':1}}", ERR_FIELD, "function.inline"},
    {"{'function':{'inline':'a'}}", ERR_FIELD, "function.inline"},
    {"{'function':{'inline':'a-_='}}", ERR_FIELD, "function.inline"},
    {"{'function':{'inline':'aGk='}}", ERR_FIELD, "function.inline"},
    {"{'function':{'blob':[]}}", ERR_FIELD, "function.blob"},
    {"{'function':{'blob':'x'}}", ERR_FIELD, "function.blob"},
    {"{'function':{'blob':'" HASH "0'}}", ERR_FIELD, "function.blob"},
    {"{'function':{'blob':'" HASH "','modules':1}}", ERR_FIELD, "function.modules"},
    {"{'function':{'blob':'" HASH "','modules':'x'}}", ERR_FIELD, "function.modules"},
    {"{'function':{'blob':'" HASH "','module':'" HASH "'}}", ERR_UNKNOWN_FIELD, "function.module"},
};
#define REFUSEDS ((int)(sizeof refuseds / sizeof refuseds[0]))

START_TEST(a_wrong_field_is_refused_by_its_path)
{
    spec_refused(spec_with(refuseds[_i].members), refuseds[_i].code, refuseds[_i].field);
}
END_TEST

START_TEST(a_missing_field_is_told_with_a_remedy)
{
    struct err err = spec_refusal(parse_quoted("{'command':['x']}"));
    ck_assert_str_eq(err.field, "gpus");
    ck_assert_str_eq(err.text, "gpus is missing");
    ck_assert_str_ne(err.hint, "");
    err = spec_refusal(parse_quoted("{'gpus':1}"));
    ck_assert_str_eq(err.field, "command");
    ck_assert_str_eq(err.text, "command is missing");
    ck_assert_str_ne(err.hint, "");
}
END_TEST

START_TEST(what_is_no_object_is_refused)
{
    ck_assert_int_eq(spec_refusal(parse_quoted("['x']")).code, ERR_MALFORMED);
    struct err err = {0};
    struct job_spec spec;
    ck_assert(!job_spec_decode(NULL, 0, &spec, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert(!job_spec_decode(parse_quoted("{}"), 0, &spec, NULL));
}
END_TEST

START_TEST(fewer_gpus_than_none_are_told_what_the_number_means)
{
    struct err err = spec_refusal(spec_with("{'gpus':-1}"));
    ck_assert_msg(strstr(err.text, "at least 0") != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_command_as_one_string_is_told_to_be_split)
{
    struct err err = spec_refusal(spec_with("{'command':'python train.py'}"));
    ck_assert_msg(strstr(err.hint, "split it into words") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(a_function_beside_a_command_is_told_to_leave_one_out)
{
    struct err err = spec_refusal(spec_with("{'function':{'blob':'" HASH "'}}"));
    ck_assert_int_eq(err.code, ERR_FIELD);
    ck_assert_str_eq(err.field, "function");
    ck_assert_msg(strstr(err.hint, "leave one of them out") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(a_payload_without_its_header_line_is_told_what_belongs_there)
{
    static const char *const payloads[] = {"",
                                           "pickle",
                                           "gpuctl-function 1 python=",
                                           "gpuctl-function 1 python=3.11",
                                           "gpuctl-function 1 python=3\n",
                                           "gpuctl-function 1 python=3.\n",
                                           "gpuctl-function 1 python=.11\n",
                                           "gpuctl-function 1 python=3.11 \n",
                                           "gpuctl-function 2 python=3.11\n",
                                           " gpuctl-function 1 python=3.11\n"};
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        struct err err = spec_refusal(spec_of_payload(payloads[i], strlen(payloads[i])));
        ck_assert_msg(err.code == ERR_FIELD, "%s", payloads[i]);
        ck_assert_str_eq(err.field, "function.inline");
        ck_assert_msg(strstr(err.hint, "gpuctl-function 1 python=3.12") != NULL, "%s", err.hint);
    }
}
END_TEST

START_TEST(a_payload_may_fill_its_limit)
{
    autofree char *payload = xzalloc(LIMIT_INLINE_BYTES + 1);
    memcpy(payload, HEADER_LINE, strlen(HEADER_LINE));
    struct job_spec spec = spec_taken(spec_of_payload(payload, LIMIT_INLINE_BYTES));
    job_spec_finish(&spec);
    struct err err = spec_refusal(spec_of_payload(payload, LIMIT_INLINE_BYTES + 1));
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "function.inline");
    ck_assert_msg(strstr(err.hint, "function.blob") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(an_unknown_field_is_told_what_was_meant)
{
    static const char *const pairs[][2] = {
        {"{'gpu':1}", "did you mean gpus?"},
        {"{'Retrys':1}", "did you mean retries?"},
        {"{'time_limit':1}", "did you mean time_limit_s?"},
        {"{'use_reserved':1}", "did you mean use_reserved_pool?"},
        {"{'files':[{'path':'a','txt':''}]}", "did you mean text?"},
        {"{'function':{'inlined':''}}", "did you mean inline?"},
        {"{'function':{'module':''}}", "did you mean modules?"},
        {"{'zzzzzz':1}", "GET /v1/openapi.yaml lists the fields"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct err err = spec_refusal(spec_with(pairs[i][0]));
        ck_assert_int_eq(err.code, ERR_UNKNOWN_FIELD);
        ck_assert_str_eq(err.hint, pairs[i][1]);
    }
}
END_TEST

START_TEST(choices_are_listed)
{
    ck_assert_str_eq(spec_refusal(spec_with("{'launch_mode':'x'}")).text,
                     "launch_mode must be one of: process node");
    ck_assert_str_eq(spec_refusal(spec_with("{'on_disconnect':'x'}")).text,
                     "on_disconnect must be one of: keep requeue fail");
}
END_TEST

START_TEST(a_job_for_this_host_is_told_of_remote)
{
    struct err err = spec_refusal(spec_with("{'remote':false}"));
    ck_assert_msg(strstr(err.hint, "remote=true") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(a_long_unknown_name_is_refused_within_its_room)
{
    autofree char *name = xzalloc(5000);
    memset(name, 'n', 4999);
    json_t *json = spec_with("{}");
    json_object_set_new(json, name, json_true());
    ck_assert_int_eq(spec_refusal(json).code, ERR_UNKNOWN_FIELD);
    json = spec_with("{'env':{},'labels':{}}");
    json_object_set_new(json_object_get(json, "labels"), name, json_string("x"));
    ck_assert_int_eq(spec_refusal(json).code, ERR_FIELD);
}
END_TEST

/* An object of count members with a value of length bytes each. */
static json_t *many(const char *prefix, int count, size_t length)
{
    json_t *object = json_object();
    autofree char *value = xzalloc(length + 1);
    memset(value, 'v', length);
    for (int i = 0; i < count; i++) {
        autofree char *name = xprintf("%s%d", prefix, i);
        json_object_set_new(object, name, json_string(value));
    }
    return object;
}

static json_t *with_member(const char *name, json_t *value)
{
    json_t *json = spec_with("{}");
    json_object_set_new(json, name, value);
    return json;
}

START_TEST(env_and_labels_have_their_limits)
{
    struct job_spec spec = spec_taken(with_member("env", many("A", LIMIT_ENV_VARIABLES, 1)));
    job_spec_finish(&spec);
    spec_refused(with_member("env", many("A", LIMIT_ENV_VARIABLES + 1, 1)), ERR_FIELD, "env");
    spec = spec_taken(with_member("env", many("A", 1, LIMIT_ENV_BYTES - 4)));
    job_spec_finish(&spec);
    spec_refused(with_member("env", many("A", 1, LIMIT_ENV_BYTES - 3)), ERR_FIELD, "env");
    spec = spec_taken(with_member("labels", many("a", LIMIT_LABELS, LIMIT_LABEL_VALUE_BYTES)));
    job_spec_finish(&spec);
    spec_refused(with_member("labels", many("a", LIMIT_LABELS + 1, 1)), ERR_FIELD, "labels");
    spec_refused(with_member("labels", many("a", 1, LIMIT_LABEL_VALUE_BYTES + 1)), ERR_FIELD, "labels.a0");
}
END_TEST

/* A command of count words of length bytes each. */
static json_t *words(size_t count, size_t length)
{
    json_t *array = json_array();
    autofree char *word = xzalloc(length + 1);
    memset(word, 'w', length);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_string(word));
    }
    return array;
}

START_TEST(a_command_has_its_limits)
{
    struct job_spec spec = spec_taken(with_member("command", words(LIMIT_COMMAND_WORDS, 1)));
    job_spec_finish(&spec);
    spec_refused(with_member("command", words(LIMIT_COMMAND_WORDS + 1, 1)), ERR_FIELD, "command");
    spec = spec_taken(with_member("command", words(1, LIMIT_COMMAND_BYTES - 1)));
    job_spec_finish(&spec);
    spec_refused(with_member("command", words(1, LIMIT_COMMAND_BYTES)), ERR_FIELD, "command");
}
END_TEST

START_TEST(files_and_paths_have_their_limits)
{
    json_t *files = json_array();
    for (int i = 0; i < LIMIT_FILES; i++) {
        autofree char *file = xprintf("{'path':'f%d','text':''}", i);
        json_array_append_new(files, parse_quoted(file));
    }
    struct job_spec spec = spec_taken(with_member("files", json_incref(files)));
    job_spec_finish(&spec);
    json_array_append_new(files, parse_quoted("{'path':'g','text':''}"));
    spec_refused(with_member("files", files), ERR_FIELD, "files");

    autofree char *path = xzalloc(LIMIT_PATH_BYTES + 2);
    memset(path, '/', LIMIT_PATH_BYTES + 1);
    spec_refused(with_member("workdir", json_string(path)), ERR_FIELD, "workdir");
    spec_refused(with_member("python", json_string(path)), ERR_FIELD, "python");
    path[LIMIT_PATH_BYTES] = '\0';
    spec = spec_taken(with_member("workdir", json_string(path)));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(what_cannot_be_followed_is_refused_by_its_place)
{
    spec_refused(spec_with("{'after':" ID_A "}"), ERR_FIELD, "after");
    spec_refused(spec_with("{'after':['aaaa']}"), ERR_FIELD, "after[0]");
    spec_refused(spec_with("{'after':[7]}"), ERR_FIELD, "after[0]");
    spec_refused(spec_with("{'after':[{'when':'after'}]}"), ERR_FIELD, "after[0].job");
    spec_refused(spec_with("{'after':[{'job':" ID_A ",'when':'later'}]}"), ERR_FIELD, "after[0].when");
    spec_refused(spec_with("{'after':[{'job':" ID_A ",'wehn':'after'}]}"), ERR_UNKNOWN_FIELD,
                 "after[0].wehn");
    spec_refused(spec_with("{'after':[" ID_A "," ID_B ",{'job':" ID_A ",'when':'after'}]}"), ERR_FIELD,
                 "after[2]");
    spec_refused(spec_with("{'hold':'yes'}"), ERR_FIELD, "hold");
}
END_TEST

Suite *jobspec_refused_suite(void)
{
    Suite *suite = suite_create("jobspec-refused");
    TCase *refused = tcase_create("refused");
    tcase_add_loop_test(refused, a_wrong_field_is_refused_by_its_path, 0, REFUSEDS);
    tcase_add_test(refused, a_missing_field_is_told_with_a_remedy);
    tcase_add_test(refused, what_is_no_object_is_refused);
    tcase_add_test(refused, fewer_gpus_than_none_are_told_what_the_number_means);
    tcase_add_test(refused, a_command_as_one_string_is_told_to_be_split);
    tcase_add_test(refused, a_function_beside_a_command_is_told_to_leave_one_out);
    tcase_add_test(refused, a_payload_without_its_header_line_is_told_what_belongs_there);
    tcase_add_test(refused, a_payload_may_fill_its_limit);
    tcase_add_test(refused, an_unknown_field_is_told_what_was_meant);
    tcase_add_test(refused, choices_are_listed);
    tcase_add_test(refused, a_job_for_this_host_is_told_of_remote);
    tcase_add_test(refused, a_long_unknown_name_is_refused_within_its_room);
    tcase_add_test(refused, env_and_labels_have_their_limits);
    tcase_add_test(refused, a_command_has_its_limits);
    tcase_add_test(refused, files_and_paths_have_their_limits);
    tcase_add_test(refused, what_cannot_be_followed_is_refused_by_its_place);
    suite_add_tcase(suite, refused);
    return suite;
}
