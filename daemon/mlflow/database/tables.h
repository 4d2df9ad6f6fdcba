/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the tracking database, version by version. */
#ifndef MLFLOW_TABLES_H
#define MLFLOW_TABLES_H

#include <sqlite3.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* The states of a run. */
#define TRACKING_STATUSES(X) X(RUNNING) X(SCHEDULED) X(FINISHED) X(FAILED) X(KILLED)
/* The states of a logged model; clients spell them LOGGED_MODEL_... */
#define MODEL_STATUSES(X) X(PENDING) X(READY) X(UPLOAD_FAILED)
/* The stages of a version of a registered model, in the spelling of clients. */
#define VERSION_STAGES(X) X(None) X(Staging) X(Production) X(Archived)

/* Values of the column runs.deleted. */
enum run_deleted { RUN_ACTIVE, RUN_DELETED, RUN_DELETED_WITH_EXPERIMENT };

/* Refuses a file that is not our tracking database or has a newer schema; changes nothing. */
bool tables_check(sqlite3 *db, struct err *err);

/* Migrates a database that tables_check accepted to the newest version, one transaction per version. */
bool tables_migrate(sqlite3 *db, struct err *err);
/* Makes a database able to give pages back to the disk, unless that would take long or the disk has no room
 * for it. Before it has a second handle. */
bool tables_make_shrinkable(sqlite3 *db, struct err *err);

#endif
