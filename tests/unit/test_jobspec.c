/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of proto/jobspec: defaults, what each field takes, each refusal with code and field, and the round
 * trip. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/json.h"
#include "proto/base/text.h"
#include "proto/jobspec.h"
#include "proto/limits.h"
#include "tests/unit/proto_suites.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Takes over json. */
static struct job_spec decode(json_t *json)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%s", err.text);
    return spec;
}

/* The least that a spec needs, with the members of an object added or replaced. */
static json_t *with(const char *members)
{
    json_t *json = parse_quoted("{'gpus':1,'command':['true']}");
    autojson json_t *more = parse_quoted(members);
    json_object_update(json, more);
    return json;
}

/* Takes over json. */
static struct err refusal(json_t *json)
{
    struct err err = {0};
    struct job_spec spec;
    autofree char *text = json_text(json);
    ck_assert_msg(!job_spec_decode(json, LIMIT_LEASE_MIN_MS, &spec, &err), "%.200s", text);
    return err;
}

static void assert_refused(json_t *json, enum err_code code, const char *field)
{
    struct err err = refusal(json);
    ck_assert_msg(err.code == code, "%s: %s", err_slug(err.code), err.text);
    ck_assert_str_eq(err.field, field);
    ck_assert_msg(strstr(err.text, field) != NULL, "%s", err.text);
}

#define HEADER_LINE "gpuctl-function 1 python=3.11\n"

/* A spec whose function is this payload. */
static json_t *function_of(const char *payload, size_t length)
{
    autofree char *base64 = text_to_base64((const uint8_t *)payload, length);
    return json_pack("{s:i, s:{s:s}}", "gpus", 1, "function", "inline", base64);
}

/* --- what is taken --- */

START_TEST(the_least_spec_gets_the_defaults)
{
    struct job_spec spec = decode(with("{}"));
    ck_assert_int_eq(spec.gpus, 1);
    ck_assert(spec.remote);
    ck_assert_int_eq(spec.use_reserved_pool, USE_RESERVED_AUTO);
    ck_assert_int_eq(spec.launch_mode, LAUNCH_PROCESS);
    ck_assert_int_eq(spec.on_disconnect, ON_DISCONNECT_KEEP);
    ck_assert_ptr_null(spec.name);
    ck_assert_ptr_null(spec.gpu_type);
    ck_assert_ptr_null(spec.env);
    ck_assert_ptr_null(spec.workdir);
    ck_assert_uint_eq(spec.file_count, 0);
    ck_assert_int_eq(spec.time_limit_ms, 0);
    ck_assert_int_eq(spec.grace_ms, DEFAULT_GRACE_MS);
    ck_assert_int_eq(spec.lease_ms, DEFAULT_LEASE_MS);
    ck_assert_int_eq(spec.retries, 0);
    ck_assert_int_eq(spec.infra_retries, DEFAULT_INFRA_RETRIES);
    ck_assert_str_eq(json_string_value(json_array_get(spec.command, 0)), "true");
    job_spec_finish(&spec);
    ck_assert_ptr_null(spec.json);
}
END_TEST

START_TEST(null_is_the_same_as_absent)
{
    struct job_spec spec =
        decode(with("{'name':null,'env':null,'files':null,'remote':null,'use_reserved_pool':null,"
                    "'launch_mode':null,'retries':null,'lease_s':null,'function':null}"));
    ck_assert(!job_spec_is_function(&spec));
    autojson json_t *canonical = job_spec_encode(&spec);
    autojson json_t *least = parse_quoted("{'gpus':1,'command':['true']}");
    ck_assert(json_equal(canonical, least));
    job_spec_finish(&spec);
}
END_TEST

#define FULL                                                                                                 \
    "{'name':'train-1','gpus':65536,'gpu_type':'A10','remote':false,'use_reserved_pool':false,'pool':'p',"   \
    "'launch_mode':'node','command':['python','','x y'],'env':{'HF_HOME':'t','_x9':''},"                     \
    "'labels':{'team':'nlp'},'files':[{'path':'a/b.py','text':'print(1)','executable':true},"                \
    "{'path':'a/c','base64':'aGk='},{'path':'d','blob':'" HASH                                               \
    "'}],'workdir':'/data','python':'python3.11',"                                                           \
    "'project':'q','priority':-1000,'time_limit_s':3600,'grace_s':1.5,'lease_s':60,'retries':100,"           \
    "'early_signal':{'signal':'HUP','before_s':2.5},"                                                        \
    "'infra_retries':0,'on_disconnect':'requeue','host_id':'" HASH "'}"

