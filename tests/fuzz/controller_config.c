/* SPDX-License-Identifier: Apache-2.0 */
/* The settings file of gpuctld. */
#include <string.h>

#include "daemon/config.h"
#include "proto/base/cleanup.h"
#include "proto/base/text/text.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_controller_config(const uint8_t *bytes, size_t size)
{
    struct err err = {0};
    struct config config;
    autofree char *file = xprintf("--config=%s", fuzz_file("controller.conf", bytes, size));
    char *argv[] = {(char[]){"gpuctld"}, file, NULL};
    bool taken = config_parse(2, argv, &config, &err);
    if (!taken) {
        FUZZ_REFUSED(err);
    } else {
        FUZZ_MUST(config.address[0] != '\0' && config.heartbeat_ms >= 50 && config.min_free_bytes >= -1);
        FUZZ_MUST((config.tls_certificate == NULL) == (config.tls_key == NULL));
    }
    config_finish(&config);
    return taken;
}
