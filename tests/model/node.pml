/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the lease model, with its agent and shims: what they do with an answer, and by themselves; and the
 * way of its requests to the controller. After agent/reconciler/reconciler.c, reconciler_attempt.c, stage.c and shim_attempt.c. */

/* --- what a node does -------------------------------------------------------------------------------- */

inline end_attempt(at, good)
{
    attempt[at] = OVER;
    well[at] = good;
    leased[at] = NO_LEASE;
    alone[at] = 0
}

inline forget(at)
{
    attempt[at] = SEEN;
    well[at] = 0;
    leased[at] = NO_LEASE;
    alone[at] = 0
}

inline claim(node, epoch, single)
{
    assert(attempt[AT(node, epoch)] == UNSEEN && !claimed[AT(node, epoch)]);
    attempt[AT(node, epoch)] = CLAIMED;
    alone[AT(node, epoch)] = single;
    leased[AT(node, epoch)] = renewed[node]
}

/* The shim looks at its lease once more, and starts the ranks. */
inline start_ranks(node, epoch)
{
    if
    :: leased[AT(node, epoch)] != NO_LEASE && leased[AT(node, epoch)] >= TERM(rate[node]) ->
        end_attempt(AT(node, epoch), 0)
    :: else ->
        attempt[AT(node, epoch)] = RUNS;
        if
        :: ghosts & BIT(epoch)
        :: else ->
            f = 1;
            do
            :: f > EPOCHS -> break
            :: else ->
                assert(f == epoch || (ghosts & BIT(f)) ||
                       (attempt[AT(0, f)] != RUNS && attempt[AT(1, f)] != RUNS));
                f++
            od;
            assert(disk.ending == 0);
            assert(alone[AT(node, epoch)] || (was_ready[AT(0, epoch)] && was_ready[AT(1, epoch)]))
        fi
    fi
}

inline make_ready(node, epoch)
{
    attempt[AT(node, epoch)] = READY;
    was_ready[AT(node, epoch)] = 1
}

/* A shim that was found had perhaps not heard of its lease. */
inline lease_adopted(node, epoch)
{
    if
    :: wrong != ADOPTED_UNLEASED -> leased[AT(node, epoch)] = renewed[node]
    :: else
    fi
}

inline drop(node, epoch)
{
    if
    :: attempt[AT(node, epoch)] == CLAIMED || attempt[AT(node, epoch)] == ASSIGNED ||
       attempt[AT(node, epoch)] == READY || attempt[AT(node, epoch)] == OVER -> forget(AT(node, epoch))
    :: else /* what runs is told to stop, and ends by and by */
    fi
}

inline work_order(node, epoch, order)
{
    if
    :: ignorant[node] && LIVES(attempt[AT(node, epoch)]) && (order == ORDER_PREPARE || order == ORDER_RUN) ->
        claim(node, epoch, order == ORDER_RUN)
    :: attempt[AT(node, epoch)] == UNSEEN && order == ORDER_PREPARE -> claim(node, epoch, 0)
    :: attempt[AT(node, epoch)] == UNSEEN && order == ORDER_RUN -> claim(node, epoch, 1)
    :: attempt[AT(node, epoch)] == UNSEEN && (order == ORDER_START || order == ORDER_STOP) ->
        end_attempt(AT(node, epoch), 0) /* buried */
    :: attempt[AT(node, epoch)] == SEEN -> end_attempt(AT(node, epoch), 0)
    :: attempt[AT(node, epoch)] == ASSIGNED && order == ORDER_PREPARE ->
        lease_adopted(node, epoch);
        make_ready(node, epoch)
    :: attempt[AT(node, epoch)] == ASSIGNED && order == ORDER_RUN ->
        lease_adopted(node, epoch);
        start_ranks(node, epoch)
    :: attempt[AT(node, epoch)] == READY && order == ORDER_START -> start_ranks(node, epoch)
    :: (attempt[AT(node, epoch)] == CLAIMED || attempt[AT(node, epoch)] == ASSIGNED ||
        attempt[AT(node, epoch)] == READY) && order == ORDER_STOP -> end_attempt(AT(node, epoch), 0)
    :: else
    fi
}

/* Shim in hand: it is told its lease, then what to do. Without a lease there is none; a beat may bring it. */
inline hand_over(node, epoch)
{
    if
    :: alone[AT(node, epoch)] -> start_ranks(node, epoch)
    :: else -> make_ready(node, epoch)
    fi
}

/* What is fenced is dropped, and of the rest what was listed renewed. */
inline work_beat(node, list, named)
{
    f = 1;
    do
    :: f > EPOCHS -> break
    :: f <= EPOCHS && (named & BIT(f)) ->
        drop(node, f);
        f++
    :: f <= EPOCHS && !(named & BIT(f)) && ((list & BIT(f)) || wrong == UNLISTED) &&
       LIVES(attempt[AT(node, f)]) ->
        leased[AT(node, f)] = renewed[node];
        f++
    :: else -> f++
    od
}

