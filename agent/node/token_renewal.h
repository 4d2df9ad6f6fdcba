/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the node a new token of its own from time to time, so that a stolen one is soon worth nothing. */
#ifndef AGENT_TOKEN_RENEWAL_H
#define AGENT_TOKEN_RENEWAL_H

#include "agent/attempt/attempt.h"

struct token_renewal;

struct token_renewal *token_renewal_create(struct agent_context *context);
void token_renewal_destroy(struct token_renewal *renewal);
/* The controller has taken the node: from now on its token is renewed when it is old, or at once if it is an
 * earlier one. Called again with each sign that it is still taken. */
void token_renewal_begin(struct token_renewal *renewal);

#endif
