/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-store, one a file. */
#ifndef STORE_SUITES_H
#define STORE_SUITES_H

#include <check.h>

Suite *store_audit_suite(void);
Suite *store_check_suite(void);
Suite *store_copy_suite(void);
Suite *store_crash_suite(void);
Suite *store_incarnation_suite(void);
Suite *store_migration_suite(void);
Suite *store_disk_suite(void);
Suite *store_job_index_suite(void);
Suite *store_lists_suite(void);
Suite *store_live_suite(void);
Suite *store_open_suite(void);
Suite *store_replies_suite(void);
Suite *store_retention_suite(void);
Suite *store_results_suite(void);
Suite *store_rows_suite(void);
Suite *store_scan_suite(void);
Suite *store_scrub_suite(void);
Suite *store_sync_suite(void);
Suite *store_use_suite(void);
Suite *store_schedules_suite(void);
Suite *store_secrets_suite(void);
Suite *store_webhooks_suite(void);

#endif
