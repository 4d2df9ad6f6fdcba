/* SPDX-License-Identifier: Apache-2.0 */
/* `gpuctl completion`: scripts for shells, made from the same tables as parsing and help, so that they cannot
 * lag behind. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/show/print.h"
#include "client/cli/frame/verb.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

/* What one shell needs for one verb. words is "nodes drain" or "ps". */
struct shell {
    const char *name;
    void (*begin)(struct text *out);
    void (*verb)(const char *words, const struct verb *verb, const struct option_table *table,
                 struct text *out);
    void (*end)(struct text *out);
};

/* A command that prints what the positional arguments may be; NULL where they are files, or nothing. */
static const char *lister(enum argument_kind kind)
{
    switch (kind) {
    case ARGUMENT_JOB:
        return "gpuctl ps --all --quiet 2>/dev/null";
    case ARGUMENT_NODE:
        return "gpuctl nodes list --quiet 2>/dev/null";
    case ARGUMENT_SHELL:
        return "echo bash zsh fish";
    case ARGUMENT_NONE:
    case ARGUMENT_COMMAND:
    case ARGUMENT_FILE:
    case ARGUMENT_TOKEN:
        break;
    }
    return NULL;
}

static bool takes_file(const struct option_spec *spec)
{
    return spec->value_name != NULL &&
           (strcmp(spec->value_name, "FILE") == 0 || strcmp(spec->value_name, "DIR") == 0 ||
            strncmp(spec->value_name, "LOCAL", 5) == 0);
}

/* "a|b" to "a b". */
static void append_choices(const char *choices, struct text *out)
{
    for (; *choices != '\0'; choices++) {
        text_append_bytes(out, *choices == '|' ? " " : choices, 1);
    }
}

/* Text inside single quotes, and for zsh without the characters that its specs give a meaning. */
static void append_quoted(const char *string, bool zsh, struct text *out)
{
    for (; *string != '\0'; string++) {
        if (*string == '\'') {
            text_append(out, "'\\''");
            continue;
        }
        if (zsh && strchr("[]:\\", *string) != NULL) {
            text_append(out, "\\");
        }
        text_append_bytes(out, string, 1);
    }
}

/* Calls each for every group that is inside a group: `nodes window`. */
static void each_inner(void (*each)(const char *outer, const struct verb *inner, struct text *out),
                       struct text *out)
{
    for (const struct verb *const *outer = verb_all(); *outer != NULL; outer++) {
        for (size_t i = 0; (*outer)->nested != NULL && (*outer)->nested[i] != NULL; i++) {
            if ((*outer)->nested[i]->nested != NULL) {
                each((*outer)->name, (*outer)->nested[i], out);
            }
        }
    }
}

/* --- bash --- */

static void append_group(const struct verb *const *verbs, struct text *out)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        text_printf(out, "%s%s", i > 0 ? " " : "", verbs[i]->name);
    }
}

static void bash_inner(const char *outer, const struct verb *inner, struct text *out)
{
    text_printf(out, "    '%s %s')\n        verb+=\" ${COMP_WORDS[3]}\"\n", outer, inner->name);
    text_append(out, "        ((COMP_CWORD == 3)) && arguments='");
    append_group(inner->nested, out);
    text_append(out, "'\n        ;;\n");
}