START_TEST(a_full_spec_is_read_field_by_field)
{
    struct job_spec spec = decode(parse_quoted(FULL));
    ck_assert_str_eq(spec.name, "train-1");
    ck_assert_int_eq(spec.gpus, LIMIT_GPUS);
    ck_assert_str_eq(spec.gpu_type, "A10");
    ck_assert(!spec.remote);
    ck_assert_int_eq(spec.use_reserved_pool, USE_RESERVED_FALSE);
    ck_assert_str_eq(spec.pool, "p");
    ck_assert_int_eq(spec.launch_mode, LAUNCH_NODE);
    ck_assert_uint_eq(json_array_size(spec.command), 3);
    ck_assert_str_eq(json_string_value(json_object_get(spec.env, "HF_HOME")), "t");
    ck_assert_str_eq(json_string_value(json_object_get(spec.labels, "team")), "nlp");
    ck_assert_uint_eq(spec.file_count, 3);
    ck_assert_str_eq(spec.files[0].path, "a/b.py");
    ck_assert_str_eq(spec.files[0].text, "print(1)");
    ck_assert(spec.files[0].executable && !spec.files[1].executable);
    ck_assert_str_eq(spec.files[1].base64, "aGk=");
    ck_assert_str_eq(spec.files[2].blob, HASH);
    ck_assert_str_eq(spec.workdir, "/data");
    ck_assert_str_eq(spec.python, "python3.11");
    ck_assert_str_eq(spec.project, "q");
    ck_assert_int_eq(spec.priority, -1000);
    ck_assert_int_eq(spec.time_limit_ms, 3600000);
    ck_assert_int_eq(spec.grace_ms, 1500);
    ck_assert_int_eq(spec.early_signal.signal, EARLY_HUP);
    ck_assert_int_eq(spec.early_signal.before_ms, 2500);
    ck_assert_int_eq(spec.lease_ms, 60000);
    ck_assert_int_eq(spec.retries, 100);
    ck_assert_int_eq(spec.infra_retries, 0);
    ck_assert_int_eq(spec.on_disconnect, ON_DISCONNECT_REQUEUE);
    ck_assert_str_eq(spec.host_id, HASH);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(an_early_signal_may_have_sig_before_its_name_and_comes_a_minute_before_the_limit)
{
    struct job_spec spec =
        decode(parse_quoted("{'gpus':1,'command':['x'],'early_signal':{'signal':'SIGUSR2'}}"));
    ck_assert_int_eq(spec.early_signal.signal, EARLY_USR2);
    ck_assert_int_eq(spec.early_signal.before_ms, 60000);
    autojson json_t *canonical = job_spec_encode(&spec);
    autojson json_t *expected = parse_quoted("{'gpus':1,'command':['x'],'early_signal':{'signal':'USR2'}}");
    ck_assert(json_equal(canonical, expected));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_spec_survives_encode_and_decode)
{
    static const char *const specs[] = {
        FULL, "{'gpus':2,'command':['x'],'use_reserved_pool':true,'env':{}}",
        "{'gpus':2,'command':['x'],'time_limit_s':0.001,'on_disconnect':'fail'}"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        autojson json_t *original = parse_quoted(specs[i]);
        struct job_spec spec = decode(json_incref(original));
        autojson json_t *canonical = job_spec_encode(&spec);
        ck_assert_msg(json_equal(canonical, original), "%s", specs[i]);
        autofree char *text = json_text(canonical);
        struct job_spec again = decode(json_loads(text, 0, NULL));
        autojson json_t *twice = job_spec_encode(&again);
        ck_assert(json_equal(canonical, twice));
        job_spec_finish(&spec);
        job_spec_finish(&again);
    }
}
END_TEST

#define OF_BLOB "{'gpus':1,'function':{'blob':'" HASH "','modules':'" HASH "'}}"

#define ID_A "'aaaaaaaaaaaaaaaa'"
#define ID_B "'bbbbbbbbbbbbbbbb'"

START_TEST(jobs_to_follow_are_read_and_survive_encode_and_decode)
{
    struct job_spec first =
        decode(with("{'after':[" ID_A ",{'job':" ID_B ",'when':'afterany'}],'hold':true}"));
    struct job_spec spec = decode(job_spec_encode(&first));
    ck_assert(spec.hold);
    ck_assert_uint_eq(spec.after_count, 2);
    ck_assert_str_eq(spec.after[0].job, "aaaaaaaaaaaaaaaa");
    ck_assert_int_eq(spec.after[0].when, DEPENDENCY_AFTEROK);
    ck_assert_str_eq(spec.after[1].job, "bbbbbbbbbbbbbbbb");
    ck_assert_int_eq(spec.after[1].when, DEPENDENCY_AFTERANY);
    job_spec_finish(&first);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(what_cannot_be_followed_is_refused_by_its_place)
{
    assert_refused(with("{'after':" ID_A "}"), ERR_FIELD, "after");
    assert_refused(with("{'after':['aaaa']}"), ERR_FIELD, "after[0]");
    assert_refused(with("{'after':[7]}"), ERR_FIELD, "after[0]");
    assert_refused(with("{'after':[{'when':'after'}]}"), ERR_FIELD, "after[0].job");
    assert_refused(with("{'after':[{'job':" ID_A ",'when':'later'}]}"), ERR_FIELD, "after[0].when");
    assert_refused(with("{'after':[{'job':" ID_A ",'wehn':'after'}]}"), ERR_UNKNOWN_FIELD, "after[0].wehn");
    assert_refused(with("{'after':[" ID_A "," ID_B ",{'job':" ID_A ",'when':'after'}]}"), ERR_FIELD,
                   "after[2]");
    assert_refused(with("{'hold':'yes'}"), ERR_FIELD, "hold");
}
END_TEST

START_TEST(a_job_follows_so_many_others)
{
    autojson json_t *after = json_array();
    for (int i = 0; i <= LIMIT_AFTER; i++) {
        char id[ID_LENGTH + 1];
        text_id_from_bytes((const uint8_t[10]){(uint8_t)i}, id);
        json_t *json = with("{}");
        json_object_set_new(json, "after", json_deep_copy(after));
        struct job_spec spec = decode(json);
        ck_assert_uint_eq(spec.after_count, (size_t)i);
        job_spec_finish(&spec);
        json_array_append_new(after, json_string(id));
    }
    json_t *json = with("{}");
    json_object_set(json, "after", after);
    assert_refused(json, ERR_FIELD, "after");
}
END_TEST

START_TEST(a_function_stands_instead_of_a_command)
{
    struct job_spec spec = decode(function_of(HEADER_LINE "x", strlen(HEADER_LINE) + 1));
    ck_assert(job_spec_is_function(&spec));
    ck_assert_ptr_null(spec.command);
    ck_assert_ptr_nonnull(spec.function.base64);
    ck_assert_ptr_null(spec.function.blob);
    ck_assert_ptr_null(spec.function.modules);
    job_spec_finish(&spec);
    spec = decode(parse_quoted(OF_BLOB));
    ck_assert(job_spec_is_function(&spec));
    ck_assert_ptr_null(spec.function.base64);
    ck_assert_str_eq(spec.function.blob, HASH);
    ck_assert_str_eq(spec.function.modules, HASH);
    job_spec_finish(&spec);
    spec = decode(with("{}"));
    ck_assert(!job_spec_is_function(&spec));
    job_spec_finish(&spec);
}
END_TEST

START_TEST(a_function_survives_encode_and_decode)
{
    json_t *specs[] = {function_of(HEADER_LINE "x", strlen(HEADER_LINE) + 1), parse_quoted(OF_BLOB)};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct job_spec spec = decode(json_incref(specs[i]));
        autojson json_t *canonical = job_spec_encode(&spec);
        ck_assert(json_equal(canonical, specs[i]));
        job_spec_finish(&spec);
        json_decref(specs[i]);
    }
}
END_TEST

START_TEST(an_inline_function_is_shown_by_its_length_only)
{
    for (size_t more = 1; more <= 3; more++) { /* with two, one and no padding bytes */
        json_t *json = function_of(HEADER_LINE "xyz", strlen(HEADER_LINE) + more);
        json_object_set_new(json, "name", json_string("n"));
        autojson json_t *received = json_deep_copy(json);
        struct job_spec spec = decode(json);
        autofree char *shown = job_spec_shown(&spec);
        autofree char *expected = xprintf("{\"gpus\":1,\"function\":{\"inline_bytes\":%zu},\"name\":\"n\"}",
                                          strlen(HEADER_LINE) + more);
        ck_assert_str_eq(shown, expected);
        ck_assert(json_equal(spec.json, received));
        job_spec_finish(&spec);
    }
}
END_TEST

START_TEST(other_specs_are_shown_as_they_were_received)
{
    static const char *const specs[] = {OF_BLOB, FULL};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct job_spec spec = decode(parse_quoted(specs[i]));
        ck_assert_ptr_null(job_spec_shown(&spec));
        job_spec_finish(&spec);
    }
}
END_TEST

