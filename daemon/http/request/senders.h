/* SPDX-License-Identifier: Apache-2.0 */
/* Shares the HTTP thread's time: each sender of requests waits in a line of its own. */
#ifndef HTTP_SENDERS_H
#define HTTP_SENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct sender;
struct senders;

/* A request that has been in line for wait_ms is refused; 0: nobody waits in line. */
struct senders *senders_create(int64_t wait_ms);
/* No request may be open. Takes NULL. */
void senders_destroy(struct senders *senders);

/* Before a request is handled. False: other senders ask, too, and this one has used its share; the request
 * was suspended, and is resumed when its turn has come. Requests of nodes never wait. */
bool senders_admit(struct senders *senders, struct request *request);
/* The request was handed to the writer or a helper thread, whose time counts as well. Called by its handler.
 */
void senders_hand_on(struct request *request);
/* Its handler has returned after this long. */
void senders_charge(struct request *request, int64_t took_us);
/* That thread has given it back after this long. */
void senders_take_back(struct request *request, int64_t took_us);
/* The request has ended, in line or not. */
void senders_leave(struct senders *senders, struct request *request);

/* Once in each turn of the loop: gives every sender its share of the turn, and resumes the requests for which
 * that is enough. idle: nothing else happened, so nobody has to wait for the sake of others. */
void senders_turn(struct senders *senders, int64_t now_ms, bool idle);

/* When the next turn is due; INT64_MAX: no request can go on before something else happens. */
int64_t senders_due_ms(const struct senders *senders, int64_t now_ms);

/* Requests in line. */
size_t senders_lined(const struct senders *senders);
/* Requests that were refused so far. */
uint64_t senders_refused(const struct senders *senders);

#endif