static void bash_begin(struct text *out)
{
    text_append(
        out,
        "# bash completion of gpuctl: source <(gpuctl completion bash)\n_gpuctl()\n{\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
        "    local options= arguments= choices= files=\n"
        "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    append_group(verb_all(), out);
    text_append(out, "' -- \"$word\"))\n        return\n    fi\n    case $verb in\n");
    for (const struct verb *const *verb = verb_all(); *verb != NULL; verb++) {
        if ((*verb)->nested != NULL) {
            text_printf(
                out,
                "    %s)\n        verb=\"%s ${COMP_WORDS[2]}\"\n        ((COMP_CWORD == 2)) && arguments='",
                (*verb)->name, (*verb)->name);
            append_group((*verb)->nested, out);
            text_append(out, "'\n        ;;\n");
        }
    }
    text_append(out, "    esac\n    case $verb in\n");
    each_inner(bash_inner, out);
    text_append(out, "    esac\n    case $verb in\n");
}

static void bash_names(const struct option_spec *spec, const char *separator, struct text *out)
{
    text_printf(out, "--%s", spec->name);
    if (spec->letter != '\0') {
        text_printf(out, "%s-%c", separator, spec->letter);
    }
}

/* What may follow an option that takes a value. */
static void bash_values(const struct option_table *table, struct text *out)
{
    text_append(out, "        case $before in\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->items[i];
        if (spec->kind == OPTION_FLAG) {
            continue;
        }
        text_append(out, "        ");
        bash_names(spec, "|", out);
        text_append(out, takes_file(spec) ? ") files=1" : ") choices='");
        if (!takes_file(spec)) {
            append_choices(spec->choices != NULL ? spec->choices : " ", out);
            text_append(out, "'");
        }
        text_append(out, " ;;\n");
    }
    text_append(out, "        esac\n");
}

static void bash_verb(const char *words, const struct verb *verb, const struct option_table *table,
                      struct text *out)
{
    text_printf(out, "    '%s')\n        options='", words);
    for (size_t i = 0; i < table->count; i++) {
        text_append(out, i > 0 ? " " : "");
        bash_names(&table->items[i], " ", out);
    }
    text_append(out, "'\n");
    if (lister(verb->argument) != NULL) {
        text_printf(out, "        [[ $word == -* ]] || arguments=$(%s)\n", lister(verb->argument));
    } else if (verb->argument == ARGUMENT_COMMAND || verb->argument == ARGUMENT_FILE) {
        text_append(out, "        [[ $word == -* ]] || files=1\n");
    }
    bash_values(table, out);
    text_append(out, "        ;;\n");
}

static void bash_end(struct text *out)
{
    text_append(
        out,
        "    esac\n"
        "    if [[ -n $choices ]]; then\n        COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
        "    elif [[ -n $files ]]; then\n        COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "    else\n        COMPREPLY=($(compgen -W \"${arguments:-$options}\" -- \"$word\"))\n    fi\n}\n"
        "complete -o filenames -F _gpuctl gpuctl\n");
}

/* --- zsh --- */

static void zsh_group(const struct verb *const *verbs, const char *indent, struct text *out)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        text_printf(out, "%s'%s:", indent, verbs[i]->name);
        append_quoted(verbs[i]->summary, true, out);
        text_append(out, "'\n");
    }
}

/* Offers the verbs of a group as its third word, and makes words count from it on. */
static void zsh_nested(const struct verb *group, struct text *out)
{
    text_append(out, "        if ((CURRENT == 3)); then\n            nested=(\n");
    zsh_group(group->nested, "                ", out);
    text_append(out,
                "            )\n            _describe verb nested\n            return\n        fi\n"
                "        verb+=\" ${words[3]}\"\n        shift words\n        ((CURRENT--))\n        ;;\n");
}

static void zsh_inner(const char *outer, const struct verb *inner, struct text *out)
{
    text_printf(out, "    '%s %s')\n", outer, inner->name);
    zsh_nested(inner, out);
}

static void zsh_begin(struct text *out)
{
    text_append(out, "#compdef gpuctl\n# zsh completion of gpuctl: gpuctl completion zsh "
                     ">\"${fpath[1]}/_gpuctl\"\n_gpuctl()\n{\n"
                     "    local -a verbs nested\n    local verb=${words[2]}\n    if ((CURRENT == 2)); then\n "
                     "       verbs=(\n");
    zsh_group(verb_all(), "            ", out);
    text_append(out, "        )\n        _describe verb verbs\n        return\n    fi\n    case $verb in\n");
    for (const struct verb *const *verb = verb_all(); *verb != NULL; verb++) {
        if ((*verb)->nested != NULL) {
            text_printf(out, "    %s)\n", (*verb)->name);
            zsh_nested(*verb, out);
        }
    }
    text_append(out, "    esac\n    case $verb in\n");
    each_inner(zsh_inner, out);
    text_append(out, "    esac\n    shift words\n    ((CURRENT--))\n    case $verb in\n");
}

/* ":message:action" of an option's value. */
static void zsh_value(const struct option_spec *spec, struct text *out)
{
    if (spec->kind == OPTION_FLAG) {
        return;
    }
    text_append(out, ":");
    append_quoted(spec->value_name != NULL ? spec->value_name : "VALUE", true, out);
    text_append(out, ":");
    if (spec->choices != NULL) {
        text_append(out, "(");
        append_choices(spec->choices, out);
        text_append(out, ")");
    } else if (takes_file(spec)) {
        text_append(out, "_files");
    }
}

static void zsh_option(const struct option_spec *spec, struct text *out)
{
    char letter[3] = {'-', spec->letter, '\0'};
    autofree char *name = xprintf("--%s", spec->name);
    const char *const spellings[] = {name, spec->letter != '\0' ? letter : NULL};
    for (size_t i = 0; i < 2 && spellings[i] != NULL; i++) {
        text_printf(out, " \\\n            '%s%s[", spec->kind == OPTION_LIST ? "*" : "", spellings[i]);
        append_quoted(spec->help, true, out);
        text_append(out, "]");
        zsh_value(spec, out);
        text_append(out, "'");
    }
}

static void zsh_verb(const char *words, const struct verb *verb, const struct option_table *table,
                     struct text *out)
{
    text_printf(out, "    '%s')\n        _arguments", words);
    for (size_t i = 0; i < table->count; i++) {
        zsh_option(&table->items[i], out);
    }
    if (lister(verb->argument) != NULL) {
        text_printf(out, " \\\n            '*:argument:($(%s))'", lister(verb->argument));
    } else if (verb->argument == ARGUMENT_COMMAND) {
        text_append(out, " \\\n            '*::command:_normal'");
    } else if (verb->argument == ARGUMENT_FILE) {
        text_append(out, " \\\n            '*:file:_files'");
    }
    text_append(out, "\n        ;;\n");
}

static void zsh_end(struct text *out)
{
    text_append(out, "    esac\n}\n[[ $zsh_eval_context[-1] == loadautofunc ]] && _gpuctl \"$@\" || compdef "
                     "_gpuctl gpuctl\n");
}

/* --- fish --- */

static void fish_group(const struct verb *const *verbs, const char *condition, struct text *out)
{
    for (size_t i = 0; verbs[i] != NULL; i++) {
        text_printf(out, "complete -c gpuctl -n '%s' -a %s -d '", condition, verbs[i]->name);
        append_quoted(verbs[i]->summary, false, out);
        text_append(out, "'\n");
    }
}

static void fish_inner(const char *outer, const struct verb *inner, struct text *out)
{
    autofree char *condition = xprintf("__gpuctl_words 3; and __gpuctl_verb %s %s", outer, inner->name);
    fish_group(inner->nested, condition, out);
}

static void fish_begin(struct text *out)
{
    text_append(out, "# fish completion of gpuctl: gpuctl completion fish | source\n"
                     "function __gpuctl_verb\n"
                     "    set -l words (commandline -opc)\n"
                     "    test \"$words[2..-1]\" = \"$argv\"; and return\n"
                     "    string match -q -- \"$argv *\" \"$words[2..-1]\"\n"
                     "end\n"
                     "function __gpuctl_words\n"
                     "    test (count (commandline -opc)) -eq $argv[1]\n"
                     "end\n"
                     "complete -c gpuctl -f\n");
    fish_group(verb_all(), "__gpuctl_words 1", out);
    for (const struct verb *const *verb = verb_all(); *verb != NULL; verb++) {
        if ((*verb)->nested != NULL) {
            autofree char *condition = xprintf("__gpuctl_words 2; and __gpuctl_verb %s", (*verb)->name);
            fish_group((*verb)->nested, condition, out);
        }
    }
    each_inner(fish_inner, out);
}

static void fish_option(const char *words, const struct option_spec *spec, struct text *out)
{
    text_printf(out, "complete -c gpuctl -n '__gpuctl_verb %s' -l %s", words, spec->name);
    if (spec->letter != '\0') {
        text_printf(out, " -s %c", spec->letter);
    }
    if (spec->choices != NULL) {
        text_append(out, " -x -a '");
        append_choices(spec->choices, out);
        text_append(out, "'");
    } else if (spec->kind != OPTION_FLAG) {
        text_append(out, takes_file(spec) ? " -r -F" : " -x");
    }
    text_append(out, " -d '");
    append_quoted(spec->help, false, out);
    text_append(out, "'\n");
}

static void fish_verb(const char *words, const struct verb *verb, const struct option_table *table,
                      struct text *out)
{
    for (size_t i = 0; i < table->count; i++) {
        fish_option(words, &table->items[i], out);
    }
    if (verb->argument == ARGUMENT_SHELL) {
        text_printf(out, "complete -c gpuctl -n '__gpuctl_verb %s' -a 'bash zsh fish'\n", words);
    } else if (lister(verb->argument) != NULL) {
        text_printf(out, "complete -c gpuctl -n '__gpuctl_verb %s' -a '(%s)'\n", words,
                    lister(verb->argument));
    } else if (verb->argument == ARGUMENT_COMMAND || verb->argument == ARGUMENT_FILE) {
        text_printf(out, "complete -c gpuctl -n '__gpuctl_verb %s' -F\n", words);
    }
}

static void nothing(struct text *out)
{
}

/* --- the verb --- */

static void each_verb(const struct shell *shell, const char *before, const struct verb *const *verbs,
                      struct text *out)
{
    for (; *verbs != NULL; verbs++) {
        const struct verb *verb = *verbs;
        autofree char *words = xprintf("%s%s%s", before, before[0] != '\0' ? " " : "", verb->name);
        if (verb->nested != NULL) {
            each_verb(shell, words, verb->nested, out);
            continue;
        }
        autofree void *options = xzalloc(verb->options_size + 1);
        struct common common;
        struct option_table table;
        verb_describe(verb, options, &common, &table);
        shell->verb(words, verb, &table, out);
        option_table_finish(&table);
    }
}

static bool run(const struct call *call, int *ret_exit, struct err *err)
{
    static const struct shell shells[] = {
        {"bash", bash_begin, bash_verb, bash_end},
        {"zsh", zsh_begin, zsh_verb, zsh_end},
        {"fish", fish_begin, fish_verb, nothing},
    };
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, call->rest[0]) == 0) {
            autotext struct text out = {0};
            shells[i].begin(&out);
            each_verb(&shells[i], "", verb_all(), &out);
            shells[i].end(&out);
            return print_out(&out, err);
        }
    }
    err_set(err, ERR_USAGE, "there is no completion for \"%s\"", call->rest[0]);
    return err_hint(err, "bash, zsh and fish are known");
}

const struct verb verb_completion = {
    .name = "completion",
    .arguments = "SHELL",
    .summary = "Print the completion script for bash, zsh or fish.",
    .details = "For bash, put this into ~/.bashrc: source <(gpuctl completion bash)",
    .argument = ARGUMENT_SHELL,
    .least = 1,
    .most = 1,
    .reach = REACH_NOTHING,
    .run = run,
};
