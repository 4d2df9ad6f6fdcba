/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of daemon/store. */
#include <stdlib.h>

#include "tests/unit/store/store_suites.h"

int main(void)
{
    SRunner *runner = srunner_create(store_rows_suite());
    srunner_add_suite(runner, store_results_suite());
    srunner_add_suite(runner, store_lists_suite());
    srunner_add_suite(runner, store_scan_suite());
    srunner_add_suite(runner, store_job_index_suite());
    srunner_add_suite(runner, store_live_suite());
    srunner_add_suite(runner, store_replies_suite());
    srunner_add_suite(runner, store_retention_suite());
    srunner_add_suite(runner, store_open_suite());
    srunner_add_suite(runner, store_check_suite());
    srunner_add_suite(runner, store_copy_suite());
    srunner_add_suite(runner, store_incarnation_suite());
    srunner_add_suite(runner, store_migration_suite());
    srunner_add_suite(runner, store_sync_suite());
    srunner_add_suite(runner, store_use_suite());
    srunner_add_suite(runner, store_audit_suite());
    srunner_add_suite(runner, store_webhooks_suite());
    srunner_add_suite(runner, store_disk_suite());
    srunner_add_suite(runner, store_scrub_suite());
    srunner_add_suite(runner, store_crash_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
