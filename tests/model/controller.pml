/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of the lease model: what it does with a message, and what it does by itself. After
 * daemon/core, each inline after the function of that name. */

/* --- what the controller does ------------------------------------------------------------------------ */

/* The orders of a node have changed: who names an older version is late. */
inline raise(node)
{
    enrol_fits[node] = 0;
    if
    :: kept == KEPT_REGISTER && kept_node == node -> kept_fits = 0
    :: else
    fi
}

inline finish_job(how)
{
    assert(disk.ending == 0);
    disk.ending = how
}

/* No member is up: the attempt has ended, and the job ends or waits again. */
inline settle()
{
    if
    :: disk.current != 0 && !UP(disk.member[0]) && !UP(disk.member[1]) ->
        disk.current = 0;
        disk.state = WAITING;
        disk.shape = 0;
        disk.member[0] = NONE;
        disk.member[1] = NONE;
        if
        :: disk.canceled -> finish_job(CANCELED)
        :: else ->
            if
            :: !disk.failed -> finish_job(SUCCEEDED)
            :: disk.failed && issued == EPOCHS -> finish_job(FAILED)
            :: else
            fi
        fi;
        disk.started = 0;
        disk.failed = 0
    :: else
    fi
}

inline stop()
{
    if
    :: disk.state == RESERVED || disk.state == STARTED ->
        disk.state = STOPPING;
        disk.failed = 1;
        raise(0);
        raise(1)
    :: else
    fi
}

inline lose(node)
{
    if
    :: UP(disk.member[node]) ->
        disk.member[node] = LOST;
        raise(node);
        stop();
        settle()
    :: else
    fi
}

inline decide_start()
{
    assert(!disk.canceled);
    disk.state = STARTED;
    disk.started = 1;
    raise(0);
    raise(1)
}

inline take_prepared(node)
{
    if
    :: disk.member[node] == ORDERED -> disk.member[node] = PREPARED
    :: else
    fi;
    if
    :: (disk.state == RESERVED || (wrong == CANCEL_LOSES && disk.state == STOPPING && !disk.started)) &&
       ((disk.member[0] == PREPARED && disk.member[1] == PREPARED) || wrong == EARLY_START) -> decide_start()
    :: else
    fi
}

inline take_exit(node, good)
{
    if
    :: UP(disk.member[node]) ->
        disk.member[node] = GONE;
        if
        :: good && disk.started -> skip
        :: else -> stop()
        fi
    :: else
    fi;
    settle()
}

/* answer: of a report of this kind and epoch from that node and boot. */
inline take_report(node, of_boot, epoch, what, answer)
{
    if
    :: disk.boot[node] != of_boot -> answer = UNKNOWN
    :: else ->
        if
        :: disk.current == 0 || !IN_SHAPE(node) || disk.member[node] == LOST -> answer = FENCED
        :: epoch != disk.current && wrong != NO_EPOCH_CHECK -> answer = FENCED
        :: what == TELL_RUNS && !disk.started -> answer = FENCED
        :: else ->
            answer = TAKEN;
            assert(epoch == disk.current || wrong == NO_EPOCH_CHECK);
            if
            :: what == TELL_READY -> take_prepared(node)
            :: what == TELL_RUNS && UP(disk.member[node]) -> disk.member[node] = RUNNING
            :: what == TELL_DECLINED || what == TELL_ILL -> take_exit(node, 0)
            :: what == TELL_WELL -> take_exit(node, 1)
            :: else
            fi
        fi
    fi
}

/* Only the list of a register that answers the controller's last word is believed. */
inline take_register(node, of_boot, list, fits, answer)
{
    if
    :: !fits && wrong != STALE_REGISTER -> answer = CONFIRM
    :: else ->
        answer = TAKEN;
        if
        :: UP(disk.member[node]) && (list & BIT(disk.current)) == 0 &&
           (disk.boot[node] != of_boot || disk.member[node] == RUNNING) -> lose(node)
        :: else
        fi;
        disk.boot[node] = of_boot;
        heard[node] = 0;
        raise(node)
    fi
}

