/* SPDX-License-Identifier: Apache-2.0 */
/* Job specs for tests. Each function takes over the JSON that it is given. */
#ifndef UNIT_JOBSPEC_RIG_H
#define UNIT_JOBSPEC_RIG_H

#include <jansson.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/spec/jobspec.h"

#define HASH        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_A        "'aaaaaaaaaaaaaaaa'"
#define ID_B        "'bbbbbbbbbbbbbbbb'"
#define HEADER_LINE "gpuctl-function 1 python=3.11\n"

struct job_spec spec_taken(json_t *json);
/* The least that a spec needs, with the members of an object added or replaced. */
json_t *spec_with(const char *members);
struct err spec_refusal(json_t *json);
void spec_refused(json_t *json, enum err_code code, const char *field);
/* A spec whose function is this payload. */
json_t *spec_of_payload(const char *payload, size_t length);

#endif
