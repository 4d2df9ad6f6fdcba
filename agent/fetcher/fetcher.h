/* SPDX-License-Identifier: Apache-2.0 */
/* The program that fetches one input of a job for the agent: gpuagent, called with one word. It reads its
 * order as JSON from stdin, and writes a line of JSON for each thing that it has to say:
 *
 *   {"text": "..."}                                 progress
 *   {"version": "...", "size": N, "tree": false}    of a probe: what is there now; size -1: unknown
 *   {"done": true, "size": N}                       of a fetch: all of it is in the folder
 *   {"failed": "...", "by_user": B, "lasting": B}   as builders say it (builder.h)
 *
 * A fetch writes into the folders `data`, with what jobs will see, and `work`, of the order's folder. Half a
 * fetch goes on where it stopped. */
#ifndef AGENT_FETCHER_H
#define AGENT_FETCHER_H

#include <stdbool.h>

#define FETCHER_WORD "fetch-an-input"
#define FETCHER_DATA "data"
#define FETCHER_WORK "work"

bool fetcher_is_meant(int argc, char **argv);
/* Returns the exit code. */
int fetcher_run(void);

#endif
