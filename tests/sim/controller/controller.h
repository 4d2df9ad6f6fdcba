/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: the real writer, core and store, on a disk that can lose power. Simulated code answers
 * requests in place of the HTTP thread. */
#ifndef SIM_CONTROLLER_H
#define SIM_CONTROLLER_H

#include "daemon/core/core.h"
#include "daemon/store/store.h"
#include "tests/sim/world/sim.h"

struct disk;

/* folder: a real one, for the store's files besides its database. Serves as soon as the world runs. */
struct controller *controller_create(struct sim *sim, const char *folder);
void controller_destroy(struct controller *controller);

/* The `serve` argument of wire_create. */
void controller_serve(void *closure, const struct wire_request *request);

bool controller_is_up(const struct controller *controller);
struct disk *controller_disk(struct controller *controller);
/* A reader of the committed state; NULL while it is down. */
struct reader *controller_reader(struct controller *controller);
const struct core *controller_core(const struct controller *controller);

/* Faults. The controller comes back by itself. */
void controller_kill(struct controller *controller);
/* The machine loses power after this many more operations of its disk. */
void controller_cut_power(struct controller *controller, int64_t operations);
/* A disk fault was arranged, so a failed start is no error. */
void controller_expect_failure(struct controller *controller);
/* The controller does nothing for a while, as with a slow disk or SIGSTOP. */
void controller_stall(struct controller *controller, int64_t for_ms);

#endif
