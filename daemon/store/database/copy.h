/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a database that is in use: one moment of it, whole, in one file. */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Asked between any two pieces of the work, on the thread that copies: false stops it. */
struct copy_watch {
    bool (*go_on)(void *closure);
    void *closure;
};

/* Copies the SQLite database `from` to the file `to`, which must not be there yet, syncs it and reads all of
 * it back (integrity_check). Only reads `from`; holds one snapshot of it until its pages are copied, and
 * gives up with ERR_UNAVAILABLE when the log of `from` grows too large meanwhile, or when the watch (NULL:
 * none) stops it. Whatever fails, no file stays at `to`. The folder of `to` is left to the caller. */
bool copy_database(const char *from, const char *to, const struct copy_watch *watch, struct err *err);

#endif
