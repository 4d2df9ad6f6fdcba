/* SPDX-License-Identifier: Apache-2.0 */
/* What a node uses, by its newest sample. */
#ifndef CLI_TOP_SAMPLES_H
#define CLI_TOP_SAMPLES_H

#include <jansson.h>

/* The newest record of a reply of /v1/nodes/{name}/samples: {cpu_percent, memory_bytes, gpus: {"INDEX":
 * {utilization_percent, memory_bytes}}}, without what is not known. New reference; NULL: there is no record.
 */
json_t *top_sample_newest(const json_t *reply);
/* The memory of each device of a node as /v1/nodes/{name} shows it: {"INDEX": bytes}. New reference. */
json_t *top_sample_totals(const json_t *node);
/* The use of the devices, all where they are NULL or "": an object with the members `gpu_percent` (the mean),
 * `gpu_memory_bytes`, `gpu_memory_total_bytes`, `cpu_percent` and `memory_bytes`, as far as they are known.
 * newest and totals as above; either may be NULL. devices: indices with commas, as the API gives them. New
 * reference; NULL: nothing is known. */
json_t *top_sample_use(const json_t *newest, const json_t *totals, const char *devices);

#endif
