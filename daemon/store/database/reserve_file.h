/* SPDX-License-Identifier: Apache-2.0 */
/* Space that is taken while the disk has room, so that it can be given back when there is none. */
#ifndef STORE_RESERVE_FILE_H
#define STORE_RESERVE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct reserve_file;

/* The reserve file of the database at path: the file path.reserve of RESERVE_FILE_BYTES, less on a small file
 * system. One that was left behind is used as it is. Nothing is allocated yet. */
struct reserve_file *reserve_file_open(const char *path);
/* Removes the file: a program that has ended needs none. */
void reserve_file_close(struct reserve_file *reserve_file);

/* Allocates the file, if that leaves margin_bytes free on the disk; false: not, with no harm done. May wait
 * for the disk. Any thread. */
bool reserve_file_make(struct reserve_file *reserve_file, int64_t margin_bytes);

/* Gives the space back; false: it was given back before. Any thread. */
bool reserve_file_release(struct reserve_file *reserve_file);

/* Whether it is there, and whether it was and has been given back. Any thread. */
bool reserve_file_is_whole(const struct reserve_file *reserve_file);
bool reserve_file_is_released(const struct reserve_file *reserve_file);

/* How large it is when it is whole. */
int64_t reserve_file_bytes(const struct reserve_file *reserve_file);

#endif
