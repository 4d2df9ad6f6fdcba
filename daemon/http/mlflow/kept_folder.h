/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run's artifacts that shows what the ranks of its attempt kept: KEPT_FOLDER/RANK/PATH. It is
 * there for runs that the controller made, and nobody writes there. */
#ifndef HTTP_KEPT_FOLDER_H
#define HTTP_KEPT_FOLDER_H

#include <stdbool.h>

#include "daemon/http/kept/kept.h"
#include "daemon/mlflow/tracking.h"
#include "proto/base/err.h"

struct server;
struct worker;

#define KEPT_FOLDER "gpuctl.outputs"

/* What a path of artifacts has to do with it. All zero: nothing. */
struct kept_folder {
    struct server *server;
    struct kept_attempt attempt; /* attempt 0: the path is above it, or elsewhere */
    const char *inner; /* the path below the folder, borrowed: "", "RANK" or "RANK/PATH"; NULL: the path is
                          that of the run's folder, which shows it */
    bool shown;        /* the sender may see the files of the job */
    bool away;         /* they are in the object store */
};

/* Whether the path may lead there. Asks nobody. */
bool kept_folder_is_in(const char *path);

/* Finds out; place is that of the path. The path is borrowed. On the HTTP thread. */
bool kept_folder_find(struct server *server, const struct tracking_rights *rights,
                      const struct tracking_place *place, const char *path, struct kept_folder *ret_folder,
                      struct err *err);

/* The thread for the two functions below: they read files, and may wait for the object store. */
struct worker *kept_folder_worker(const struct kept_folder *folder);
/* Appends what the path has of it to an array, as artifacts_list does. */
bool kept_folder_list(const struct kept_folder *folder, const char *prefix, struct text *out,
                      struct err *err);
/* Opens the file that inner names. ERR_NOT_FOUND; ERR_UNAVAILABLE while it has not come as a whole, after
 * which MLflow's client tries again. */
bool kept_folder_open(const struct kept_folder *folder, struct kept_content *ret_content, struct err *err);

#endif
