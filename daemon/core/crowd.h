/* SPDX-License-Identifier: Apache-2.0 */
/* Crowds: nodes that may form one gang. */
#ifndef CORE_CROWD_H
#define CORE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct fit;
struct fragments;
struct partition;
struct search;

/* The largest gang that nodes of the partition could form. */
int64_t crowd_largest(const struct search *search, const struct partition *partition);

/* The best way to lay the gang of a search over nodes of the partition. false: there are not enough. */
bool crowd_fit(const struct search *search, const struct partition *partition,
               const struct fragments *fragments, struct fit *ret_fit);

#endif
