/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of gpuagent. */
#include <stdlib.h>

#ifdef WITH_NVML
#include "agent/devices/devices_helper.h"
#endif
#include "tests/unit/agent/agent_suites.h"

int main(int argc, char **argv)
{
#ifdef WITH_NVML
    if (devices_helper_is_meant(argc, argv)) {
        return devices_helper_run(argv);
    }
#endif
    SRunner *runner = srunner_create(reconciler_suite());
    srunner_add_suite(runner, reconciler_lease_suite());
    srunner_add_suite(runner, agent_config_suite());
    srunner_add_suite(runner, cgroup_suite());
    srunner_add_suite(runner, children_suite());
    srunner_add_suite(runner, contract_suite());
    srunner_add_suite(runner, contract_function_suite());
    srunner_add_suite(runner, devices_suite());
    srunner_add_suite(runner, device_rule_suite());
    srunner_add_suite(runner, agent_files_suite());
    srunner_add_suite(runner, folder_pool_suite());
    srunner_add_suite(runner, journal_suite());
    srunner_add_suite(runner, controller_client_suite());
    srunner_add_suite(runner, kept_tree_suite());
    srunner_add_suite(runner, output_suite());
    srunner_add_suite(runner, results_suite());
    srunner_add_suite(runner, port_taken_suite());
    srunner_add_suite(runner, machine_sampler_suite());
    srunner_add_suite(runner, loop_suite());
    srunner_add_suite(runner, mask_suite());
    srunner_add_suite(runner, checkpoint_folder_suite());
    srunner_add_suite(runner, node_tokens_suite());
    srunner_add_suite(runner, sampler_suite());
    srunner_add_suite(runner, run_folder_suite());
    srunner_add_suite(runner, cache_suite());
    srunner_add_suite(runner, environments_suite());
    srunner_add_suite(runner, bundle_suite());
    srunner_add_suite(runner, payload_suite());
    srunner_add_suite(runner, stagings_suite());
    srunner_add_suite(runner, orphans_suite());
    srunner_add_suite(runner, system_calls_suite());
    srunner_add_suite(runner, users_suite());
    srunner_add_suite(runner, warm_key_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
