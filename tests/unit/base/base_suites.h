/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of unit-base, one a noun, and the scratch folder that those with files share. */
#ifndef BASE_SUITES_H
#define BASE_SUITES_H

#include <check.h>

Suite *clock_suite(void);
Suite *err_suite(void);
Suite *files_suite(void);
Suite *hash_suite(void);
Suite *json_suite(void);
Suite *log_suite(void);
Suite *options_suite(void);
Suite *settings_suite(void);
Suite *text_suite(void);

/* A fixture: scratch_open makes an empty folder, scratch_close removes it with what is in it. */
void scratch_open(void);
void scratch_close(void);

/* The path of a name in the scratch folder, which the caller frees. */
char *scratch_path(const char *name);

/* Writes a file into the scratch folder, folders on the way included. */
void scratch_write(const char *name, const char *content);

#endif
