/* SPDX-License-Identifier: Apache-2.0 */
/* powerloss [--images N] [--errors-every N] [--seed S]: runs the real store on a disk that loses power and
 * fails. The last line counts images, error points and violations; the exit code is 1 if there was a
 * violation. */
#include "tests/sim/store/powerloss.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { MALLOC_KEPT_BYTES = 1 << 30 };

void tally_violation(struct tally *tally, const char *what, int64_t where)
{
    tally->violations++;
    fprintf(stderr, "seed %" PRIu64 ", operation %" PRId64 ": %s\n", tally->seed, where, what);
}

static int usage(void)
{
    fprintf(stderr, "usage: powerloss [--images N] [--errors-every N] [--seed S]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"images", required_argument, NULL, 'i'},
                                            {"errors-every", required_argument, NULL, 'e'},
                                            {"seed", required_argument, NULL, 's'},
                                            {0}};
    int64_t images = 500, stride = 10;
    struct tally tally = {.seed = 1};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'i') {
            images = strtoll(optarg, NULL, 10);
        } else if (option == 'e') {
            stride = strtoll(optarg, NULL, 10);
        } else if (option == 's') {
            tally.seed = strtoull(optarg, NULL, 10);
        } else {
            return usage();
        }
    }
    if (optind < argc || images < 0 || stride < 1) {
        return usage();
    }
    mallopt(M_MMAP_THRESHOLD, MALLOC_KEPT_BYTES); /* disks come and go: their memory is reused for the next */
    mallopt(M_TRIM_THRESHOLD, MALLOC_KEPT_BYTES);
    powerloss_images(&tally, images);
    powerloss_errors(&tally, stride);
    printf("%" PRId64 " images, %" PRId64 " error points, %" PRId64 " violations\n", tally.images,
           tally.error_points, tally.violations);
    return tally.violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
