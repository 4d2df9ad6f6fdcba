/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of daemon/store: all, or with "PART PARTS" each that falls to this part, so that parts can
 * run side by side: most of their time they wait for a disk. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/store/store_suites.h"

static Suite *(*const SUITES[])(void) = {
    store_rows_suite,      store_results_suite, store_lists_suite,     store_scan_suite,
    store_job_index_suite, store_live_suite,    store_replies_suite,   store_retention_suite,
    store_open_suite,      store_check_suite,   store_copy_suite,      store_incarnation_suite,
    store_migration_suite, store_sync_suite,    store_use_suite,       store_audit_suite,
    store_webhooks_suite,  store_secrets_suite, store_schedules_suite, store_disk_suite,
    store_scrub_suite,     store_crash_suite,
};

int main(int argc, char **argv)
{
    size_t part = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    size_t parts = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
    if ((argc != 1 && argc != 3) || part >= parts) {
        fprintf(stderr, "usage: unit-store [PART PARTS]\n");
        return EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(NULL);
    for (size_t i = part; i < sizeof SUITES / sizeof *SUITES; i += parts) {
        srunner_add_suite(runner, SUITES[i]());
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
