/* SPDX-License-Identifier: Apache-2.0 */
/* How the database's bytes get to the disk and back: with a sum in each page, and with a reserve file to give
 * up when the disk is full. A layer between SQLite and its own files (a VFS). */
#ifndef STORE_PAGES_H
#define STORE_PAGES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/database/reserve_file.h"

#define PAGE_BYTES 4096
/* at the end of each page: the bytes that a database with sums reserves */
#define PAGE_SUM_BYTES 8
/* the remedy for a damaged database */
#define PAGES_REMEDY "restore a backup: gpuctl admin restore"

/* the bytes of the first page that pages_header_is_summed reads */
#define PAGES_HEADER_BYTES 21

struct pages;

/* A layer for one connection; reserve file is borrowed, NULL: none. Destroyed after the connection was
 * closed. */
struct pages *pages_create(struct reserve_file *reserve_file);
void pages_destroy(struct pages *pages);

/* The name for sqlite3_open_v2. */
const char *pages_name(const struct pages *pages);

/* From now on the frames of a commit are gathered until its sync. For a connection with PRAGMA synchronous =
 * FULL: where a commit is not synced, others could look for frames that are not in the file. */
void pages_gather(struct pages *pages);

/* While it is strict, a page that lies beyond the end of the file counts as damaged. SQLite may ask for such
 * a page, of those that are free, but quick_check does not. */
void pages_set_strict(struct pages *pages, bool strict);

/* Whether a read has failed; the content of the disk may be sound. */
bool pages_have_failed(const struct pages *pages);

/* Whether pages have sums of a file that is still empty: SQLite may write others before the first one, which
 * says so. Before it is opened. */
void pages_set_summed(struct pages *pages, bool summed);

/* Whether the pages of an open database have sums. */
bool pages_are_summed(sqlite3 *db);

/* Whether a database that begins with these PAGES_HEADER_BYTES has sums. */
bool pages_header_is_summed(const uint8_t *header);

/* The sum of a page, PAGE_BYTES less PAGE_SUM_BYTES; number counts from 1. */
uint64_t page_sum(const void *page, uint32_t number);

#endif
