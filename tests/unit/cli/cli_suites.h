/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-cli, one a noun, and the folder that each of their tests has for itself. */
#ifndef CLI_SUITES_H
#define CLI_SUITES_H

#include <check.h>

Suite *cli_options_suite(void);
Suite *cli_output_suite(void);
Suite *cli_timing_suite(void);
Suite *cli_instance_suite(void);
Suite *cli_metrics_suite(void);
Suite *cli_curve_suite(void);
Suite *cli_results_suite(void);
Suite *cli_batch_suite(void);
Suite *cli_slurm_suite(void);
Suite *cli_jobfile_suite(void);
Suite *cli_yaml_suite(void);
Suite *cli_ignore_suite(void);
Suite *cli_bundle_suite(void);
Suite *cli_requirements_suite(void);
Suite *cli_mcp_suite(void);
Suite *cli_top_suite(void);
Suite *cli_top_view_suite(void);
Suite *cli_top_walk_suite(void);

/* A checked fixture: the path of a new folder, with no settings of gpuctl's around. */
extern char cli_folder[64];
void cli_make_folder(void);
void cli_remove_folder(void);
void cli_write_file(const char *name, const char *content);

#endif
