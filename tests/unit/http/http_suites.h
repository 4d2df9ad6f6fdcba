/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-http, one a noun. */
#ifndef HTTP_SUITES_H
#define HTTP_SUITES_H

#include <check.h>

Suite *auth_suite(void);
Suite *authorize_suite(void);
Suite *deadline_suite(void);
Suite *fair_queue_suite(void);
Suite *writer_suite(void);
Suite *exit_results_suite(void);
Suite *exposition_suite(void);
Suite *tally_suite(void);
Suite *networks_suite(void);
Suite *gate_suite(void);
Suite *head_suite(void);
Suite *kept_suite(void);
Suite *metrics_line_suite(void);
Suite *metrics_reader_suite(void);
Suite *metrics_suite(void);
Suite *peers_suite(void);
Suite *query_suite(void);
Suite *questions_suite(void);
Suite *rank_token_suite(void);
Suite *router_suite(void);
Suite *excerpt_suite(void);
Suite *simulation_run_suite(void);
Suite *schedule_due_suite(void);
Suite *spec_list_suite(void);
Suite *staging_board_suite(void);
Suite *uploads_suite(void);

#endif
