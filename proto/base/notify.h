/* SPDX-License-Identifier: Apache-2.0 */
/* Tells systemd, or whoever else started this program with a NOTIFY_SOCKET, that it is ready to work. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* Does nothing where nobody waits for it. NOTIFY_SOCKET is gone afterwards, so that no child speaks for us.
 */
void notify_ready(void);

#endif
