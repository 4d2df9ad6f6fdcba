/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of the trace tests, one a file. */
#ifndef TRACE_SUITES_H
#define TRACE_SUITES_H

#include <check.h>

Suite *queue_suite(void);
Suite *pass_suite(void);
Suite *resource_suite(void);
Suite *queue_list_suite(void);
Suite *queue_snapshot_suite(void);
Suite *remove_suite(void);
Suite *account_suite(void);
Suite *quota_suite(void);
Suite *hours_suite(void);
Suite *webhooks_suite(void);
Suite *admission_suite(void);
Suite *gang_suite(void);
Suite *failure_suite(void);
Suite *cancel_suite(void);
Suite *node_suite(void);
Suite *lease_suite(void);
Suite *leave_suite(void);
Suite *report_suite(void);
Suite *limit_suite(void);
Suite *loaded_suite(void);
Suite *restart_suite(void);
Suite *result_suite(void);
Suite *staging_suite(void);
Suite *locality_suite(void);
Suite *dependency_suite(void);
Suite *hold_suite(void);
Suite *amend_suite(void);
Suite *placement_suite(void);
Suite *policy_suite(void);
Suite *simulate_suite(void);
Suite *array_suite(void);
Suite *explain_suite(void);
Suite *reason_suite(void);
Suite *plan_suite(void);
Suite *simulate_reader_suite(void);
Suite *warning_suite(void);
Suite *idle_suite(void);
Suite *kept_suite(void);
Suite *window_suite(void);

#endif
