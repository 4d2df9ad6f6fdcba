/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all trace tests of the core. */
#include <stdlib.h>

#include "tests/trace/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(queue_suite());
    srunner_add_suite(runner, pass_suite());
    srunner_add_suite(runner, resource_suite());
    srunner_add_suite(runner, admission_suite());
    srunner_add_suite(runner, account_suite());
    srunner_add_suite(runner, quota_suite());
    srunner_add_suite(runner, hours_suite());
    srunner_add_suite(runner, webhooks_suite());
    srunner_add_suite(runner, gang_suite());
    srunner_add_suite(runner, failure_suite());
    srunner_add_suite(runner, cancel_suite());
    srunner_add_suite(runner, node_suite());
    srunner_add_suite(runner, lease_suite());
    srunner_add_suite(runner, leave_suite());
    srunner_add_suite(runner, report_suite());
    srunner_add_suite(runner, limit_suite());
    srunner_add_suite(runner, loaded_suite());
    srunner_add_suite(runner, restart_suite());
    srunner_add_suite(runner, result_suite());
    srunner_add_suite(runner, staging_suite());
    srunner_add_suite(runner, locality_suite());
    srunner_add_suite(runner, dependency_suite());
    srunner_add_suite(runner, hold_suite());
    srunner_add_suite(runner, amend_suite());
    srunner_add_suite(runner, placement_suite());
    srunner_add_suite(runner, policy_suite());
    srunner_add_suite(runner, simulate_suite());
    srunner_add_suite(runner, array_suite());
    srunner_add_suite(runner, explain_suite());
    srunner_add_suite(runner, reason_suite());
    srunner_add_suite(runner, plan_suite());
    srunner_add_suite(runner, queue_list_suite());
    srunner_add_suite(runner, queue_snapshot_suite());
    srunner_add_suite(runner, remove_suite());
    srunner_add_suite(runner, simulate_reader_suite());
    srunner_add_suite(runner, idle_suite());
    srunner_add_suite(runner, kept_suite());
    srunner_add_suite(runner, warning_suite());
    srunner_add_suite(runner, window_suite());
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
