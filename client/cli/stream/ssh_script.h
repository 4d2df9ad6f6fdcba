/* SPDX-License-Identifier: Apache-2.0 */
/* The program that serves ssh beside a rank; its source is the file ssh.sh. */
#ifndef CLI_SSH_SCRIPT_H
#define CLI_SSH_SCRIPT_H

#include <stddef.h>

extern const unsigned char ssh_script[];
extern const size_t ssh_script_length;

#endif
