/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans text of others for a terminal. It promises that colours, tabs, carriage returns, backspaces and the
 * erasing of the rest of a line pass, because progress bars are made of them. Every other sequence and
 * control character is shown and not obeyed, however the bytes were cut. */
#include "client/cli/show/terminal.h"

#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define ESCAPE '\033'

bool terminal_is(FILE *file)
{
    return isatty(fileno(file)) == 1;
}

/* ^[ stands for the escape, as a terminal itself echoes it. */
static void show_held(struct terminal *terminal, struct text *out)
{
    if (terminal->held_length > 0) {
        text_append(out, "^[");
        text_append_bytes(out, terminal->held + 1, terminal->held_length - 1);
        terminal->held_length = 0;
    }
}

static void hold(struct terminal *terminal, char byte)
{
    terminal->held[terminal->held_length++] = byte;
}

/* Takes the byte into the sequence that has begun; false: it does not belong to it. */
static bool go_on(struct terminal *terminal, char byte, struct text *out)
{
    if (terminal->held_length == 1) {
        if (byte == '[') {
            hold(terminal, byte);
            return true;
        }
        show_held(terminal, out);
        return false;
    }
    bool parameter = (byte >= '0' && byte <= '9') || byte == ';' || byte == ':';
    if (parameter && terminal->held_length < TERMINAL_SEQUENCE_BYTES) {
        hold(terminal, byte);
        return true;
    }
    if (byte != 'm' && byte != 'K') {
        show_held(terminal, out);
        return false;
    }
    hold(terminal, byte);
    text_append_bytes(out, terminal->held, terminal->held_length);
    terminal->held_length = 0;
    return true;
}

/* c2 begins the characters of two bytes among which the controls of C1 are: it waits for the second. */
static void settle_lead(struct terminal *terminal, unsigned char next, struct text *out)
{
    if (terminal->lead) {
        bool shown = next >= 0xa0 && next < 0xc0;
        text_append(out, shown ? "\xc2" : "?");
    }
}

/* The controls of C1 are what escapes stand for: in UTF-8 c2 80 to c2 9f, and by themselves elsewhere. */
static void take_high(struct terminal *terminal, unsigned char byte, struct text *out)
{
    bool continues = byte < 0xc0 && terminal->continues > 0;
    bool control = byte < 0xa0 && (!continues || terminal->lead);
    bool told = control && terminal->lead; /* the lead's question mark stands for both */
    settle_lead(terminal, byte, out);
    terminal->lead = byte == 0xc2;
    if (byte >= 0xc0) {
        terminal->continues = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
    } else if (continues) {
        terminal->continues--;
    }
    if (!terminal->lead && !told) {
        text_append_bytes(out, control ? "?" : (const char *)&byte, 1);
    }
}

static void take(struct terminal *terminal, char byte, struct text *out)
{
    unsigned char value = (unsigned char)byte;
    if (value >= 0x80) {
        take_high(terminal, value, out);
        return;
    }
    settle_lead(terminal, value, out);
    terminal->lead = false;
    terminal->continues = 0;
    if (byte == ESCAPE) {
        hold(terminal, byte);
    } else if ((value < 0x20 && strchr("\t\n\r\b", byte) == NULL) || value == 0x7f) {
        const char shown[] = {'^', (char)(value ^ 0x40)};
        text_append_bytes(out, shown, sizeof shown);
    } else {
        text_append_bytes(out, &byte, 1);
    }
}

void terminal_clean(struct terminal *terminal, const char *bytes, size_t length, struct text *out)
{
    for (size_t i = 0; i < length; i++) {
        if (terminal->held_length == 0 || !go_on(terminal, bytes[i], out)) {
            take(terminal, bytes[i], out);
        }
    }
}

void terminal_finish(struct terminal *terminal, struct text *out)
{
    show_held(terminal, out);
    settle_lead(terminal, 0, out);
    *terminal = (struct terminal){0};
}

bool terminal_write(struct terminal *terminal, FILE *file, const char *bytes, size_t length)
{
    if (length == 0) {
        return true; /* bytes may be NULL then */
    }
    if (!terminal_is(file)) {
        return fwrite(bytes, 1, length, file) == length;
    }
    autotext struct text clean = {0};
    terminal_clean(terminal, bytes, length, &clean);
    return clean.length == 0 || fwrite(clean.bytes, 1, clean.length, file) == clean.length;
}
