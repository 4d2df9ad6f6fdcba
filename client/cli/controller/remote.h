/* SPDX-License-Identifier: Apache-2.0 */
/* Programs such as ssh and scp: started with a text on stdin, waited for, their output kept. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/base/err.h"
#include "proto/base/text/text.h"

struct remote {
    pid_t pid;
    int output, errors; /* files in memory */
};

/* argv[0] is looked for on PATH. input may be NULL. */
bool remote_start(char *const *argv, const char *input, struct remote *ret_remote, struct err *err);
/* Waits for its end and appends its output. Returns the exit code, or 128 + the signal that ended it. */
int remote_wait(struct remote *remote, struct text *output, struct text *errors);

#endif
