/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of daemon/http that need no server. */
#include <stdlib.h>

#include "tests/unit/http/http_suites.h"

int main(void)
{
    SRunner *runner = srunner_create(auth_suite());
    srunner_add_suite(runner, authorize_suite());
    srunner_add_suite(runner, deadline_suite());
    srunner_add_suite(runner, fair_queue_suite());
    srunner_add_suite(runner, writer_suite());
    srunner_add_suite(runner, exit_results_suite());
    srunner_add_suite(runner, exposition_suite());
    srunner_add_suite(runner, kept_suite());
    srunner_add_suite(runner, tally_suite());
    srunner_add_suite(runner, networks_suite());
    srunner_add_suite(runner, gate_suite());
    srunner_add_suite(runner, head_suite());
    srunner_add_suite(runner, metrics_line_suite());
    srunner_add_suite(runner, metrics_reader_suite());
    srunner_add_suite(runner, metrics_suite());
    srunner_add_suite(runner, peers_suite());
    srunner_add_suite(runner, query_suite());
    srunner_add_suite(runner, questions_suite());
    srunner_add_suite(runner, rank_token_suite());
    srunner_add_suite(runner, router_suite());
    srunner_add_suite(runner, excerpt_suite());
    srunner_add_suite(runner, simulation_run_suite());
    srunner_add_suite(runner, schedule_due_suite());
    srunner_add_suite(runner, spec_list_suite());
    srunner_add_suite(runner, staging_board_suite());
    srunner_add_suite(runner, uploads_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