START_TEST(defaults_that_are_written_out_are_left_out_again)
{
    struct job_spec spec = decode(
        with("{'remote':true,'launch_mode':'process','on_disconnect':'keep','priority':0,'time_limit_s':0,"
             "'grace_s':30,'lease_s':900.0,'retries':0,'infra_retries':3,'files':[]}"));
    autojson json_t *canonical = job_spec_encode(&spec);
    ck_assert_uint_eq(json_object_size(canonical), 2);
    job_spec_finish(&spec);
}
END_TEST

START_TEST(the_smallest_lease_is_the_callers)
{
    struct job_spec spec;
    struct err err = {0};
    ck_assert_msg(job_spec_decode(with("{'lease_s':2}"), 2000, &spec, &err), "%s", err.text);
    ck_assert_int_eq(spec.lease_ms, 2000);
    job_spec_finish(&spec);
    ck_assert(!job_spec_decode(with("{'lease_s':1.999}"), 2000, &spec, &err));
    ck_assert_str_eq(err.field, "lease_s");
    ck_assert_str_eq(err.text, "lease_s must be at least 2");
}
END_TEST

START_TEST(inline_files_may_fill_their_limit)
{
    json_t *json = with("{'files':[{'path':'a','text':''},{'path':'b','base64':''}]}");
    json_t *files = json_object_get(json, "files");
    autofree char *half = xzalloc(LIMIT_INLINE_BYTES / 2 + 1);
    memset(half, 'x', LIMIT_INLINE_BYTES / 2);
    autofree char *base64 = text_to_base64((const uint8_t *)half, LIMIT_INLINE_BYTES / 2);
    json_object_set_new(json_array_get(files, 0), "text", json_string(half));
    json_object_set_new(json_array_get(files, 1), "base64", json_string(base64));
    struct job_spec spec = decode(json_incref(json));
    job_spec_finish(&spec);
    json_array_append_new(files, parse_quoted("{'path':'c','text':'x'}"));
    struct err err = refusal(json);
    ck_assert_int_eq(err.code, ERR_TOO_LARGE);
    ck_assert_str_eq(err.field, "files[2]");
    ck_assert_msg(strstr(err.hint, "blob") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(paths_that_only_begin_alike_do_not_collide)
{
    struct job_spec spec =
        decode(with("{'files':[{'path':'a/b','text':''},{'path':'a/bc','text':''},"
                    "{'path':'a-','text':''},{'path':'...','text':''},{'path':'.a','text':''}]}"));
    ck_assert_uint_eq(spec.file_count, 5);
    job_spec_finish(&spec);
}
END_TEST

/* --- what is refused --- */

struct refused {
    const char *members;
    enum err_code code;
    const char *field;
};

#define ONE_FILE(rest) "{'files':[{'path':'a','text':''},{" rest "}]}"

static const struct refused refuseds[] = {
    {"{'gpus':null}", ERR_FIELD, "gpus"},
    {"{'gpus':0}", ERR_FIELD, "gpus"},
    {"{'gpus':-1}", ERR_FIELD, "gpus"},
    {"{'gpus':65537}", ERR_FIELD, "gpus"},
    {"{'gpus':1.0}", ERR_FIELD, "gpus"},
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
    {"{'priority':1001}", ERR_FIELD, "priority"},
    {"{'priority':-1001}", ERR_FIELD, "priority"},
    {"{'time_limit_s':-1}", ERR_FIELD, "time_limit_s"},
    {"{'time_limit_s':'1h'}", ERR_FIELD, "time_limit_s"},
    {"{'time_limit_s':31622401}", ERR_FIELD, "time_limit_s"},
    {"{'grace_s':3601}", ERR_FIELD, "grace_s"},
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
    {"{'env':{'A':null}}", ERR_FIELD, "env.A"},
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
    assert_refused(with(refuseds[_i].members), refuseds[_i].code, refuseds[_i].field);
}
END_TEST

START_TEST(a_missing_field_is_told_with_a_remedy)
{
    struct err err = refusal(parse_quoted("{'command':['x']}"));
    ck_assert_str_eq(err.field, "gpus");
    ck_assert_str_eq(err.text, "gpus is missing");
    ck_assert_str_ne(err.hint, "");
    err = refusal(parse_quoted("{'gpus':1}"));
    ck_assert_str_eq(err.field, "command");
    ck_assert_str_eq(err.text, "command is missing");
    ck_assert_str_ne(err.hint, "");
}
END_TEST

START_TEST(what_is_no_object_is_refused)
{
    ck_assert_int_eq(refusal(parse_quoted("['x']")).code, ERR_MALFORMED);
    struct err err = {0};
    struct job_spec spec;
    ck_assert(!job_spec_decode(NULL, 0, &spec, &err));
    ck_assert_int_eq(err.code, ERR_MALFORMED);
    ck_assert(!job_spec_decode(parse_quoted("{}"), 0, &spec, NULL));
}
END_TEST

START_TEST(no_gpus_are_told_to_be_at_least_one)
{
    struct err err = refusal(with("{'gpus':0}"));
    ck_assert_msg(strstr(err.text, "at least 1") != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_command_as_one_string_is_told_to_be_split)
{
    struct err err = refusal(with("{'command':'python train.py'}"));
    ck_assert_msg(strstr(err.hint, "split it into words") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(a_function_beside_a_command_is_told_to_leave_one_out)
{
    struct err err = refusal(with("{'function':{'blob':'" HASH "'}}"));
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
        struct err err = refusal(function_of(payloads[i], strlen(payloads[i])));
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
    struct job_spec spec = decode(function_of(payload, LIMIT_INLINE_BYTES));
    job_spec_finish(&spec);
    struct err err = refusal(function_of(payload, LIMIT_INLINE_BYTES + 1));
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
        struct err err = refusal(with(pairs[i][0]));
        ck_assert_int_eq(err.code, ERR_UNKNOWN_FIELD);
        ck_assert_str_eq(err.hint, pairs[i][1]);
    }
}
END_TEST

START_TEST(choices_are_listed)
{
    ck_assert_str_eq(refusal(with("{'launch_mode':'x'}")).text, "launch_mode must be one of: process node");
    ck_assert_str_eq(refusal(with("{'on_disconnect':'x'}")).text,
                     "on_disconnect must be one of: keep requeue fail");
}
END_TEST

START_TEST(a_job_for_this_host_is_told_of_remote)
{
    struct err err = refusal(with("{'remote':false}"));
    ck_assert_msg(strstr(err.hint, "remote=true") != NULL, "%s", err.hint);
}
END_TEST

START_TEST(a_long_unknown_name_is_refused_within_its_room)
{
    autofree char *name = xzalloc(5000);
    memset(name, 'n', 4999);
    json_t *json = with("{}");
    json_object_set_new(json, name, json_true());
    ck_assert_int_eq(refusal(json).code, ERR_UNKNOWN_FIELD);
    json = with("{'env':{},'labels':{}}");
    json_object_set_new(json_object_get(json, "labels"), name, json_string("x"));
    ck_assert_int_eq(refusal(json).code, ERR_FIELD);
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
    json_t *json = with("{}");
    json_object_set_new(json, name, value);
    return json;
}

START_TEST(env_and_labels_have_their_limits)
{
    struct job_spec spec = decode(with_member("env", many("A", LIMIT_ENV_VARIABLES, 1)));
    job_spec_finish(&spec);
    assert_refused(with_member("env", many("A", LIMIT_ENV_VARIABLES + 1, 1)), ERR_FIELD, "env");
    spec = decode(with_member("env", many("A", 1, LIMIT_ENV_BYTES - 4)));
    job_spec_finish(&spec);
    assert_refused(with_member("env", many("A", 1, LIMIT_ENV_BYTES - 3)), ERR_FIELD, "env");
    spec = decode(with_member("labels", many("a", LIMIT_LABELS, LIMIT_LABEL_VALUE_BYTES)));
    job_spec_finish(&spec);
    assert_refused(with_member("labels", many("a", LIMIT_LABELS + 1, 1)), ERR_FIELD, "labels");
    assert_refused(with_member("labels", many("a", 1, LIMIT_LABEL_VALUE_BYTES + 1)), ERR_FIELD, "labels.a0");
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
    struct job_spec spec = decode(with_member("command", words(LIMIT_COMMAND_WORDS, 1)));
    job_spec_finish(&spec);
    assert_refused(with_member("command", words(LIMIT_COMMAND_WORDS + 1, 1)), ERR_FIELD, "command");
    spec = decode(with_member("command", words(1, LIMIT_COMMAND_BYTES - 1)));
    job_spec_finish(&spec);
    assert_refused(with_member("command", words(1, LIMIT_COMMAND_BYTES)), ERR_FIELD, "command");
}
END_TEST

START_TEST(files_and_paths_have_their_limits)
{
    json_t *files = json_array();
    for (int i = 0; i < LIMIT_FILES; i++) {
        autofree char *file = xprintf("{'path':'f%d','text':''}", i);
        json_array_append_new(files, parse_quoted(file));
    }
    struct job_spec spec = decode(with_member("files", json_incref(files)));
    job_spec_finish(&spec);
    json_array_append_new(files, parse_quoted("{'path':'g','text':''}"));
    assert_refused(with_member("files", files), ERR_FIELD, "files");

    autofree char *path = xzalloc(LIMIT_PATH_BYTES + 2);
    memset(path, '/', LIMIT_PATH_BYTES + 1);
    assert_refused(with_member("workdir", json_string(path)), ERR_FIELD, "workdir");
    assert_refused(with_member("python", json_string(path)), ERR_FIELD, "python");
    path[LIMIT_PATH_BYTES] = '\0';
    spec = decode(with_member("workdir", json_string(path)));
    job_spec_finish(&spec);
}
END_TEST

Suite *jobspec_suite(void)
{
    Suite *suite = suite_create("jobspec");
    TCase *taken = tcase_create("taken");
    tcase_add_test(taken, the_least_spec_gets_the_defaults);
    tcase_add_test(taken, null_is_the_same_as_absent);
    tcase_add_test(taken, a_full_spec_is_read_field_by_field);
    tcase_add_test(taken, an_early_signal_may_have_sig_before_its_name_and_comes_a_minute_before_the_limit);
    tcase_add_test(taken, a_spec_survives_encode_and_decode);
    tcase_add_test(taken, a_function_stands_instead_of_a_command);
    tcase_add_test(taken, a_function_survives_encode_and_decode);
    tcase_add_test(taken, an_inline_function_is_shown_by_its_length_only);
    tcase_add_test(taken, other_specs_are_shown_as_they_were_received);
    tcase_add_test(taken, defaults_that_are_written_out_are_left_out_again);
    tcase_add_test(taken, the_smallest_lease_is_the_callers);
    tcase_add_test(taken, inline_files_may_fill_their_limit);
    tcase_add_test(taken, jobs_to_follow_are_read_and_survive_encode_and_decode);
    tcase_add_test(taken, a_job_follows_so_many_others);
    tcase_add_test(taken, paths_that_only_begin_alike_do_not_collide);
    suite_add_tcase(suite, taken);
    TCase *refused = tcase_create("refused");
    tcase_add_loop_test(refused, a_wrong_field_is_refused_by_its_path, 0, REFUSEDS);
    tcase_add_test(refused, a_missing_field_is_told_with_a_remedy);
    tcase_add_test(refused, what_is_no_object_is_refused);
    tcase_add_test(refused, no_gpus_are_told_to_be_at_least_one);
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
