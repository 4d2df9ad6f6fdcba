/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: its keys without echo, its size, its signals, and a picture in its alternate screen. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "client/cli/top/top_keys.h"
#include "proto/base/err.h"
#include "proto/base/text/text.h"

/* Are stdin and stdout terminals that know escapes? */
bool top_screen_possible(void);

struct top_screen;
/* Takes the terminal over. Until top_screen_destroy signals end nothing: top_screen_read returns them. */
struct top_screen *top_screen_create(struct err *err);
/* Gives the terminal back as it was. */
void top_screen_destroy(struct top_screen *screen);

/* The files to wait for; when one can be read, top_screen_read has something. */
void top_screen_files(const struct top_screen *screen, int ret_files[2]);

/* Adds bytes of keys that have come; true: there were some. Stops and goes on with the shell's job control.
 * *ret_end becomes the signal that ends the program, SIGHUP where the terminal is gone; else it stays. */
bool top_screen_read(struct top_screen *screen, struct top_keys *keys, int *ret_end);

/* As it is now; 80 and 24 where the terminal does not say. */
void top_screen_size(const struct top_screen *screen, size_t *ret_width, size_t *ret_height);

/* Shows the lines from the top on, the first `height`, with one write. Lines that did not change are not
 * written. */
bool top_screen_show(struct top_screen *screen, const struct text_list *lines, struct err *err);

#endif
