/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of daemon/http/auth: who may do what. */
#include <string.h>

#include "daemon/http/auth/authorize.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "tests/unit/http/http_suites.h"

static struct auth *auth;
static struct projects *projects;
static struct err err;

static void put_project(const char *name, const char *text)
{
    struct account_limits limits;
    autojson json_t *json = json_parse(text, strlen(text), &err);
    ck_assert(json != NULL);
    ck_assert_msg(account_limits_decode(json, ACCOUNT_PROJECT, &limits, &err), "%s", err.text);
    projects_put(projects, name, &limits);
    account_limits_finish(&limits);
}

static void open_all(void)
{
    auth = auth_create();
    projects = projects_create();
    put_project("vision", "{\"members\":{\"vera\":\"viewer\",\"uma\":\"user\",\"olga\":\"operator\"},"
                          "\"max_priority\":5}");
    put_project("public", "{}");
    put_project(
        "short",
        "{\"members\":{\"olga\":\"operator\",\"uma\":\"user\"},\"on_disconnect\":[\"fail\",\"requeue\"]}");
}

static void close_all(void)
{
    auth_destroy(auth);
    projects_release(projects);
}

/* The bearer of a token of that role. */
static const struct identity *bearer(const char *owner, enum role role)
{
    static int count;
    static char id[TOKEN_ID_LENGTH + 1];
    snprintf(id, sizeof id, "%08d", count++);
    auth_put(auth, &(struct token_row){.id = id, .role = role, .owner = owner, .created_ms = 1});
    return auth_find(auth, id);
}

/* The same of a row. */
static const struct identity *put(const char *id, struct token_row row)
{
    row.id = id;
    row.created_ms = 1;
    auth_put(auth, &row);
    return auth_find(auth, id);
}

static bool submits_as(const struct identity *who, const char *project)
{
    const struct job_spec spec = {.project = project};
    return authorize_submit(projects, who, &spec, &err);
}

static bool submits(const char *owner, enum role role, const char *project, int64_t priority)
{
    const struct job_spec spec = {.project = project, .priority = priority};
    memset(&err, 0, sizeof err);
    return authorize_submit(projects, bearer(owner, role), &spec, &err);
}

START_TEST(each_access_lets_in_its_roles_and_no_other)
{
    static const struct {
        enum access access;
        const char *roles; /* a letter each: node, monitor, viewer, user, operator, admin */
    } table[] = {
        {ACCESS_ANY, "nmvuoa"},
        {ACCESS_VIEWER, "vuoa"},
        {ACCESS_USER, "uoa"},
        {ACCESS_OPERATOR, "oa"},
        {ACCESS_ADMIN, "a"},
        {ACCESS_TRACKING, "vuoa"},
        {ACCESS_NODE, "n"},
        {ACCESS_MONITOR, "mvuoa"},
        {ACCESS_USER_OR_NODE, "nuoa"},
        {ACCESS_OPEN, "nmvuoa"},
        {ACCESS_TRACKING_CHANGE, "uoa"},
        {ACCESS_VIEWER_OR_NODE, "nvuoa"},
    };
    ck_assert_int_eq(sizeof table / sizeof table[0], ACCESS_COUNT);
    for (size_t i = 0; i < ACCESS_COUNT; i++) {
        for (enum role role = ROLE_NONE; role < ROLE_COUNT; role++) {
            bool wanted = role != ROLE_NONE && strchr(table[i].roles, role_text(role)[0]) != NULL;
            ck_assert_msg(authorize_route(table[i].access, role, &err) == wanted, "%zu %s", i,
                          role_text(role));
        }
    }
}
END_TEST

