/* SPDX-License-Identifier: Apache-2.0 */
/* Connects a verb to its controller. It starts the user's own instance when a job needs one and no
 * controller is named. */
#include "client/cli/controller/connect.h"

#include "client/cli/transport/context.h"
#include "client/cli/show/print.h"
#include "client/cli/controller/renew.h"
#include "client/cli/controller/start.h"

static bool start_own(const struct common *common, struct err *err)
{
    struct context context;
    if (!context_load_state(common, &context, err)) {
        return false;
    }
    struct start_options options;
    start_defaults(&options);
    bool started = false;
    bool good = start_instance(context.state, &options, &started, err);
    if (good && started) {
        char idle[32];
        text_from_duration_ms(options.idle_exit_ms, idle, sizeof idle);
        print_note("started a controller and a node of your own in %s; they end after %s without jobs",
                   context.state, idle);
    }
    context_finish(&context);
    return good;
}

bool connect_controller(const struct call *call, bool start, struct api **ret_api, struct err *err)
{
    struct context context;
    bool loaded = context_load(call->common, &context, err);
    if (!loaded && start && err->code == ERR_UNREACHABLE) {
        loaded = start_own(call->common, err) && context_load(call->common, &context, err);
    }
    if (!loaded || !renew_login(&context, err)) {
        context_finish(&context);
        return false;
    }
    *ret_api = api_create(&context);
    return true;
}
