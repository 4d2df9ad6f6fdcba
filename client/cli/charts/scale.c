/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses round numbers for an axis. It promises marks that are few, distinct and readable for all finite
 * values, the largest, the smallest and the closest ones included. */
#include "client/cli/charts/scale.h"

#include <math.h>
#include <stdio.h>

/* beyond it, distances overflow; larger values are drawn at the edge */
#define LARGEST 1e300
/* below it, powers of ten lose their digits */
#define SMALLEST 1e-290
/* closer than this, relative to the values, and marks are no longer distinct */
#define CLOSEST 1e-13
/* from here on numbers are written with an exponent */
#define LONG_FROM     1e7
#define MOST_DECIMALS 5

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The smallest of 1, 2, 5, 10 times a power of ten that is not below. */
static double round_up(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double digits = rough / power * (1 - 1e-9);
    return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

struct scale scale_make(double low, double high, int steps)
{
    low = clamp(low, -LARGEST, LARGEST);
    high = clamp(high, -LARGEST, LARGEST);
    double size = fmax(fabs(low), fabs(high));
    if (high - low <= fmax(size * CLOSEST, SMALLEST)) {
        double room = size > SMALLEST ? size / 10 : 1;
        low -= room;
        high += room;
    }
    struct scale scale = {.step = round_up((high - low) / steps)};
    scale.low = floor(low / scale.step + 1e-9) * scale.step;
    scale.high = ceil(high / scale.step - 1e-9) * scale.step;
    scale.marks = (int)lround((scale.high - scale.low) / scale.step) + 1;
    return scale;
}

double scale_mark(const struct scale *scale, int index)
{
    double mark = scale->low + index * scale->step;
    return fabs(mark) < scale->step / 2 ? 0 : mark;
}

double scale_place(const struct scale *scale, double value)
{
    return clamp((clamp(value, -LARGEST, LARGEST) - scale->low) / (scale->high - scale->low), 0, 1);
}

void scale_label(const struct scale *scale, double mark, char out[32])
{
    double size = fmax(fabs(scale->low), fabs(scale->high));
    int power = (int)floor(log10(scale->step) + 1e-9);
    int decimals = power < 0 ? -power : 0;
    if (size < LONG_FROM && decimals <= MOST_DECIMALS) {
        snprintf(out, 32, "%.*f", decimals, mark);
        return;
    }
    int digits = (int)floor(log10(size) + 1e-9) - power + 1;
    snprintf(out, 32, "%.*g", digits < 17 ? digits : 17, mark);
}
