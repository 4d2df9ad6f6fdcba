/* SPDX-License-Identifier: Apache-2.0 */
/* Crowds: nodes that may form one gang. */
#ifndef CORE_CROWD_H
#define CORE_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct fit;
struct fragments;
struct group;
struct search;

/* The largest gang that nodes of the group could form. */
int64_t crowd_largest(const struct search *search, const struct group *group);

/* The best way to lay the gang of a search over nodes of the group. false: there are not enough. */
bool crowd_fit(const struct search *search, const struct group *group, const struct fragments *fragments,
               struct fit *ret_fit);

#endif
