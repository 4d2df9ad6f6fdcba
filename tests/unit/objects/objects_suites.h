/* SPDX-License-Identifier: Apache-2.0 */
/* The suites of the object store beside that of test_s3.c, which runs them. */
#ifndef OBJECTS_SUITES_H
#define OBJECTS_SUITES_H

#include <check.h>

Suite *s3_listing_suite(void);

#endif
