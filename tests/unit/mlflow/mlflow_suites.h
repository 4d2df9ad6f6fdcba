/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-mlflow, one a file. */
#ifndef MLFLOW_SUITES_H
#define MLFLOW_SUITES_H

#include <check.h>

Suite *mlflow_batch_suite(void);
Suite *mlflow_budget_suite(void);
Suite *mlflow_experiments_suite(void);
Suite *mlflow_filter_suite(void);
Suite *mlflow_job_suite(void);
Suite *mlflow_removal_suite(void);
Suite *mlflow_copies_suite(void);
Suite *mlflow_models_suite(void);
Suite *mlflow_open_suite(void);
Suite *mlflow_registry_suite(void);
Suite *mlflow_rights_suite(void);
Suite *mlflow_runs_suite(void);
Suite *mlflow_search_suite(void);
Suite *mlflow_values_suite(void);

#endif
