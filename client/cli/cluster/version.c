/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl version`: shows the versions of this program, and of the controller if there is one. */
#include "client/cli/controller/connect.h"
#include "client/cli/show/print.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/json.h"

struct version_options {
    bool client;
};

static const struct option_row rows[] = {
    ROW_FLAG(struct version_options, client, 0, "client", "of this program alone"), ROW_FORMAT, ROWS_END};

/* NULL where no controller is named or it does not answer, which is said unless there is none to speak to. */
static json_t *ask_controller(const struct call *call, char **ret_url)
{
    autoapi struct api *api = NULL;
    struct err err;
    if (!connect_controller(call, false, &api, &err)) {
        if (err.code != ERR_UNREACHABLE) {
            print_error(&err);
        }
        return NULL;
    }
    json_t *version = api_get(api, &err, "/version");
    if (version == NULL) {
        print_error(&err);
    }
    *ret_url = xstrdup(api_context(api)->url);
    return version;
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    const struct version_options *options = call->options;
    autofree char *url = NULL;
    autojson json_t *controller = options->client ? NULL : ask_controller(call, &url);
    autotext struct text out = {0};
    if (print_is_json(call->format)) {
        autojson json_t *shown =
            json_pack("{s:s, s:O?, s:s?}", "client", GPUCTL_VERSION, "controller", controller, "url", url);
        print_json(shown, &out);
        return print_out(&out, err);
    }
    const char *version = json_string_of(controller, "version");
    text_printf(&out, "gpuctl %s\n", GPUCTL_VERSION);
    if (version != NULL) {
        const char *policy = json_string_of(controller, "policy");
        text_printf(&out, "gpuctld %s at %s%s%s\n", version, url, policy != NULL ? ", policy " : "",
                    policy != NULL ? policy : "");
    }
    return print_out(&out, err);
}

const struct verb verb_version = {
    .name = "version",
    .summary = "Show the versions of gpuctl and of the controller.",
    .reach = REACH_CONTROLLER,
    .options_size = sizeof(struct version_options),
    .rows = {rows},
    .run = run,
};
