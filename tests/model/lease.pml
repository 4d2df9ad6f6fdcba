/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of lease, gang, cancel, restart and restore, as daemon/core (register.c, report.c, tick.c,
 * attempt.c, member.c), agent/reconciler*.c, attempt.c, stage.c and shim_*.c play it, for one job with
 * on_disconnect=requeue on two nodes. It owns what both sides share: the state, the messages, the clocks. It
 * follows the code by hand, and so promises something of the protocol, not of the code.
 *
 * Checked by an assert at each step that could break it:
 *   - no rank starts while one of another attempt runs, and no attempt is granted while ranks of an earlier
 *     one run (I5, I6);
 *   - no rank of a gang starts before every node of it was prepared (I8);
 *   - after an acknowledged cancel START is not decided; after the end of the job no rank starts (I14);
 *   - the end of a job is final (I10); no epoch is issued twice (I26) or claimed twice on a node;
 *   - a report of an attempt that is not the current one is not taken (I7).
 *
 * The world. An attempt takes one node (order RUN) or both (PREPARE, then START). Any request can be lost before
 * or after it took effect, or be late; at any moment one beat, one poll and one register at most are. An agent
 * gives up a beat after a while, and a poll when a beat is answered after a silence. One register or report is
 * kept by the network and comes again as often as it likes, at any later time. Beats come again, too: all that
 * they do to the controller is that it has heard the node. The controller is killed and started again at any
 * step, any number of times, and may lose what rides the next commit (PREPARED, RUNNING). Agents are killed,
 * also between the assignment of a shim and its lease, and nodes rebooted, a number of times in all. With
 * -DRESTORE the database is copied once and put back once. A tick is one of the controller's clock; the clock of
 * a node is right, or slow or fast by a tenth, which moves its deadlines. LEASE is in ticks: 20 has 0.75, 0.95
 * and 1.05 of it to the tick, 3 has them in the right order.
 *
 * Left out: devices, ports, logs, results, staging, retries of the user, how long a kill takes (a rank ends at
 * any time, but before its lease is over), brake and fence, the other policies of on_disconnect; a host or shim
 * that is stopped and goes on, and with it the agent's own kill at 0.9 L, which is for such shims. A restore
 * takes back what was decided after the copy: an attempt that the copy does not know as started may run until
 * its agent polls, so it does not count for I5 and I6.
 *
 * The controller is in controller.pml, a node with its agent and shims in node.pml. tests/model/run has the
 * volumes, and what they come to. */

#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef LEASE
#define LEASE 3
#endif

/* What may happen, from the environment of pan under these names, in capitals. */
byte shapes;  /* of attempts, bit by bit: on node 0, on node 1, on both */
byte late;    /* 1: beats may be late; 2: polls; 3: both */
byte keeps;   /* the network keeps a message */
byte rates;   /* of clocks: 1: all are slow; 2: right or slow; 3: right, slow or fast */
byte crashed; /* how often agents may be, in all */
byte booted;  /* how often nodes may be, in all */

/* The rule that is broken, from there, too; each must be found. */
#define LEASE_FROM_REPLY  1 /* a lease counts from the answer to a beat */
#define NO_EPOCH_CHECK    2 /* a report counts for whatever attempt is current */
#define EARLY_START       3 /* START before all nodes are prepared */
#define NO_RENEWAL        4 /* a controller that starts has heard nobody */
#define NO_SLACK          5 /* given to others after 1.0 L */
#define EPOCH_REUSED      6 /* a restored database counts on from its own epoch */
#define NO_ADOPTION       7 /* an agent that starts looks at nothing that it finds */
#define CANCEL_LOSES      8 /* the last PREPARED starts a gang that is being stopped */
#define NOT_FENCED        9 /* the answer to a beat does not name what the node is not to have */
#define ADOPTED_UNLEASED 10 /* a shim that was found is told what to do, and no lease */
#define STALE_REGISTER   11 /* a register is believed whenever it comes */
#define LATE_ORDER       12 /* an order has a new lease, however long its poll was under way */
#define UNLISTED         13 /* a beat renews what it has not listed, too */
byte wrong;

