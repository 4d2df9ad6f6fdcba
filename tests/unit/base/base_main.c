/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the suites of proto/base. `unit-base --find NAME` prints where file_find_program finds a program
 * instead, so that a test can ask a copy of this program that lies elsewhere. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "tests/unit/base/base_suites.h"

static char folder[64];

void scratch_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/unit-base-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return remove(path);
}

void scratch_close(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *scratch_path(const char *name)
{
    return xprintf("%s/%s", folder, name);
}

void scratch_write(const char *name, const char *content)
{
    autofree char *path = scratch_path(name);
    autofree char *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    struct err err;
    ck_assert_msg(file_make_directories(parent, 0700, &err), "%s", err.text);
    ck_assert_msg(file_replace(path, content, strlen(content), 0600, &err), "%s", err.text);
}

static int find_and_print(const char *name)
{
    struct err err;
    autofree char *path = file_find_program(name, &err);
    puts(path != NULL ? path : err.text);
    return path != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--find") == 0) {
        return find_and_print(argv[2]);
    }
    SRunner *runner = srunner_create(clock_suite());
    srunner_add_suite(runner, err_suite());
    srunner_add_suite(runner, files_suite());
    srunner_add_suite(runner, hash_suite());
    srunner_add_suite(runner, json_suite());
    srunner_add_suite(runner, log_suite());
    srunner_add_suite(runner, options_suite());
    srunner_add_suite(runner, settings_suite());
    srunner_add_suite(runner, text_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
