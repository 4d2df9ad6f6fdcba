/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a command, by which people tell jobs without a name apart. */
#ifndef PROTO_PROGRAM_H
#define PROTO_PROGRAM_H

#include <jansson.h>

#define PROGRAM_BYTES 64 /* a longer one is cut between characters */

/* "train.py" of ["python", "-u", "/src/train.py"]. command is an array of strings, or NULL; *ret_program is
 * "" where it has no word. */
void program_of(const json_t *command, char ret_program[PROGRAM_BYTES]);

#endif
