/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what with experiments, runs and models: each has an owner and a project. The rights of the
 * sender come with the request; nothing is decided here. What somebody may not see is reported as what does
 * not exist. */
#ifndef MLFLOW_RIGHTS_H
#define MLFLOW_RIGHTS_H

#include "daemon/mlflow/call/call.h"

/* Whose something is. Both borrowed. */
struct holder {
    const char *owner; /* "": everybody's, as the experiment Default */
    const char *project;
};

/* Whether the sender has the right. A call without rights is the controller's own, and may all. */
bool rights_have(const struct call *call, enum tracking_right right, struct holder holder);
/* Fails the call with PERMISSION_DENIED where the sender has it not; what: "run", for the message. */
void rights_need(struct call *call, enum tracking_right right, struct holder holder, const char *what);

/* Whose the sender's new things are. */
struct holder rights_sender(const struct call *call);

/* The tag that names the project of an experiment or a registered model, and moves it when it is set. */
#define TAG_PROJECT "gpuctl.project"
/* The project of a new thing: the one that its tags name, an array of {key, value}, else the sender's. Fails
 * the call unless the sender may put things there. */
const char *rights_project(struct call *call, const json_t *tags);
/* Fails the call unless the sender may put things into the project. */
void rights_need_project(struct call *call, const char *project);

#endif
