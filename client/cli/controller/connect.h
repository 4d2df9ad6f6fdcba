/* SPDX-License-Identifier: Apache-2.0 */
/* The first step of most verbs: the connection to the controller. */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include <stdbool.h>

#include "client/cli/transport/api.h"
#include "client/cli/frame/verb.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* The controller of this call. With start, the user's own instance is started where no controller is
 * configured. */
bool connect_controller(const struct call *call, bool start, struct api **ret_api, struct err *err);

#endif
