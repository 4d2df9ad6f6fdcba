/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a cgroup to the GPUs of its job. The kernel asks a program (eBPF) of the cgroup before a process in
 * it makes or opens a device file. The program allows
 *   - each file that is not of NVIDIA's driver
 *   - of GPUs those that are listed
 *   - to a job with GPUs also nvidiactl, nvidia-uvm and the like, but not the files by which parts of GPUs
 *     (MIG) are made and opened: no job gets a part.
 * The driver's other files have numbers that change from boot to boot, and are known only once it is loaded:
 * the kernel's list of them takes too long to read for each start, so the agent looks every few seconds. */
#include "agent/launch/device_rule.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/base/files/files.h"
#include "proto/base/text/text.h"
#include "proto/limits.h"

#define GPU_MAJOR     195 /* of /dev/nvidia0 and so on, and of the two below */
#define MODESET_MINOR 254
#define CONTROL_MINOR 255
#define DRIVER_PREFIX "nvidia"      /* of the names of all its parts */
#define PARTS_NAME    "nvidia-caps" /* of MIG */
#define MAJORS_MOST   32            /* of which the driver has less than ten */
#define MAJORS_BYTES  16384         /* of DEVICE_MAJORS, which has some 40 lines */
#define TRIES         5             /* a signal interrupts the kernel's check of a program */

#define ANSWER BPF_REG_0
#define ASKED  BPF_REG_1 /* where the kernel puts the question */
#define KIND   BPF_REG_2
#define MAJOR  BPF_REG_3
#define MINOR  BPF_REG_4

#define ROW(operation, to, from, offset, value)                                                              \
    {                                                                                                        \
        .code = (operation), .dst_reg = (to), .src_reg = (from), .off = (offset), .imm = (value)             \
    }
#define LOAD(to, field)                                                                                      \
    ROW(BPF_LDX | BPF_MEM | BPF_W, to, ASKED, offsetof(struct bpf_cgroup_dev_ctx, field), 0)
#define AND(to, bits)  ROW(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, bits)
#define SET(to, value) ROW(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define END            ROW(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* The answers stand once, at the end: a jump has one of them as its offset until the end is known. */
#define JUMP(test, what, value, answer) ROW(BPF_JMP | BPF_K | (test), what, 0, answer, value)
enum answer { REFUSE, ALLOW };

static const struct bpf_insn first_rows[] = {
    LOAD(KIND, access_type), AND(KIND, 0xffff), /* above is what for */
    LOAD(MAJOR, major),      LOAD(MINOR, minor),
    SET(ANSWER, 1),          JUMP(BPF_JNE, KIND, BPF_DEVCG_DEV_CHAR, ALLOW),
};
static const struct bpf_insn last_rows[] = {SET(ANSWER, 0), END}; /* to refuse, and to allow */
static const struct bpf_insn other_devices = JUMP(BPF_JNE, MAJOR, GPU_MAJOR, ALLOW);

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define ROWS_MOST   (COUNT(first_rows) + MAJORS_MOST + 3 + LIMIT_NODE_DEVICES + COUNT(last_rows))

struct program {
    struct bpf_insn rows[ROWS_MOST];
    size_t count;
};

struct device_rule {
    char *majors;
    bool seen; /* the drivers are those of the last look */
    struct driver {
        int major;
        bool parts; /* of GPUs */
    } drivers[MAJORS_MOST];
    size_t driver_count;
    int loaded;             /* the kernel's newest program; -1: none */
    struct program program; /* its rows */
};

static void add(struct program *program, const struct bpf_insn *rows, size_t count)
{
    memcpy(program->rows + program->count, rows, count * sizeof *rows);
    program->count += count;
}

static void add_test(struct program *program, uint8_t what, int64_t value, enum answer answer)
{
    add(program, &(struct bpf_insn)JUMP(BPF_JEQ, what, (int32_t)value, (int16_t)answer), 1);
}

/* A line of DEVICE_MAJORS: "508 nvidia-uvm". Such of disks follow under another heading. */
static void note_drivers(struct device_rule *rule, char *text)
{
    rule->driver_count = 0;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL && strncmp(line, "Block", 5) != 0;
         line = strsep(&rest, "\n")) {
        int major;
        char name[64];
        if (rule->driver_count < MAJORS_MOST && sscanf(line, "%d %63s", &major, name) == 2 &&
            major != GPU_MAJOR && strncmp(name, DRIVER_PREFIX, strlen(DRIVER_PREFIX)) == 0) {
            rule->drivers[rule->driver_count++] = (struct driver){major, strcmp(name, PARTS_NAME) == 0};
        }
    }
}

