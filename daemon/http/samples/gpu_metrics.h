/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /metrics that name nodes, GPUs, and the jobs that hold them. */
#ifndef HTTP_GPU_METRICS_H
#define HTTP_GPU_METRICS_H

#include <stdbool.h>

#include "daemon/http/base/exposition.h"
#include "daemon/http/request/pieces.h"

struct gpu_metrics;

/* Begins the lines that the sender of the request may see. */
struct gpu_metrics *gpu_metrics_create(const struct request *request, bool open_metrics);
void gpu_metrics_destroy(struct gpu_metrics *metrics); /* takes NULL */

/* Collects a piece of them; PIECES_DONE: that was the last one. */
enum pieces_state gpu_metrics_step(struct gpu_metrics *metrics, struct err *err);
/* Appends all of them to the page. */
void gpu_metrics_write(const struct gpu_metrics *metrics, struct exposition *out);

#endif
