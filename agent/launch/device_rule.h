/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of NVIDIA's driver the processes of a cgroup can make and open. */
#ifndef AGENT_DEVICE_RULE_H
#define AGENT_DEVICE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

struct device_rule;

/* majors: the file that lists the numbers of drivers, normally DEVICE_MAJORS. */
#define DEVICE_MAJORS "/proc/devices"
struct device_rule *device_rule_create(const char *majors);
void device_rule_destroy(struct device_rule *rule); /* NULL is allowed; what was set stays */

/* Reads which drivers the kernel has now; false: the next rule tries again. A driver that is loaded later has
 * its place in the rules that are set after the next look. */
bool device_rule_look(struct device_rule *rule, struct err *err);

/* From now on the processes in the cgroup whose folder is open, and in those below it, open of the files of
 * GPUs only those with these minor numbers. Where there are none they open no file of the driver. Nothing
 * takes this back; of several rules all count. */
bool device_rule_set(struct device_rule *rule, int folder, const int64_t *gpus, size_t count,
                     struct err *err);

#endif