/* Deadlines in ticks of the controller, by the rate of a node's clock: 0 right, 1 slow, 2 fast. From TERM on
 * (0.75 L) nothing starts; when DEAD (0.95 L) is over, no rank is left. When a beat is answered that left more
 * than ANEW after the last one (20 s), a poll that is out is given up; a beat is after PATIENCE (10 s). These
 * are in ticks of the shortest lease, a minute, and rounded up. */
#if LEASE == 20
#define TERM(rate) (rate == 0 -> 15 : (rate == 1 -> 16 : 13))
#define DEAD(rate) (rate == 0 -> 18 : (rate == 1 -> 20 : 17))
#define SILENT     8
#define REASSIGN   21
#define ANEW       7
#define PATIENCE   4
#else
#define TERM(rate) (rate == 2 -> 1 : 2)
#define DEAD(rate) (rate == 1 -> 3 : 2)
#define SILENT     1
#define REASSIGN   4
#define ANEW       1
#define PATIENCE   1
#endif
#define GIVEN_UP (wrong == NO_SLACK -> LEASE : REASSIGN)
#define OLD      REASSIGN /* longer ago than any deadline: ages stop here */
#define NO_LEASE 31

/* --- the controller ---------------------------------------------------------------------------------- */

#define WAITING  0
#define RESERVED 1
#define STARTED  2
#define STOPPING 3

#define NONE     0 /* states of members */
#define ORDERED  1
#define PREPARED 2
#define RUNNING  3
#define GONE     4
#define LOST     5

#define SUCCEEDED 1 /* ends of the job; 0: it lives */
#define FAILED    2
#define CANCELED  3

/* What is on disk. top: the newest epoch; current: that of the live attempt, 0 without one. */
typedef durable {
    unsigned top : 3;
    unsigned current : 3;
    unsigned state : 2;
    unsigned shape : 2; /* the nodes of the attempt, bit by bit */
    bit started;
    bit failed;
    bit canceled;
    unsigned ending : 2;
    byte member[2];
    bit boot[2]; /* with which the node has registered; reboots alternate it, and there is one at most */
};
durable disk;
byte heard[2]; /* ticks since, CLOCK_BOOTTIME of the controller */
byte issued;   /* the newest epoch that was ever issued */

#ifdef RESTORE
durable copy;
byte copied; /* 0 not yet, 1 there is a copy, 2 it was put back */
#endif
byte ghosts; /* attempts that a restore has forgotten, bit by bit */

/* --- the nodes --------------------------------------------------------------------------------------- */

#define UNSEEN   0
#define CLAIMED  1 /* the agent lays it out; no shim has it yet */
#define ASSIGNED 2 /* a shim has it, and was told neither a lease nor what to do */
#define READY    3
#define RUNS     4
#define OVER     5 /* nothing of it lives; the agent has its end to tell */
#define SEEN     6 /* forgotten, but for its folder */

#define AT(node, epoch) ((node) * EPOCHS + (epoch) - 1)
byte attempt[2 * EPOCHS]; /* what a node has of an epoch */
byte leased[2 * EPOCHS];  /* ticks since the beat left that its lease counts from */
bit well[2 * EPOCHS];     /* it is OVER because all its ranks ended with 0 */
bit alone[2 * EPOCHS];    /* its order was RUN */
bit claimed[2 * EPOCHS];  /* before a reboot: for an assert */
bit was_ready[2 * EPOCHS]; /* for an assert */
bit boot[2];
byte rate[2];
byte renewed[2]; /* of the agent: ticks since the last beat left that was answered */
bit enrolled[2]; /* of the agent: it is registered, as far as it knows */
byte crashes, reboots;
bit ignorant[2]; /* NO_ADOPTION: the agent was started anew */

/* --- requests: one of each kind a node --------------------------------------------------------------- */

#define IDLE     0
#define ASKED    1
#define ANSWERED 2
byte beat[2], beat_age[2], beat_list[2], beat_fenced[2]; /* the epochs that it lists, bit by bit; the answer */
bit poll[2]; /* an answer is under way */
byte poll_epoch[2], poll_order[2];
byte enrol[2], enrol_age[2], enrol_list[2]; /* register, and the epochs that it lists, bit by bit */
bit enrol_fits[2]; /* what the agent, or its request, names as the version of its orders is the newest */

