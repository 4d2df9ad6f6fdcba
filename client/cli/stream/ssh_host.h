/* SPDX-License-Identifier: Apache-2.0 */
/* A rank as a host of OpenSSH's programs: the key of this client, the settings of ssh, and the program that
 * serves the connection beside the rank. */
#ifndef CLI_SSH_HOST_H
#define CLI_SSH_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/cli/frame/verb.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

#define SSH_DOMAIN ".gpuctl" /* behind the job in the names of hosts */

struct ssh_host {
    char id[RESOLVED_BYTES];
    int64_t rank;
    char *user; /* the account of its ranks on their node; owned */
};

void ssh_host_finish(struct ssh_host *host);
#define autossh_host __attribute__((cleanup(ssh_host_finish)))

/* Fills id and rank: of "x7k2", "x7k2.3", or the same with SSH_DOMAIN behind it. */
bool ssh_host_resolve(struct api *api, const char *word, int64_t rank, struct ssh_host *ret_host,
                      struct err *err);
/* Fills user. The node has been asked whether ssh can work there; *ret_refused: it cannot, and stderr says
 * why. */
bool ssh_host_look(struct api *api, struct ssh_host *host, bool *ret_refused, struct err *err);
/* Its name for people and for ssh: "x7k2....gpuctl", the rank behind the job unless it is 0. The caller's. */
char *ssh_host_name(const struct ssh_host *host);

/* The command that serves one connection beside the rank, of the client whose key it is. New reference. */
json_t *ssh_host_serve(const char *public_key);

/* Settings of ssh, as pairs of name and value, of which the values are owned; a name NULL ends them. */
struct ssh_setting {
    const char *name;
    char *value;
};
#define SSH_SETTINGS 9
bool ssh_host_settings(const struct call *call, const struct ssh_host *host,
                       struct ssh_setting ret_settings[SSH_SETTINGS], struct err *err);
void ssh_settings_finish(struct ssh_setting settings[SSH_SETTINGS]);

/* The folder of the client's key and of host blocks, which is made, with the key, where it does not exist.
 * The caller's; NULL on failure. */
char *ssh_folder(struct err *err);
/* The public key of this client, on one line. The caller's; NULL on failure. */
char *ssh_public_key(struct err *err);

/* Appends this gpuctl and the options of the call that name the controller, as words of a shell with their
 * percent signs doubled, as ssh reads them. */
bool ssh_append_program(const struct call *call, struct text *out, struct err *err);

#endif
