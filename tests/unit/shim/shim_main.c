/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of gpushim. */
#include "tests/unit/shim/shim_rig.h"

#include <stdlib.h>

int main(void)
{
    Suite *suite = suite_create("shim");
    rig_suite_life(suite);
    rig_suite_ready(suite);
    rig_suite_kill(suite);
    rig_suite_kept(suite);
    rig_suite_checkpoint(suite);
    rig_suite_timing(suite);
    rig_suite_output(suite);
    rig_suite_pipes(suite);
    rig_suite_metrics(suite);
    rig_suite_store(suite);
    rig_suite_sabotage(suite);
    rig_suite_reuse(suite);
    rig_suite_warm(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