inline each_drop(node, except)
{
    f = 1;
    do
    :: f > EPOCHS -> break
    :: f == except -> f++
    :: else ->
        drop(node, f);
        f++
    od
}

inline end_poll(node)
{
    poll[node] = 0;
    poll_epoch[node] = 0;
    poll_order[node] = 0
}

inline end_beat(node)
{
    beat[node] = IDLE;
    beat_age[node] = 0;
    beat_list[node] = 0;
    beat_fenced[node] = 0
}

inline end_requests(node)
{
    end_beat(node);
    end_poll(node);
    enrol[node] = IDLE;
    enrol_age[node] = 0;
    enrol_list[node] = 0;
    enrol_fits[node] = 0
}

inline be_stranger(node)
{
    enrolled[node] = 0;
    end_poll(node)
}

/* The next agent finds shims; what had none yet has none. */
inline restart_agent(node)
{
    end_requests(node);
    enrolled[node] = 0;
    renewed[node] = OLD;
    f = 1;
    do
    :: f > EPOCHS -> break
    :: attempt[AT(node, f)] == CLAIMED ->
        end_attempt(AT(node, f), 0);
        f++
    :: else -> f++
    od;
    ignorant[node] = (wrong == NO_ADOPTION)
}

/* keep: the folder of its attempts outlives the boot. */
inline reboot(node, keep)
{
    reboots++;
    boot[node] = 1 - boot[node];
    end_requests(node);
    enrolled[node] = 0;
    renewed[node] = OLD;
    f = 1;
    do
    :: f > EPOCHS -> break
    :: else ->
        claimed[AT(node, f)] = claimed[AT(node, f)] || attempt[AT(node, f)] != UNSEEN;
        if
        :: keep && attempt[AT(node, f)] == OVER -> skip
        :: keep && LIVES(attempt[AT(node, f)]) -> end_attempt(AT(node, f), 0)
        :: else ->
            forget(AT(node, f));
            attempt[AT(node, f)] = UNSEEN
        fi;
        f++
    od
}

inline list_attempts(node, into)
{
    into = 0;
    f = 1;
    do
    :: f > EPOCHS -> break
    :: f <= EPOCHS && attempt[AT(node, f)] >= CLAIMED && attempt[AT(node, f)] <= OVER && !ignorant[node] ->
        into = into | BIT(f);
        f++
    :: else -> f++
    od
}

inline answer_poll(node)
{
    if
    :: UP(disk.member[node]) ->
        poll_epoch[node] = disk.current;
        poll_order[node] = (disk.state == RESERVED -> ORDER_PREPARE :
                            (disk.state == STOPPING -> ORDER_STOP :
                             (disk.shape == 3 -> ORDER_START : ORDER_RUN)))
    :: else
    fi
}

inline polled(node)
{
    each_drop(node, poll_epoch[node]);
    if
    :: poll_epoch[node] != 0 -> work_order(node, poll_epoch[node], poll_order[node])
    :: else
    fi;
    end_poll(node)
}

/* age: since the beat left. One that is older than the newest that was answered, or that nobody waits for any
 * more, is no news. */
inline beaten(node, age, list, named)
{
    if
    :: age <= renewed[node] && age <= PATIENCE ->
        if
        :: poll[node] && renewed[node] - age > ANEW && wrong != LATE_ORDER -> end_poll(node)
        :: else
        fi;
        renewed[node] = (wrong == LEASE_FROM_REPLY -> 0 : age);
        work_beat(node, list, named)
    :: else
    fi
}

/* --- the steps of a node, and what passes between it and the controller -------------------------------- */

#define HAS(epoch) attempt[AT(me, epoch)]

/* Reports tell how things are, and may be repeated at any time. A fenced one ends its attempt, unless the
 * answer is lost. */
#define REPORTS(epoch, holds, what)                                                                          \
    :: d_step { enrolled[me] && (holds) ->                                                                   \
           take_report(me, boot[me], epoch, what, answer);                                                   \
           if                                                                                                \
           :: answer == FENCED -> drop(me, epoch)                                                            \
           :: answer == UNKNOWN -> be_stranger(me)                                                           \
           :: else                                                                                           \
           fi; DONE }                                                                                        \
    :: d_step { enrolled[me] && (holds) -> take_report(me, boot[me], epoch, what, answer); DONE }            \
    :: d_step { enrolled[me] && (holds) && kept == 0 && keeps ->                                              \
           kept = KEPT_REPORT; kept_node = me; kept_boot = boot[me]; kept_list = epoch; kept_what = what }