/* named: of the epochs that a beat lists, those that its node is not to have. */
inline take_beat(node, list, named)
{
    heard[node] = 0;
    named = list;
    if
    :: wrong == NOT_FENCED -> named = 0
    :: wrong != NOT_FENCED && disk.current != 0 && IN_SHAPE(node) && disk.member[node] != LOST ->
        named = list & ~BIT(disk.current)
    :: else
    fi
}

/* --- by itself --------------------------------------------------------------------------------------- */

#define COPY(to, from)                                                                                       \
    to.top = from.top; to.current = from.current; to.state = from.state; to.shape = from.shape;              \
    to.started = from.started; to.failed = from.failed; to.canceled = from.canceled; to.ending = from.ending;\
    to.member[0] = from.member[0]; to.member[1] = from.member[1];                                            \
    to.boot[0] = from.boot[0]; to.boot[1] = from.boot[1]

#define IDLE_NOW(epoch) ((ghosts & BIT(epoch)) || (attempt[AT(0, epoch)] != RUNS && attempt[AT(1, epoch)] != RUNS))

inline place(of_shape)
{
    disk.top = (wrong == EPOCH_REUSED -> disk.top : issued) + 1;
    assert(disk.top > issued);
    issued = disk.top;
    f = 1;
    do
    :: f > EPOCHS -> break
    :: else ->
        assert(IDLE_NOW(f));
        f++
    od;
    disk.current = disk.top;
    disk.shape = of_shape;
    disk.state = (of_shape == 3 -> RESERVED : STARTED);
    disk.started = (of_shape != 3);
    disk.member[0] = (of_shape & 1 -> ORDERED : NONE);
    disk.member[1] = (of_shape & 2 -> ORDERED : NONE);
    raise(0);
    raise(1)
}

inline lose_lazy(node)
{
    if
    :: disk.member[node] == RUNNING || (disk.member[node] == PREPARED && !disk.started) ->
        disk.member[node] = ORDERED
    :: else
    fi
}

inline boot_controller()
{
    heard[0] = (wrong == NO_RENEWAL -> OLD : 0);
    heard[1] = (wrong == NO_RENEWAL -> OLD : 0);
    raise(0);
    raise(1)
}

#define WAITS (disk.current == 0 && disk.ending == 0 && issued < EPOCHS)
#define GIVES_UP(node)                                                                                       \
    (UP(disk.member[node]) && heard[node] >= SILENT &&                                                       \
     (heard[node] >= GIVEN_UP || (disk.state == STOPPING && !disk.started)))

proctype controller()
{
    do
    :: d_step { WAITS && (shapes & 1) && heard[0] < SILENT -> place(1); DONE }
    :: d_step { WAITS && (shapes & 2) && heard[1] < SILENT -> place(2); DONE }
    :: d_step { WAITS && (shapes & 4) && heard[0] < SILENT && heard[1] < SILENT -> place(3); DONE }
    :: d_step { disk.ending == 0 && !disk.canceled ->
           disk.canceled = 1;
           if
           :: disk.current == 0 -> finish_job(CANCELED)
           :: else -> stop()
           fi; DONE }
    :: d_step { disk.state == RESERVED -> stop(); DONE } /* not prepared in time */
    :: d_step { GIVES_UP(0) -> lose(0); DONE }
    :: d_step { GIVES_UP(1) -> lose(1); DONE }
    :: d_step { kept == KEPT_REGISTER ->
           take_register(kept_node, kept_boot, kept_list, kept_fits, answer); DONE }
    :: d_step { kept == KEPT_REPORT ->
           take_report(kept_node, kept_boot, kept_list, kept_what, answer); DONE }
    :: d_step { true -> boot_controller(); DONE }
    :: d_step { true ->
           lose_lazy(0);
           lose_lazy(1);
           boot_controller(); DONE }
#ifdef RESTORE
    :: d_step { copied == 0 ->
           copied = 1;
           COPY(copy, disk) }
    :: d_step { copied == 1 ->
           copied = 2;
           f = 1;
           do
           :: f > issued -> break
           :: f > copy.top || (f == copy.current && !copy.started && (disk.current != f || disk.started)) ->
               ghosts = ghosts | BIT(f);
               f++
           :: else -> f++
           od;
           COPY(disk, copy);
           boot_controller(); DONE }
#endif
    od
}
