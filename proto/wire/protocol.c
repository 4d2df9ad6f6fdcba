/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rule by which neighbouring versions of controller and agent work together. It promises that the
 * one who reads a refusal knows which program to upgrade. What is said in each protocol is left to the
 * messages. */
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
