/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats tasks that the tracking store could not do, each second and in their order, until there is room. A
 * task that finds no run meanwhile waits, too: the task that makes the run may be one of those before it. */
#include "daemon/http/mlflow/store_task.h"

#include <utlist.h>

#include "daemon/http/mlflow/mlflow.h"
#include "daemon/http/base/state.h"
#include "proto/limits_tracking.h"

static void work(struct task *task)
{
    struct store_task *own = (struct store_task *)task;
    own->ok = own->work(own, own->tracking, &own->error);
}

static void end(struct store_task *task)
{
    struct mlflow *mlflow = task->server->mlflow;
    if (task->refused && mlflow != NULL) {
        mlflow->tasks.refused--;
    }
    task->done(task, task->ok ? NULL : &task->error);
}

static void give_waiting(struct deadline *deadline)
{
    struct store_tasks *tasks = deadline->closure;
    struct store_task *task, *next;
    DL_FOREACH_SAFE (tasks->waiting, task, next) {
        store_task_hurry(task);
    }
}

static void put_off(struct store_task *task, struct store_tasks *tasks)
{
    struct server *server = task->server;
    if (tasks->waiting == NULL) {
        tasks->again.due = give_waiting;
        tasks->again.closure = tasks;
        deadline_set(server->deadlines, &tasks->again, server->now_ms + TRACKING_RETRY_MS);
    }
    DL_APPEND(tasks->waiting, task);
}

static void done(struct task *own)
{
    struct store_task *task = (struct store_task *)own;
    struct mlflow *mlflow = task->server->mlflow;
    bool refused = !task->ok && task->error.code == TRACKING_TEMPORARILY_UNAVAILABLE;
    if (mlflow == NULL) {
        end(task);
        return;
    }
    mlflow->tasks.refused += refused && !task->refused;
    task->refused = task->refused || refused;
    if (refused ||
        (!task->ok && task->error.code == TRACKING_RESOURCE_DOES_NOT_EXIST && mlflow->tasks.refused > 0)) {
        put_off(task, &mlflow->tasks);
    } else {
        end(task);
    }
}

void store_task_give(struct store_task *task)
{
    const struct mlflow *mlflow = task->server->mlflow;
    task->task = (struct task){.work = work, .done = done};
    task->tracking = mlflow->tracking;
    worker_give(mlflow->worker, &task->task);
}

void store_task_hurry(struct store_task *task)
{
    struct store_tasks *tasks = &task->server->mlflow->tasks;
    if (task->prev == NULL) {
        return;
    }
    DL_DELETE(tasks->waiting, task);
    task->prev = NULL;
    if (tasks->waiting == NULL) {
        deadline_clear(task->server->deadlines, &tasks->again);
    }
    store_task_give(task);
}

void store_tasks_end(struct server *server, struct store_tasks *tasks)
{
    struct store_task *task, *next;
    deadline_clear(server->deadlines, &tasks->again);
    DL_FOREACH_SAFE (tasks->waiting, task, next) {
        DL_DELETE(tasks->waiting, task);
        end(task);
    }
}
