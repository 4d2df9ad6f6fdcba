/* SPDX-License-Identifier: Apache-2.0 */
/* The settings file of gpuagent. controller_config.c has that of gpuctld: both programs have a struct config.
 */
#include <string.h>

#include "agent/base/config.h"
#include "proto/base/cleanup.h"
#include "proto/base/log.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

/* Without the setting `address`, whose names would be looked up. */
bool fuzz_agent_config(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct config config;
    bool done;
    autofree char *text = fuzz_text(bytes, size);
    if (strcasestr(text, "address") != NULL) {
        return false;
    }
    autofree char *file = xprintf("--config=%s", fuzz_file("agent.conf", bytes, size));
    char *argv[] = {(char[]){"gpuagent"}, file, NULL};
    log_set_level(LOG_LEVEL_ERROR); /* else each plain URL is warned of */
    if (!config_read(2, argv, &config, &done, &err)) {
        FUZZ_REFUSED(err);
        return false;
    }
    if (done) {
        return true;
    }
    FUZZ_MUST(config.list_devices || (config.name != NULL && config.url != NULL && config.run[0] == '/'));
    FUZZ_MUST(config.memory_bytes >= 0 && config.port_first <= config.port_last && config.expires_at_ms >= 0);
    FUZZ_MUST(!config.as_owner || config.user_first <= config.user_last);
    config_finish(&config);
    return true;
}
