/* SPDX-License-Identifier: Apache-2.0 */
/* Space that is taken while the disk has room, so that it can be given back when there is none. */
#ifndef STORE_BALLAST_H
#define STORE_BALLAST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct ballast;

/* The ballast of the database at path: the file path.ballast of BALLAST_BYTES, less on a small file system.
 * One that was left behind is used as it is. Nothing is allocated yet. */
struct ballast *ballast_open(const char *path);
/* Removes the file: a program that has ended needs none. */
void ballast_close(struct ballast *ballast);

/* Allocates the file, if that leaves margin_bytes free on the disk; false: not, with no harm done. May wait
 * for the disk. Any thread. */
bool ballast_make(struct ballast *ballast, int64_t margin_bytes);

/* Gives the space back; false: it was given back before. Any thread. */
bool ballast_release(struct ballast *ballast);

/* Whether it is there, and whether it was and has been given back. Any thread. */
bool ballast_is_whole(const struct ballast *ballast);
bool ballast_is_released(const struct ballast *ballast);

/* How large it is when it is whole. */
int64_t ballast_bytes(const struct ballast *ballast);

#endif
