/* SPDX-License-Identifier: Apache-2.0 */
/* The helper process that calls NVML for the agent, so that a hanging driver hangs only this process. It
 * sends only answers, and ends with the agent. The agent keeps the deadlines (devices_nvml.c). */
#include "agent/devices/devices_helper.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "proto/base/cleanup.h"

struct helper {
    const char *library;
    struct nvml *nvml;
};

static bool answer(const void *bytes, size_t size)
{
    return send(HELPER_FD, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool answer_state(bool good, size_t count, const struct err *err)
{
    struct helper_state state = {.count = count};
    if (!good) {
        snprintf(state.problem, sizeof state.problem, "%.*s", LIMIT_DEVICE_REASON, err->text);
    }
    return answer(&state, sizeof state);
}

static bool open_driver(struct helper *helper)
{
    struct err err;
    helper->nvml = helper->nvml != NULL ? helper->nvml : nvml_open(helper->library, &err);
    return answer_state(helper->nvml != NULL, 0, &err);
}

static bool list_gpus(const struct helper *helper)
{
    struct err err;
    size_t count = 0;
    autofree struct nvml_gpu *gpus = helper->nvml != NULL ? nvml_list(helper->nvml, &count, &err) : NULL;
    bool said = helper->nvml != NULL && answer_state(gpus != NULL, count, &err);
    for (size_t i = 0; i < count && said; i++) {
        said = answer(&gpus[i], sizeof gpus[i]);
    }
    return said;
}

static bool look(const struct helper *helper, const char *uuid)
{
    struct device_sight sight;
    if (helper->nvml == NULL) {
        return false;
    }
    nvml_look(helper->nvml, uuid, &sight);
    return answer(&sight, sizeof sight);
}

static bool serve(struct helper *helper)
{
    struct helper_ask ask;
    if (recv(HELPER_FD, &ask, sizeof ask, 0) != (ssize_t)sizeof ask) {
        return false;
    }
    switch (ask.kind) {
    case HELPER_OPEN:
        return open_driver(helper);
    case HELPER_LIST:
        return list_gpus(helper);
    case HELPER_LOOK:
        return look(helper, ask.uuid);
    }
    return false;
}

bool devices_helper_is_meant(int argc, char **argv)
{
    return argc == 3 && strcmp(argv[1], HELPER_WORD) == 0;
}

/* If the agent ended before the prctl, its end of the socket is closed, and recv fails. */
int devices_helper_run(char **argv)
{
    struct helper helper = {.library = argv[2]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "gpuagent-nvml");
    while (serve(&helper)) {
    }
    nvml_close(helper.nvml);
    return EXIT_SUCCESS;
}