START_TEST(a_job_is_seen_by_its_owner_by_members_and_by_operators)
{
    static const struct {
        const char *name;
        enum role role;
        bool own, mates, foreign; /* in vision: one's own, uma's; in public: zoe's */
    } table[] = {
        {"zoe", ROLE_VIEWER, true, false, true},    {"vera", ROLE_USER, true, true, false},
        {"uma", ROLE_USER, true, true, false},      {"olga", ROLE_VIEWER, true, true, false},
        {"eve", ROLE_USER, true, false, false},     {"eve", ROLE_OPERATOR, true, true, true},
        {"eve", ROLE_ADMIN, true, true, true},      {"uma", ROLE_NODE, false, false, false},
        {"uma", ROLE_MONITOR, false, false, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct identity *who = bearer(table[i].name, table[i].role);
        ck_assert_msg(authorize_see(projects, who, table[i].name, "vision") == table[i].own, "%zu", i);
        ck_assert_msg(authorize_see(projects, who, "uma", "vision") == table[i].mates, "%zu", i);
        ck_assert_msg(authorize_see(projects, who, "zoe", "public") == table[i].foreign, "%zu", i);
    }
}
END_TEST

START_TEST(a_job_is_changed_by_its_owner_and_by_operators_and_by_no_token_of_a_viewer)
{
    static const struct {
        const char *name;
        enum role role;
        bool own, mates;
    } table[] = {
        {"uma", ROLE_VIEWER, false, false},  {"uma", ROLE_USER, true, true},
        {"vera", ROLE_USER, true, false},    {"olga", ROLE_USER, true, true},
        {"olga", ROLE_VIEWER, false, false}, {"eve", ROLE_OPERATOR, true, true},
        {"eve", ROLE_USER, true, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct identity *who = bearer(table[i].name, table[i].role);
        ck_assert_msg(authorize_change(projects, who, table[i].name, "public", &err) == table[i].own, "%zu",
                      i);
        ck_assert_msg(authorize_change(projects, who, "uma", "vision", &err) == table[i].mates, "%zu", i);
    }
    ck_assert_int_eq(err.code, ERR_FORBIDDEN);
}
END_TEST

START_TEST(a_project_takes_jobs_of_its_members_and_without_members_of_everybody)
{
    static const struct {
        const char *name;
        enum role role;
        const char *project;
        bool may;
    } table[] = {
        {"uma", ROLE_USER, "vision", true},     {"olga", ROLE_USER, "vision", true},
        {"vera", ROLE_USER, "vision", false},   {"eve", ROLE_USER, "vision", false},
        {"eve", ROLE_OPERATOR, "vision", true}, {"eve", ROLE_USER, "public", true},
        {"eve", ROLE_USER, NULL, true},         {"eve", ROLE_USER, "unknown", false},
        {"eve", ROLE_ADMIN, "unknown", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        ck_assert_msg(submits(table[i].name, table[i].role, table[i].project, 0) == table[i].may, "%zu", i);
        ck_assert(table[i].may || (err.code == ERR_FORBIDDEN && strcmp(err.field, "project") == 0));
    }
    put_project("default", "{\"members\":{\"uma\":\"user\"}}");
    ck_assert(!submits("eve", ROLE_USER, NULL, 0) && submits("uma", ROLE_USER, NULL, 0));
}
END_TEST

START_TEST(strangers_are_not_told_whether_a_project_exists)
{
    struct err known, unknown;
    submits("eve", ROLE_USER, "vision", 0);
    known = err;
    put_project("vision2", "{\"members\":{\"uma\":\"user\"}}");
    submits("eve", ROLE_USER, "visionX", 0);
    unknown = err;
    *strchr(unknown.text, 'X') = '2';
    submits("eve", ROLE_USER, "vision2", 0);
    ck_assert_str_eq(unknown.text, err.text);
    ck_assert_int_eq(known.code, unknown.code);
}
END_TEST

START_TEST(a_priority_is_bounded_by_the_project_but_for_operators)
{
    ck_assert(submits("uma", ROLE_USER, "vision", 5) && !submits("uma", ROLE_USER, "vision", 6));
    ck_assert_str_eq(err.field, "priority");
    ck_assert(submits("olga", ROLE_USER, "vision", 1000) && submits("eve", ROLE_ADMIN, "vision", 1000));
    ck_assert(submits("eve", ROLE_USER, "public", -7) && !submits("eve", ROLE_USER, "public", 1));
    const struct identity *uma = bearer("uma", ROLE_USER);
    ck_assert(authorize_priority(projects, uma, "vision", 7, 9, &err)); /* an operator had raised it */
    ck_assert(!authorize_priority(projects, uma, "vision", 10, 9, &err));
}
END_TEST

static bool disconnects(const char *owner, enum role role, const char *project, enum on_disconnect rule)
{
    const struct job_spec spec = {.project = project, .on_disconnect = rule};
    memset(&err, 0, sizeof err);
    return authorize_submit(projects, bearer(owner, role), &spec, &err);
}

START_TEST(what_jobs_do_on_silent_nodes_is_bounded_by_the_project_but_for_operators)
{
    ck_assert(!disconnects("uma", ROLE_USER, "short", ON_DISCONNECT_KEEP));
    ck_assert_int_eq(err.code, ERR_FORBIDDEN);
    ck_assert_str_eq(err.field, "on_disconnect");
    ck_assert_str_eq(err.hint, "submit it with --on-disconnect requeue");
    ck_assert(disconnects("uma", ROLE_USER, "short", ON_DISCONNECT_REQUEUE));
    ck_assert(disconnects("uma", ROLE_USER, "short", ON_DISCONNECT_FAIL));
    ck_assert(disconnects("olga", ROLE_USER, "short", ON_DISCONNECT_KEEP));
    ck_assert(disconnects("eve", ROLE_OPERATOR, "short", ON_DISCONNECT_KEEP));
    ck_assert(disconnects("uma", ROLE_USER, "vision", ON_DISCONNECT_KEEP));
    ck_assert(disconnects("eve", ROLE_USER, "public", ON_DISCONNECT_KEEP));
}
END_TEST

static bool may_use_secrets(const char *name, enum role role, const char *project)
{
    return authorize_secrets(projects, identity_principal(bearer(name, role)), project);
}

START_TEST(secrets_of_a_project_are_its_users_and_no_role_of_a_token_helps)
{
    ck_assert(may_use_secrets("uma", ROLE_USER, "vision"));
    ck_assert(!may_use_secrets("vera", ROLE_USER, "vision") && !may_use_secrets("eve", ROLE_ADMIN, "vision"));
    ck_assert(!may_use_secrets("admin", ROLE_ADMIN, "vision"));
    ck_assert(!may_use_secrets("uma", ROLE_USER, "public")); /* everybody's */
    ck_assert(!may_use_secrets("uma", ROLE_USER, DEFAULT_PROJECT));
    ck_assert(!may_use_secrets("uma", ROLE_USER, "nowhere"));
    struct principal service, elsewhere;
    principal_of_job(&service, "service:ci", "vision");
    principal_of_job(&elsewhere, "service:ci", "public");
    ck_assert(authorize_secrets(projects, &service, "vision"));
    ck_assert(!authorize_secrets(projects, &service, "speech"));
    ck_assert(!authorize_secrets(projects, &elsewhere, "public"));
    principal_finish(&service);
    principal_finish(&elsewhere);
}
END_TEST

START_TEST(a_change_of_a_project_counts_at_once)
{
    ck_assert(submits("uma", ROLE_USER, "vision", 5));
    put_project("vision", "{\"members\":{\"eve\":\"user\"}}");
    ck_assert(!submits("uma", ROLE_USER, "vision", 0) && submits("eve", ROLE_USER, "vision", 0));
    ck_assert(!authorize_see_project(projects, bearer("uma", ROLE_USER), "vision"));
}
END_TEST

START_TEST(a_service_account_has_its_project_and_nothing_else)
{
    const struct identity *ci =
        put("service1", (struct token_row){.role = ROLE_USER, .owner = "service:ci", .project = "vision"});
    ck_assert(submits_as(ci, "vision") && !submits_as(ci, "public") && !submits_as(ci, NULL));
    ck_assert_msg(strstr(err.hint, "vision") != NULL, "%s", err.hint);
    ck_assert(authorize_see(projects, ci, "uma", "vision") && authorize_see_project(projects, ci, "vision"));
    ck_assert(authorize_see(projects, ci, "service:ci", "vision"));
    ck_assert(authorize_change(projects, ci, "service:ci", "vision", &err));
    ck_assert(!authorize_change(projects, ci, "uma", "vision", &err));
    /* not even what has its name */
    ck_assert(!authorize_see(projects, ci, "service:ci", "public") &&
              !authorize_see(projects, ci, "zoe", "public"));
    const struct identity *looks =
        put("service2", (struct token_row){.role = ROLE_VIEWER, .owner = "service:eye", .project = "vision"});
    ck_assert(authorize_see(projects, looks, "uma", "vision") &&
              !authorize_see(projects, looks, "zoe", "public"));
    ck_assert(!authorize_change(projects, looks, "service:eye", "vision", &err));
    /* in an open project it is one of many */
    const struct identity *open =
        put("service3", (struct token_row){.role = ROLE_USER, .owner = "service:open", .project = "public"});
    ck_assert(submits_as(open, "public") && !authorize_see(projects, open, "zoe", "public"));
    ck_assert(authorize_see(projects, open, "service:open", "public"));
    ck_assert(auth_serves_another(auth, "service:ci", "public") &&
              !auth_serves_another(auth, "service:ci", "vision"));
}
END_TEST

START_TEST(a_service_account_tracks_in_its_project_alone)
{
    const struct identity *ci =
        put("service1", (struct token_row){.role = ROLE_USER, .owner = "service:ci", .project = "vision"});
    const struct principal *who = identity_principal(ci);
    struct principal ranks;
    principal_of_job(&ranks, "service:ci", "vision");
    const struct principal *both[] = {who, &ranks};
    for (size_t i = 0; i < 2; i++) {
        ck_assert(authorize_tracking(projects, both[i], TRACKING_ADDS, "uma", "vision"));
        ck_assert(authorize_tracking(projects, both[i], TRACKING_CHANGES, "service:ci", "vision"));
        ck_assert(!authorize_tracking(projects, both[i], TRACKING_CHANGES, "uma", "vision"));
        ck_assert(!authorize_tracking(projects, both[i], TRACKING_SEES, "service:ci", "public"));
        ck_assert(!authorize_tracking(projects, both[i], TRACKING_USES, "", "public"));
        ck_assert(authorize_tracking(projects, both[i], TRACKING_USES, "", "vision"));
    }
    principal_finish(&ranks);
}
END_TEST

START_TEST(a_member_by_a_group_is_one_as_long_as_the_token_says_so)
{
    put_project("speech",
                "{\"members\":{\"group:ml\":\"viewer\",\"group:speech team\":\"user\",\"zed\":\"user\"}}");
    const struct identity *sees =
        put("groups01", (struct token_row){.role = ROLE_USER, .owner = "ann", .groups = "\nml\n"});
    const struct identity *works = put(
        "groups02", (struct token_row){.role = ROLE_USER, .owner = "ann", .groups = "\nml\nspeech team\n"});
    const struct identity *nothing = put(
        "groups03", (struct token_row){.role = ROLE_USER, .owner = "ann", .groups = "\nm\nspeech\nteam\n"});
    ck_assert(authorize_see(projects, sees, "zoe", "speech") && !submits_as(sees, "speech"));
    ck_assert(authorize_see(projects, works, "zoe", "speech") && submits_as(works, "speech"));
    ck_assert(!authorize_see(projects, nothing, "zoe", "speech") && !submits_as(nothing, "speech"));
    ck_assert(submits("zed", ROLE_USER, "speech", 0));
}
END_TEST

/* Their groups are not known with the job. */
START_TEST(ranks_of_a_member_by_a_group_are_users_of_their_jobs_project)
{
    struct principal inside, elsewhere, named;
    put_project("speech", "{\"members\":{\"group:ml\":\"user\"}}");
    principal_of_job(&inside, "ann", "speech");
    principal_of_job(&elsewhere, "ann", "public");
    principal_of_job(&named, "eve", "vision");
    ck_assert(authorize_tracking(projects, &inside, TRACKING_ADDS, "zoe", "speech"));
    ck_assert(!authorize_tracking(projects, &inside, TRACKING_CHANGES, "zoe", "speech"));
    ck_assert(!authorize_tracking(projects, &elsewhere, TRACKING_SEES, "zoe", "speech"));
    ck_assert(!authorize_tracking(projects, &named, TRACKING_SEES, "uma",
                                  "vision")); /* no group is a member there */
    principal_finish(&inside);
    principal_finish(&elsewhere);
    principal_finish(&named);
}
END_TEST

START_TEST(a_name_of_a_login_is_of_one_subject)
{
    const struct token_row row = {.role = ROLE_USER, .owner = "ann", .subject = "i a1"};
    ck_assert(!auth_is_of_another(auth, "ann", "i a1"));
    ck_assert(identity_logged_in(put("login001", row)) && !identity_logged_in(bearer("bob", ROLE_USER)));
    ck_assert(auth_is_of_another(auth, "ann", "i m1") && !auth_is_of_another(auth, "ann", "i a1"));
    ck_assert(!auth_is_of_another(auth, "bob", "i m1"));
    auth_end(auth, "login001", 5);
    ck_assert(!identity_stands(auth_find(auth, "login001"), 5) && auth_is_of_another(auth, "ann", "i m1"));
    struct token_row revoked = row;
    revoked.revoked = true;
    put("login001", revoked);
    ck_assert(!auth_is_of_another(auth, "ann", "i m1"));
}
END_TEST

Suite *authorize_suite(void)
{
    Suite *suite = suite_create("authorize");
    TCase *cases = tcase_create("authorize");
    tcase_add_checked_fixture(cases, open_all, close_all);
    tcase_add_test(cases, each_access_lets_in_its_roles_and_no_other);
    tcase_add_test(cases, a_job_is_seen_by_its_owner_by_members_and_by_operators);
    tcase_add_test(cases, a_job_is_changed_by_its_owner_and_by_operators_and_by_no_token_of_a_viewer);
    tcase_add_test(cases, a_project_takes_jobs_of_its_members_and_without_members_of_everybody);
    tcase_add_test(cases, strangers_are_not_told_whether_a_project_exists);
    tcase_add_test(cases, a_priority_is_bounded_by_the_project_but_for_operators);
    tcase_add_test(cases, what_jobs_do_on_silent_nodes_is_bounded_by_the_project_but_for_operators);
    tcase_add_test(cases, secrets_of_a_project_are_its_users_and_no_role_of_a_token_helps);
    tcase_add_test(cases, a_change_of_a_project_counts_at_once);
    tcase_add_test(cases, a_service_account_has_its_project_and_nothing_else);
    tcase_add_test(cases, a_service_account_tracks_in_its_project_alone);
    tcase_add_test(cases, a_member_by_a_group_is_one_as_long_as_the_token_says_so);
    tcase_add_test(cases, ranks_of_a_member_by_a_group_are_users_of_their_jobs_project);
    tcase_add_test(cases, a_name_of_a_login_is_of_one_subject);
    suite_add_tcase(suite, cases);
    return suite;
}
