/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs in a container, as the Container Device Interface describes them. */
#ifndef AGENT_CDI_H
#define AGENT_CDI_H

#include "agent/image/bundle.h"

/* Edits the config for the GPUs of the job, and appends variables: by a spec that names all of them, else
 * with the driver's device files and libraries as the node has them. False with an error if a spec cannot be
 * read. */
bool cdi_apply(const struct bundle_facts *facts, json_t *config, json_t *variables, struct err *err);

#endif
