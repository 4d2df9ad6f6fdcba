/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers that a user has named, and the one of them that the user's programs speak to. */
#ifndef CLI_SAVED_CONTEXT_H
#define CLI_SAVED_CONTEXT_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/files/files.h"

/* The context of a login without a name. Its token lies in the folder of the user's configuration itself. */
#define SAVED_CONTEXT_DEFAULT "default"

/* Texts are owned. */
struct saved_context {
    char *name;
    char *url, *token_file;
    char *cacert; /* NULL: the system's */
    bool plain_allowed;
};

void saved_context_finish(struct saved_context *context);
#define autosaved_context __attribute__((cleanup(saved_context_finish)))

/* ERR_USAGE where it cannot be the name of one. */
bool saved_context_check(const char *name, struct err *err);
/* The folder of its token, its certificate and its login; the caller frees it. */
char *saved_context_folder(const char *name);

/* The names of those that are saved, in the order of the alphabet. */
void saved_context_list(struct file_names *ret_names);
/* false: there is none of that name. */
bool saved_context_read(const char *name, struct saved_context *ret_context);
/* ERR_NOT_FOUND, with the names that there are. */
bool saved_context_find(const char *name, struct saved_context *ret_context, struct err *err);
bool saved_context_write(const struct saved_context *context, struct err *err);
/* With its token. */
bool saved_context_remove(const char *name, struct err *err);

/* The controller that the file "config" names; its name is that of the saved context which is the same, or
 * NULL. false: it names none. */
bool saved_context_used(struct saved_context *ret_context);
/* Writes the controller into the file "config", with its other lines as they are; NULL: it names none. */
bool saved_context_use(const struct saved_context *context, struct err *err);
/* Saves the controller of the file "config" as the default context, if no context is the same. */
bool saved_context_keep_used(struct err *err);

#endif
