/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of many verbs: an answer of the controller, as the call's -o wants it. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "client/cli/frame/verb.h"

/* The document where -o asks for JSON, else a note for people. false: there is no answer, or stdout fails. */
bool answer_note(const struct call *call, const json_t *answer, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with a line on stdout: the text of that member. */
bool answer_member(const struct call *call, const json_t *answer, const char *member, struct err *err);

#endif
