/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of proto. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"
#include "proto/base/text/text.h"
#include "tests/unit/proto/proto_suites.h"

json_t *parse_quoted(const char *text)
{
    autofree char *json = xstrdup(text);
    for (char *at = strchr(json, '\''); at != NULL; at = strchr(at, '\'')) {
        *at = '"';
    }
    struct err err;
    json_t *value = json_parse(json, strlen(json), &err);
    ck_assert_msg(value != NULL, "%s: %s", text, err.text);
    return value;
}

int main(void)
{
    SRunner *runner = srunner_create(jobspec_suite());
    srunner_add_suite(runner, account_limits_suite());
    srunner_add_suite(runner, jobspec_refused_suite());
    srunner_add_suite(runner, jobspec_needs_suite());
    srunner_add_suite(runner, jobspec_place_suite());
    srunner_add_suite(runner, checkpoint_suite());
    srunner_add_suite(runner, frame_suite());
    srunner_add_suite(runner, kept_files_suite());
    srunner_add_suite(runner, messages_suite());
    srunner_add_suite(runner, messages_sample_suite());
    srunner_add_suite(runner, messages_refused_suite());
    srunner_add_suite(runner, program_suite());
    srunner_add_suite(runner, protocol_suite());
    srunner_add_suite(runner, recorded_suite());
    srunner_add_suite(runner, staging_suite());
    srunner_add_suite(runner, states_suite());
    srunner_add_suite(runner, tasks_suite());
    srunner_add_suite(runner, trace_context_suite());
    srunner_add_suite(runner, views_suite());
    srunner_add_suite(runner, wall_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
