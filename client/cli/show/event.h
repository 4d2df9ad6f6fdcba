/* SPDX-License-Identifier: Apache-2.0 */
/* How one row of a job's history reads. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "proto/base/text/text.h"
#include "proto/states.h"
#include "proto/wire/views.h"

/* Appends the detail of an event as "name value, name value"; and of one that is JSON still to be read. */
void event_members(const json_t *detail, struct text *out);
void event_detail(const char *detail, struct text *out);
/* Does nothing follow this one? */
bool event_is_last(enum event_kind kind);

#endif
