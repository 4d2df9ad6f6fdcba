/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl logout`: ends the token at the controller, then removes what `gpuctl login` has kept of it. */
#include <string.h>
#include <unistd.h>

#include "client/cli/frame/verb.h"
#include "client/cli/show/print.h"
#include "client/cli/transport/api.h"
#include "client/cli/login/saved_login.h"
#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/settings/settings.h"
#include "proto/wire/token.h"

/* The id is the part of the token that is no secret. */
static bool end_token(const struct call *call, const char *token, struct err *err)
{
    const char *rest = token_after_prefix(token, TOKEN_PREFIX);
    if (rest == NULL) {
        return err_set(err, ERR_UNAUTHENTICATED, "the file does not hold a token of gpuctl");
    }
    autofree char *path = xprintf("/v1/login?token=%.*s", TOKEN_ID_LENGTH, rest);
    const struct request request = {.method = "DELETE", .path = path, .retry = true};
    if (api_send(call->api, &request, NULL, err)) {
        return true;
    }
    if (err->code == ERR_UNAUTHENTICATED) {
        print_note("the token was not valid any more");
        return true;
    }
    return false;
}

/* The file that has the token, if a login has made it. */
static void forget(const struct context *context)
{
    autofree char *configuration = settings_user_directory();
    autofree char *folder = file_folder_of(context->token_file);
    autofree char *made = xprintf("%s/token", folder);
    if (strncmp(folder, configuration, strlen(configuration)) == 0 &&
        strcmp(context->token_file, made) == 0) {
        unlink(made);
        saved_login_remove(folder);
    }
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct context *context = api_context(call->api);
    if (context->embedded) {
        return err_set(err, ERR_CONFLICT, "your own instance needs no login: `gpuctl down` ends it");
    }
    if (!end_token(call, context->token, err)) {
        return false;
    }
    forget(context);
    print_note("logged out at %s", context->url);
    return true;
}

const struct verb verb_logout = {
    .name = "logout",
    .summary = "End the token that you use, and forget it.",
    .details = "What you have submitted goes on. A token of an administrator that no login has made stays: "
               "`gpuctl token "
               "revoke` revokes it.",
    OF_THE_CONTROLLER,
    .run = run,
};
