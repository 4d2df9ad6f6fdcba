/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which neighbouring versions of controller and agent work together. A refusal names the program to
 * upgrade. The messages define each protocol. */
#include "proto/wire/protocol.h"

bool protocol_check(int64_t own, int64_t protocol, const char *version, struct err *err)
{
    if (protocol > own) {
        return err_field(err, ERR_FIELD, "protocol", "upgrade gpuctld first, then the agents",
                         "gpuagent %.64s speaks protocol %lld, gpuctld " GPUCTL_VERSION " at most %lld",
                         version, (long long)protocol, (long long)own);
    }
    if (protocol < own - 1) {
        return err_field(err, ERR_FIELD, "protocol",
                         "upgrade this agent; its jobs go on meanwhile, and the new one finds them",
                         "gpuagent %.64s speaks protocol %lld, gpuctld " GPUCTL_VERSION " at least %lld",
                         version, (long long)protocol, (long long)own - 1);
    }
    return true;
}
