/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of gpuctl, the command line. */
#include <stdio.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/cli/cli_suites.h"

char cli_folder[64];

void cli_make_folder(void)
{
    snprintf(cli_folder, sizeof cli_folder, "/tmp/unit-cli-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(cli_folder));
    setenv("XDG_CONFIG_HOME", cli_folder, 1);
    setenv("XDG_STATE_HOME", cli_folder, 1);
    unsetenv("GPUCTL_URL");
    unsetenv("GPUCTL_TOKEN_FILE");
    unsetenv("GPUCTL_STATE");
}

void cli_remove_folder(void)
{
    file_remove_tree(cli_folder, NULL);
}

void cli_write_file(const char *name, const char *content)
{
    autofree char *path = xprintf("%s/%s", cli_folder, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

int main(void)
{
    SRunner *runner = srunner_create(cli_options_suite());
    srunner_add_suite(runner, cli_output_suite());
    srunner_add_suite(runner, cli_timing_suite());
    srunner_add_suite(runner, cli_instance_suite());
    srunner_add_suite(runner, cli_metrics_suite());
    srunner_add_suite(runner, cli_curve_suite());
    srunner_add_suite(runner, cli_results_suite());
    srunner_add_suite(runner, cli_batch_suite());
    srunner_add_suite(runner, cli_slurm_suite());
    srunner_add_suite(runner, cli_jobfile_suite());
    srunner_add_suite(runner, cli_yaml_suite());
    srunner_add_suite(runner, cli_ignore_suite());
    srunner_add_suite(runner, cli_bundle_suite());
    srunner_add_suite(runner, cli_requirements_suite());
    srunner_add_suite(runner, cli_mcp_suite());
    srunner_add_suite(runner, cli_top_suite());
    srunner_add_suite(runner, cli_top_view_suite());
    srunner_add_suite(runner, cli_top_walk_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
