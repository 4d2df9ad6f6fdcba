/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-agent, one a noun. */
#ifndef AGENT_SUITES_H
#define AGENT_SUITES_H

#include <check.h>

Suite *agent_config_suite(void);
Suite *cgroup_suite(void);
Suite *children_suite(void);
Suite *contract_suite(void);
Suite *contract_function_suite(void);
Suite *devices_suite(void);
Suite *device_rule_suite(void);
Suite *reconciler_suite(void);
Suite *reconciler_lease_suite(void);
Suite *orphans_suite(void);
Suite *cache_suite(void);
Suite *environments_suite(void);
Suite *bundle_suite(void);
Suite *agent_files_suite(void);
Suite *folder_pool_suite(void);
Suite *journal_suite(void);
Suite *controller_client_suite(void);
Suite *machine_sampler_suite(void);
Suite *loop_suite(void);
Suite *mask_suite(void);
Suite *checkpoint_folder_suite(void);
Suite *node_tokens_suite(void);
Suite *kept_tree_suite(void);
Suite *output_suite(void);
Suite *results_suite(void);
Suite *payload_suite(void);
Suite *port_taken_suite(void);
Suite *run_folder_suite(void);
Suite *sampler_suite(void);
Suite *stagings_suite(void);
Suite *system_calls_suite(void);
Suite *users_suite(void);
Suite *warm_key_suite(void);

#endif