bool device_rule_look(struct device_rule *rule, struct err *err)
{
    autofree char *text = NULL;
    rule->seen = file_read(rule->majors, MAJORS_BYTES, &text, NULL, err);
    if (rule->seen) {
        note_drivers(rule, text);
    }
    return rule->seen;
}

static void refuse_drivers(struct program *program, const struct device_rule *rule, bool all)
{
    for (size_t i = 0; i < rule->driver_count; i++) {
        if (all || rule->drivers[i].parts) {
            add_test(program, MAJOR, rule->drivers[i].major, REFUSE);
        }
    }
}

static void allow_gpus(struct program *program, const int64_t *gpus, size_t count)
{
    for (size_t i = 0; i < count && i < LIMIT_NODE_DEVICES; i++) {
        add_test(program, MINOR, gpus[i], ALLOW);
    }
    if (count > 0) {
        add_test(program, MINOR, MODESET_MINOR, ALLOW);
        add_test(program, MINOR, CONTROL_MINOR, ALLOW);
    }
}

static void set_jumps(struct program *program)
{
    const size_t refuse = program->count - COUNT(last_rows);
    for (size_t i = 0; i < refuse; i++) {
        struct bpf_insn *row = &program->rows[i];
        if (BPF_CLASS(row->code) == BPF_JMP) {
            row->off = (int16_t)(refuse + (row->off == ALLOW) - i - 1);
        }
    }
}

static int load(const struct program *program)
{
    static const char license[] = "Apache-2.0";
    union bpf_attr call;
    memset(&call, 0, sizeof call);
    call.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    call.insns = (uint64_t)(uintptr_t)program->rows;
    call.insn_cnt = (uint32_t)program->count;
    call.license = (uint64_t)(uintptr_t)license;
    int loaded = -1;
    for (int i = 0; i < TRIES && loaded < 0 && (i == 0 || errno == EAGAIN); i++) {
        loaded = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &call, sizeof call);
    }
    return loaded;
}

/* A job of root may have cgroups of its own with rules of their own, as containers do: those count, too. */
static bool attach(int folder, int loaded)
{
    union bpf_attr call;
    memset(&call, 0, sizeof call);
    call.target_fd = (uint32_t)folder;
    call.attach_bpf_fd = (uint32_t)loaded;
    call.attach_type = BPF_CGROUP_DEVICE;
    call.attach_flags = BPF_F_ALLOW_MULTI;
    return syscall(SYS_bpf, BPF_PROG_ATTACH, &call, sizeof call) == 0;
}

static void write_rows(const struct device_rule *rule, const int64_t *gpus, size_t count,
                       struct program *program)
{
    add(program, first_rows, COUNT(first_rows));
    refuse_drivers(program, rule, count == 0);
    add(program, &other_devices, 1);
    allow_gpus(program, gpus, count);
    add(program, last_rows, COUNT(last_rows));
    set_jumps(program);
}

/* Most jobs of a node have as many GPUs as the one before, or none: the kernel need not check it again. */
static bool attach_last(const struct device_rule *rule, const struct program *program, int folder)
{
    return rule->loaded >= 0 && rule->program.count == program->count &&
           memcmp(rule->program.rows, program->rows, program->count * sizeof program->rows[0]) == 0 &&
           attach(folder, rule->loaded);
}

static bool attach_new(struct device_rule *rule, const struct program *program, int folder)
{
    autoclose int loaded = load(program);
    if (loaded < 0 || !attach(folder, loaded)) {
        return false;
    }
    cleanup_close(&rule->loaded);
    rule->loaded = give_fd(&loaded);
    rule->program = *program;
    return true;
}

struct device_rule *device_rule_create(const char *majors)
{
    struct device_rule *rule = xzalloc(sizeof *rule);
    rule->majors = xstrdup(majors);
    rule->loaded = -1;
    return rule;
}

bool device_rule_set(struct device_rule *rule, int folder, const int64_t *gpus, size_t count, struct err *err)
{
    struct program program = {.count = 0};
    if (!rule->seen && !device_rule_look(rule, err)) {
        return false;
    }
    write_rows(rule, gpus, count, &program);
    return attach_last(rule, &program, folder) || attach_new(rule, &program, folder) ||
           err_errno(err, "cannot keep a cgroup to the GPUs of its job");
}

void device_rule_destroy(struct device_rule *rule)
{
    if (rule != NULL) {
        cleanup_close(&rule->loaded);
        free(rule->majors);
        free(rule);
    }
}