#define STEPS(epoch)                                                                                         \
    :: d_step { HAS(epoch) == CLAIMED && !OVERDUE(me, epoch, TERM) -> hand_over(me, epoch); DONE }           \
    :: d_step { HAS(epoch) == CLAIMED && crashes < crashed ->                                                \
           crashes++;                                                                                        \
           HAS(epoch) = ASSIGNED;                                                                            \
           leased[AT(me, epoch)] = NO_LEASE;                                                                 \
           restart_agent(me); DONE }                                                                         \
    :: d_step { HAS(epoch) == READY && OVERDUE(me, epoch, TERM) -> end_attempt(AT(me, epoch), 0); DONE }     \
    :: d_step { HAS(epoch) == RUNS -> end_attempt(AT(me, epoch), 1); DONE }                                  \
    :: d_step { HAS(epoch) == RUNS -> end_attempt(AT(me, epoch), 0); DONE }                                  \
    REPORTS(epoch, HAS(epoch) == READY, TELL_READY)                                                          \
    REPORTS(epoch, HAS(epoch) == RUNS, TELL_RUNS)                                                            \
    REPORTS(epoch, HAS(epoch) == OVER && well[AT(me, epoch)], TELL_WELL)                                     \
    REPORTS(epoch, HAS(epoch) == OVER && !well[AT(me, epoch)], TELL_ILL)

#define OVERDUE(node, epoch, limit)                                                                          \
    (leased[AT(node, epoch)] != NO_LEASE && leased[AT(node, epoch)] >= limit(rate[node]))

#define IN_TOUCH (disk.boot[me] == boot[me])
#define MAY_POLL (enrolled[me] && !poll[me] && IN_TOUCH && MATTERS)

/* A poll that would find nothing on either side. */
#define MATTERS (UP(disk.member[me]) || KNOWS(1) || KNOWS(2) || KNOWS(EPOCHS))
#define KNOWS(epoch) (HAS(epoch) >= CLAIMED && HAS(epoch) <= OVER)

proctype machine(bit me)
{
    do
    /* beats */
    :: d_step { enrolled[me] && IN_TOUCH ->
           list_attempts(me, list);
           take_beat(me, list, named);
           beaten(me, 0, list, named); DONE }
    :: d_step { enrolled[me] && IN_TOUCH -> heard[me] = 0 } /* the answer is lost */
    :: d_step { enrolled[me] && IN_TOUCH && beat[0] + beat[1] == 0 && (late & 1) ->
           list_attempts(me, beat_list[me]);
           take_beat(me, beat_list[me], beat_fenced[me]);
           beat[me] = ANSWERED; DONE }
    :: d_step { enrolled[me] && beat[0] + beat[1] == 0 && (late & 1) ->
           list_attempts(me, beat_list[me]);
           beat[me] = ASKED; DONE }
    :: d_step { beat[me] == ASKED && IN_TOUCH ->
           take_beat(me, beat_list[me], beat_fenced[me]);
           beaten(me, beat_age[me], beat_list[me], beat_fenced[me]);
           end_beat(me); DONE }
    :: d_step { beat[me] == ANSWERED ->
           beaten(me, beat_age[me], beat_list[me], beat_fenced[me]);
           end_beat(me); DONE }
    :: d_step { beat[me] != IDLE -> end_beat(me) } /* lost */
    :: d_step { enrolled[me] && !IN_TOUCH -> be_stranger(me) }

    /* polls */
    :: d_step { MAY_POLL ->
           answer_poll(me);
           polled(me); DONE }
    :: d_step { MAY_POLL && !poll[0] && !poll[1] && (late & 2) ->
           answer_poll(me);
           poll[me] = 1; DONE }
    :: d_step { poll[me] -> polled(me); DONE }
    :: d_step { poll[me] -> end_poll(me) } /* lost */

    /* registers */
    :: d_step { !enrolled[me] && enrol[0] == IDLE && enrol[1] == IDLE ->
           enrol[me] = ASKED;
           list_attempts(me, enrol_list[me]); DONE }
    :: d_step { enrol[me] == ASKED && kept == 0 && keeps ->
           kept = KEPT_REGISTER;
           kept_node = me;
           kept_boot = boot[me];
           kept_list = enrol_list[me];
           kept_fits = enrol_fits[me] }
    :: d_step { enrol[me] == ASKED ->
           take_register(me, boot[me], enrol_list[me], enrol_fits[me], answer);
           enrol_list[me] = 0;
           if
           :: answer == TAKEN -> enrol[me] = ANSWERED
           :: else ->
               enrol[me] = IDLE;
               enrol_age[me] = 0;
               enrol_fits[me] = 1
           fi; DONE }
    :: d_step { enrol[me] == ANSWERED ->
           enrolled[me] = 1;
           renewed[me] = enrol_age[me];
           enrol[me] = IDLE;
           enrol_age[me] = 0 }
    :: d_step { enrol[me] != IDLE -> /* lost */
           enrol[me] = IDLE;
           enrol_age[me] = 0;
           enrol_list[me] = 0 }

    STEPS(1)
    STEPS(2)
#if EPOCHS > 2
    STEPS(3)
#endif
    :: d_step { crashes < crashed ->
           crashes++;
           restart_agent(me); DONE }
    :: d_step { reboots < booted -> reboot(me, 0); DONE }
    :: d_step { reboots < booted -> reboot(me, 1); DONE }
    od
}
