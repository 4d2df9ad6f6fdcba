/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-proto, one a noun, and the reading of JSON that they share. */
#ifndef PROTO_SUITES_H
#define PROTO_SUITES_H

#include <check.h>
#include <jansson.h>

Suite *account_limits_suite(void);
Suite *jobspec_suite(void);
Suite *jobspec_refused_suite(void);
Suite *jobspec_needs_suite(void);
Suite *jobspec_place_suite(void);
Suite *checkpoint_suite(void);
Suite *frame_suite(void);
Suite *kept_files_suite(void);
Suite *messages_suite(void);
Suite *messages_sample_suite(void);
Suite *messages_refused_suite(void);
Suite *program_suite(void);
Suite *protocol_suite(void);
Suite *recorded_suite(void);
Suite *staging_suite(void);
Suite *states_suite(void);
Suite *tasks_suite(void);
Suite *trace_context_suite(void);
Suite *views_suite(void);
Suite *wall_suite(void);

/* Parses JSON that is written with ' instead of ", as the controller would; the test fails when it is none.
 */
json_t *parse_quoted(const char *text);

#endif
