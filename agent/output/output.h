/* SPDX-License-Identifier: Apache-2.0 */
/* Ships the log files of attempts to the controller, by offset, and the files that ranks keep. */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/controller_client.h"
#include "agent/base/loop.h"
#include "agent/base/folder_pool.h"
#include "proto/wire/messages.h"

/* The part that all attempts share. kept_limit: bytes of the files that a rank keeps. */
struct outputs;
struct outputs *outputs_create(const char *node, int64_t kept_limit, struct controller_client *controller,
                               struct loop *loop, struct folder_pool *folder_pool);
void outputs_destroy(struct outputs *outputs);

/* The streams of one attempt. */
struct output;

/* folder holds the files; after output_retire it belongs to the output. With resume, the controller is asked
 * for its position in each stream. idle is called whenever all bytes that can be sent now were sent. */
struct output *output_create(struct outputs *outputs, uint64_t attempt_id, const char *folder, bool resume,
                             void (*idle)(void *closure), void *closure);
void output_destroy(struct output *output);

void output_add_rank(struct output *output, int64_t rank);
/* Adds the metrics of all ranks, as a stream of the first rank. */
void output_add_metrics(struct output *output, int64_t first_rank);
/* To be called when the files have grown. */
void output_grown(struct output *output);
/* To be called when the files will not grow any more. The first upload of the files that a rank keeps belongs
 * to the bytes that the controller lacks; the rest follows when the output has retired. */
void output_close(struct output *output);

/* The bytes that the controller lacks, at most LIMIT_EXIT_TAIL_BYTES. False if there are more; then it
 * returns none. */
bool output_tails(struct output *output, struct log_tail **ret_tails, size_t *ret_count);
void output_free_tails(struct log_tail *tails, size_t count);
/* To be called when the controller has taken the tails. */
void output_taken(struct output *output);
/* To be called when the controller lacks bytes before the tails: asks again for its position in each
 * stream. */
void output_doubt(struct output *output);
/* Whether the controller has all bytes. */
bool output_is_sent(const struct output *output);

/* To be called when the attempt is over. Once the controller has all bytes on disk, or does not want them,
 * the folder is removed. The output frees itself. */
void output_retire(struct output *output);

#endif
