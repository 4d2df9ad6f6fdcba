/* SPDX-License-Identifier: Apache-2.0 */
/* The person's browser. */
#ifndef CLI_BROWSER_H
#define CLI_BROWSER_H

#include <stdbool.h>

#include "proto/base/err.h"

/* false: this session has none, or it does not start. */
bool browser_open(const char *url, struct err *err);

/* The same for a link that signs in, which no other user of this host may see. state: the person's folder. */
bool browser_open_link(const char *state, const char *link, struct err *err);

#endif
