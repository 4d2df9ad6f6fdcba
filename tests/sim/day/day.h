/* SPDX-License-Identifier: Apache-2.0 */
/* One day of a cluster, in simulated time: the real writer, core and store decide, simulated people submit
 * and simulated nodes obey. What is left is the state folder of a controller. */
#ifndef SIM_DAY_H
#define SIM_DAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "daemon/writer/writer.h"
#include "proto/base/text/table.h"
#include "tests/sim/world/world.h"

#define SECOND_MS 1000LL
#define MINUTE_MS (60 * SECOND_MS)
#define DAY_HOUR  (60 * MINUTE_MS)
#define DAY_MS    (24 * DAY_HOUR)

struct cluster; /* nodes.h */
struct people;  /* people.h */
struct remains; /* remains.h */

struct day {
    struct world world;
    const char *folder; /* the state folder */
    struct store *store;
    struct writer *writer;
    lifetime wake; /* counts appointments with the writer */
    struct cluster *cluster;
    struct people *people;
    struct remains *remains;
};

/* Ends the program if something fails that never should. */
void day_must(bool ok, const struct err *err);

/* Gives the input to the writer, and does what follows. False: it was refused. ret_job and ret_answer, which
 * the caller frees, may be NULL. */
bool day_ask(struct day *day, const struct input *input, struct job_touch *ret_job, char **ret_answer);
/* The same of several inputs, of which none is refused for good. */
void day_ask_all(struct day *day, const struct input *inputs, size_t count);

#endif