#define ORDER_PREPARE 1
#define ORDER_START   2
#define ORDER_RUN     3
#define ORDER_STOP    4

#define TELL_READY    1 /* reports */
#define TELL_RUNS     2
#define TELL_DECLINED 3
#define TELL_WELL     4 /* EXITED, all with 0 */
#define TELL_ILL      5 /* EXITED, otherwise */

#define TAKEN   1 /* answers to reports and registers */
#define FENCED  2
#define UNKNOWN 3
#define CONFIRM 4

/* What the network keeps, and gives again and again. */
#define KEPT_REGISTER 1
#define KEPT_REPORT   2
byte kept, kept_list, kept_what;
bit kept_node, kept_boot, kept_fits;

#define BIT(epoch)     (1 << ((epoch) - 1))
#define UP(state)      ((state) == ORDERED || (state) == PREPARED || (state) == RUNNING)
#define IN_SHAPE(node) ((disk.shape >> (node)) & 1)
#define LIVES(state)   ((state) >= CLAIMED && (state) <= RUNS)

byte f, answer, list, named; /* of the step that is being made */
#define DONE f = 0; answer = 0; list = 0; named = 0

#include "controller.pml"
#include "node.pml"

/* --- time, and the beginning --------------------------------------------------------------------------- */

#define ANY_LIVES(node)                                                                                      \
    (LIVES(attempt[AT(node, 1)]) || LIVES(attempt[AT(node, 2)]) || LIVES(attempt[AT(node, EPOCHS)]))

#define STANDS(node, epoch)                                                                                  \
    (attempt[AT(node, epoch)] == READY && OVERDUE(node, epoch, TERM) ||                                      \
     attempt[AT(node, epoch)] == RUNS && OVERDUE(node, epoch, DEAD))

#define STAND(epoch) (STANDS(0, epoch) || STANDS(1, epoch))

inline older(age)
{
    if
    :: age < OLD -> age++
    :: else
    fi
}

inline pass(node)
{
    older(heard[node]);
    older(renewed[node]);
    if
    ::  beat[node] != IDLE -> older(beat_age[node])
    :: else
    fi;
    if
    :: enrol[node] != IDLE -> older(enrol_age[node])
    :: else
    fi;
    f = 1;
    do
    :: f > EPOCHS -> break
    :: leased[AT(node, f)] != NO_LEASE ->
        older(leased[AT(node, f)]);
        f++
    :: else -> f++
    od
}

/* A timer of a shim that is due goes first. */
proctype clock()
{
    do
    :: d_step { (disk.ending == 0 || ANY_LIVES(0) || ANY_LIVES(1)) && !STAND(1) && !STAND(2) && !STAND(EPOCHS) ->
           pass(0);
           pass(1); DONE }
    od
}

c_decl {
    static int chosen(const char *name, int otherwise)
    {
        return getenv(name) != NULL ? atoi(getenv(name)) : otherwise;
    }
};

inline choose_rate(node)
{
    if
    :: rates > 1 -> rate[node] = 0
    :: rate[node] = 1
    :: rates > 2 -> rate[node] = 2
    fi
}

init
{
    atomic {
        f = 0;
        do
        :: f < 2 * EPOCHS ->
            leased[f] = NO_LEASE;
            f++
        :: else -> break
        od;
        enrolled[0] = 1;
        enrolled[1] = 1;
        c_code {
            now.shapes = chosen("SHAPES", 7);
            now.late = chosen("LATE", 0);
            now.keeps = chosen("KEEPS", 0);
            now.rates = chosen("RATES", 1);
            now.crashed = chosen("CRASHES", 0);
            now.booted = chosen("REBOOTS", 0);
            now.wrong = chosen("WRONG", 0);
        };
        choose_rate(0);
        choose_rate(1);
        run machine(0);
        run machine(1);
        run controller();
        run clock()
    }
}
