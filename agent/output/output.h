/* SPDX-License-Identifier: Apache-2.0 */
/* The log files of attempts on their way to the controller, by offset. */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/base/folder_pool.h"
#include "proto/wire/messages.h"

/* What all attempts share. */
struct outputs;
struct outputs *outputs_create(const char *node, struct controller_client *controller, struct loop *loop,
                               struct folder_pool *folder_pool);
void outputs_destroy(struct outputs *outputs);

/* The streams of one attempt. */
struct output;

/* folder holds the files, and belongs to the output after output_retire. With resume the controller is asked
 * how far it is. idle is called whenever all that can be sent has been. */
struct output *output_create(struct outputs *outputs, uint64_t attempt_id, const char *folder, bool resume,
                             void (*idle)(void *closure), void *closure);
void output_destroy(struct output *output);

void output_add_rank(struct output *output, int64_t rank);
/* The stream of all ranks' metrics, under the first of them. */
void output_add_metrics(struct output *output, int64_t first_rank);
/* The files have grown. */
void output_grown(struct output *output);
/* They will not grow any more. */
void output_close(struct output *output);

/* The bytes that the controller has not, LIMIT_EXIT_TAIL_BYTES at most. False when there are more; then it
 * gives none. */
bool output_tails(struct output *output, struct log_tail **ret_tails, size_t *ret_count);
void output_free_tails(struct log_tail *tails, size_t count);
/* The controller has taken the tails. */
void output_taken(struct output *output);
/* The controller lacks what came before the tails: it is asked anew how far it is with each stream. */
void output_doubt(struct output *output);
/* Whether the controller has all bytes. */
bool output_is_sent(const struct output *output);

/* The attempt is over: when the controller has all bytes on disk, or does not want them, the folder is
 * removed. The output looks after itself from here on. */
void output_retire(struct output *output);

#endif
