/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of daemon/mlflow. */
#include <stdlib.h>

#include "tests/unit/mlflow/mlflow_suites.h"

int main(void)
{
    SRunner *runner = srunner_create(mlflow_open_suite());
    srunner_add_suite(runner, mlflow_experiments_suite());
    srunner_add_suite(runner, mlflow_runs_suite());
    srunner_add_suite(runner, mlflow_values_suite());
    srunner_add_suite(runner, mlflow_batch_suite());
    srunner_add_suite(runner, mlflow_budget_suite());
    srunner_add_suite(runner, mlflow_filter_suite());
    srunner_add_suite(runner, mlflow_search_suite());
    srunner_add_suite(runner, mlflow_job_suite());
    srunner_add_suite(runner, mlflow_removal_suite());
    srunner_add_suite(runner, mlflow_copies_suite());
    srunner_add_suite(runner, mlflow_models_suite());
    srunner_add_suite(runner, mlflow_registry_suite());
    srunner_add_suite(runner, mlflow_rights_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
