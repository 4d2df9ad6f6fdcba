/* SPDX-License-Identifier: Apache-2.0 */
/* The controller that gpuctl speaks to, and the token: from flags, then settings, then the user's own
 * instance. */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

struct context {
    char *url; /* without a slash at the end */
    char *token;
    char *token_file; /* that it was read from */
    char *cause;      /* for people, what named the controller: "GPUCTL_URL" */
    char *cacert;     /* NULL: the system's */
    char *state;      /* folder of the user's own instance */
    bool embedded;    /* url is that instance */
};

/* Writes the names of the settings of SETTINGS_CLIENT, separated by commas. */
void context_name_settings(FILE *out);

/* The token that a file holds, the caller's. NULL: ERR_UNAUTHENTICATED. */
char *context_read_token(const char *path, struct err *err);

/* Whether the URL is of this host alone. */
bool context_is_loopback(const char *url);
/* Without slashes at its end; the caller frees it. */
char *context_trim_url(const char *url);
/* ERR_USAGE if it is not the URL of a controller, or would show the token to the network. */
bool context_check_url(const char *url, bool plain_allowed, struct err *err);

/* Fills state alone. */
bool context_load_state(const struct common *common, struct context *ret_context, struct err *err);

/* Fills all of it. ERR_UNREACHABLE where no controller is configured and the user's own instance does not
 * run. */
bool context_load(const struct common *common, struct context *ret_context, struct err *err);

/* The same of a saved context, whatever options and settings say. */
struct saved_context;
bool context_load_saved(const struct saved_context *saved, struct context *ret_context, struct err *err);

/* After the controller was lost: an instance that was started again has a new URL. */
void context_refresh(struct context *context);

void context_finish(struct context *context);

#endif
