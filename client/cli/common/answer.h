/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of many verbs: an answer of the controller, in the form that -o names. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"

/* Appends the document where -o asks for JSON, else what print makes of it. false: there is no answer. */
bool answer_document(const struct call *call, const json_t *answer,
                     void (*print)(const struct call *call, const json_t *answer, struct text *out),
                     struct text *out);
/* The same on stdout. */
bool answer_show(const struct call *call, const json_t *answer,
                 void (*print)(const struct call *call, const json_t *answer, struct text *out),
                 struct err *err);
/* The document where -o asks for JSON, else a note for people. false: there is no answer, or stdout fails. */
bool answer_note(const struct call *call, const json_t *answer, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with a line on stdout: the text of that member. */
bool answer_member(const struct call *call, const json_t *answer, const char *member, struct err *err);
/* The member "secret", which is shown once: into the file, for its owner alone; without a file (NULL) like
 * answer_member, with a note for people. */
bool answer_secret(const struct call *call, const json_t *answer, const char *file, const char *note,
                   struct err *err);

/* --- lists --- */

struct listing {
    const char *path, *name; /* in the API, and of the list in its answer */
    /* The items that are shown, under another name; NULL: all. New reference. */
    json_t *(*choose)(const json_t *items);
    const char *shown;
    const struct column *columns;
    size_t count;
    /* The objects that have rows; NULL: the items themselves. New reference. */
    json_t *(*rows)(const json_t *items);
    const char *key; /* the member that -q shows */
    bool uncut;      /* its lines are never cut to the terminal */
};

#define LIST_COLUMNS(columns_) .columns = (columns_), .count = sizeof(columns_) / sizeof(columns_)[0]

#define LISTS(listing_) .reach = REACH_CONTROLLER, .need = NEED_API, .listing = &(listing_), .run = list_run

#define LIMIT_LISTED 100000

/* The function of a verb with a listing: all of it, once or as -w says. */
bool list_run(const struct call *call, int *ret_exit, struct err *err);

/* Appends items that were asked for otherwise, as -q and -o want them. */
void list_print(const struct call *call, const struct listing *listing, const json_t *items,
                struct text *out);

/* The item of a list of the API that the first argument names by its id, the beginning of it, or its name: a
 * new reference. NULL with ERR_NOT_FOUND, or ERR_USAGE when it fits several. what: "webhook". */
json_t *answer_find(const struct call *call, const char *path, const char *list, const char *what,
                    const char *hint, struct err *err);

/* --- several jobs --- */

/* Asks a person whether so many jobs may be dealt with: "End 3 jobs? [y/N]". Anything but a "y" at the
 * beginning is a no. yes: they have said so already. */
bool answer_agrees(bool yes, const char *deed, size_t count);
/* With neither --yes nor a terminal nobody could be asked: ERR_USAGE. */
bool answer_may_ask(bool yes, const char *deed, struct err *err);

/* Takes the arguments of the call for jobs. Posts to each of them the name of the verb, the last part of the
 * path; with the method DELETE, deletes it. With wait it waits until each has ended. Shows a note with `said`
 * between the id and the state of each, or the jobs as JSON. Goes on after a failure, so that one wrong id
 * keeps no other job from it; the first error is the verb's. */
bool for_each_job(const struct call *call, const char *method, const char *said, bool wait, struct err *err);

#endif
