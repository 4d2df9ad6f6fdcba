/* SPDX-License-Identifier: Apache-2.0 */
/* A series in one cell of a table. */
#ifndef CLI_SPARK_H
#define CLI_SPARK_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/charts/series.h"
#include "proto/base/text.h"

#define SPARK_CELLS 24

/* Appends at most `most` characters, of SPARK_CELLS, from the oldest point to the newest, their height
 * between the lowest and the highest of them; a stretch without a finite value is a space. Nothing where no
 * value is finite. */
void spark_draw(const struct series *series, size_t most, bool utf8, struct text *out);

#endif
