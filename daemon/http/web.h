/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page, client/web, as they were when the program was built. */
#ifndef HTTP_WEB_H
#define HTTP_WEB_H

#include <stddef.h>

struct web_file {
    const char *name;
    const unsigned char *bytes;
    size_t length;
};

/* Ended by a NULL name; the first is the page itself. daemon/meson.build lists them. */
extern const struct web_file web_files[];

#endif
