/* SPDX-License-Identifier: Apache-2.0 */
/* An axis of a chart: round numbers around the values. */
#ifndef CLI_SCALE_H
#define CLI_SCALE_H

struct scale {
    double low, high; /* both are marks */
    double step;      /* between two marks: 1, 2 or 5 times a power of ten */
    int marks;
};

/* The scale from low to high, both finite and low <= high, that has about so many steps. A single value gets
 * room above and below. */
struct scale scale_make(double low, double high, int steps);
double scale_mark(const struct scale *scale, int index);
/* 0 for low to 1 for high; clamped. */
double scale_place(const struct scale *scale, double value);
/* The text of a mark, as precise as the marks need it. */
void scale_label(const struct scale *scale, double mark, char out[32]);

#endif
