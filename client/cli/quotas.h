/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of `gpuctl quotas` that change something. */
#ifndef CLI_QUOTAS_H
#define CLI_QUOTAS_H

#include "client/cli/verb.h"

extern const struct verb verb_quotas_set, verb_quotas_unset;

#endif
