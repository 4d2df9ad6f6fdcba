/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the simulated controller alone. */
#ifndef SIM_CONTROLLER_PARTS_H
#define SIM_CONTROLLER_PARTS_H

#include "daemon/writer/writer.h"
#include "proto/base/text/text.h"
#include "proto/wire/messages.h"
#include "tests/sim/controller/controller.h"

struct ask;
struct box;

struct controller {
    struct sim *sim;
    char *path;
    struct disk *disk;
    enum policy policy;
    int64_t pass_work;
    int64_t heartbeat_ms;
    struct machine_clock clock;
    lifetime life;
    bool up, turning;
    bool failing; /* a disk fault was arranged, so a failed start is no error */
    int64_t busy_until_ms, waits_ms;
    struct store *store;
    struct writer *writer;
    struct reader *reader;
    struct text decisions; /* of the core, while a trace is made */
    struct ask *asks;      /* requests in the writer */
    struct box *boxes;     /* by node */
};

int64_t controller_now(const struct controller *controller);
/* To be called after a request to the writer. */
void controller_asked(struct controller *controller);

/* --- what goes through the writer ----------------------------------------------------------------------- */

void asks_serve(struct controller *controller, const struct wire_request *request);
void asks_answer(struct controller *controller, struct writer_request *answered);
void asks_drop(struct controller *controller);

/* --- orders to nodes, in the place of daemon/http/orders/outbox.c ----------------------------------------
 */

void orders_put(struct controller *controller, struct node_orders *orders);
void orders_registered(struct controller *controller, const char *node, const char *boot_id);
void orders_poll(struct controller *controller, const struct poll_message *message, uint64_t ticket);
void orders_drop(struct controller *controller);
/* How many devices of a type the attempts of a project hold, by the newest orders for all nodes. */
int64_t orders_held(const struct controller *controller, const char *project, const char *type);

#endif
