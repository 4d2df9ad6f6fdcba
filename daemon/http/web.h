/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page, client/web, as client/web/bundle.py made them when the program was built. */
#ifndef HTTP_WEB_H
#define HTTP_WEB_H

#include <stdbool.h>
#include <stddef.h>

struct web_bytes {
    const unsigned char *bytes;
    size_t length;
};

struct web_file {
    const char *name;
    bool hashed; /* its name has a hash of its bytes: what a browser has of it stays right */
    struct web_bytes plain, packed; /* packed: by gzip */
};

/* Ended by a NULL name; the first is the page itself. */
extern const struct web_file web_files[];

#endif
