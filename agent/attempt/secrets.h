/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of an attempt, from its order to its shim. */
#ifndef AGENT_SECRETS_H
#define AGENT_SECRETS_H

#include <stddef.h>

#include "agent/common/mask.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"
#include "proto/wire/messages.h"

struct attempt_secrets {
    size_t count;
    struct text packed; /* as the shim reads them (agent/shim/shimwire.h), until it has them */
    struct mask *mask;  /* of texts that ranks leave; NULL: none */
    char *problem;      /* why the ranks cannot have them, for people; NULL: they can */
};

/* Takes the values out of an order, where they are overwritten. run: the attempt's run folder. Does nothing
 * for an order without secrets, and the second time. */
void attempt_secrets_take(struct attempt_secrets *secrets, struct order *order, const char *run);

/* For an attempt that was adopted: nobody knows its values until its order comes again. */
void attempt_secrets_adopt(struct attempt_secrets *secrets, size_t count);

/* The values as a file without a name, which the caller closes; they are forgotten here, but for the mask.
 * -1: *err. */
int attempt_secrets_give(struct attempt_secrets *secrets, struct err *err);

void attempt_secrets_finish(struct attempt_secrets *secrets);

#endif
