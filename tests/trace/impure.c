/* SPDX-License-Identifier: Apache-2.0 */
/* What the purity test must refuse: a core that reads the clock. */
#include <time.h>

time_t impure_now(void);

time_t impure_now(void)
{
    return time(NULL);
}
