/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a receiver. */
#ifndef NOTIFY_TARGET_H
#define NOTIFY_TARGET_H

#include <stdbool.h>

#include "proto/base/http/networks.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* http or https with a host; an address in it must be an allowed one. ERR_FIELD names "url". */
bool target_check(const char *url, const struct networks *networks, struct err *err);

/* The URL as people are shown it: with *** for a user and a password in it. The caller frees it. */
char *target_mask(const char *url);

#endif
