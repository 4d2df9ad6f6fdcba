/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of transitions: which event takes a thing from one state to another. No row means that the event
 * came too late or twice. */
#ifndef CORE_MODEL_RULE_H
#define CORE_MODEL_RULE_H

#include <stddef.h>

/* Defines rule_of, which finds the row of rules, an array of struct NOUN_rule; NULL: there is none. */
#define DEFINE_RULE_OF(noun)                                                                                 \
    static const struct noun##_rule *rule_of(enum noun##_state from, enum noun##_event event)                \
    {                                                                                                        \
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {                                        \
            if (rules[i].from == from && rules[i].event == event) {                                          \
                return &rules[i];                                                                            \
            }                                                                                                \
        }                                                                                                    \
        return NULL;                                                                                         \
    }

#endif
