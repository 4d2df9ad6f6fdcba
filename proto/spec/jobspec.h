/* SPDX-License-Identifier: Apache-2.0 */
/* A job spec: the body of POST /v1/jobs, checked field by field, with its defaults. */
#ifndef PROTO_JOBSPEC_H
#define PROTO_JOBSPEC_H

#include <jansson.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/limits.h"
#include "proto/task_list.h"
#include "proto/states.h"

/* A file that each node copies into the job's working directory before the ranks start. */
struct job_file {
    const char *path;   /* relative, no "..", no empty part */
    const char *text;   /* exactly one of these three is set: the content itself, ... */
    const char *base64; /* ... the content in base64, ... */
    const char *blob;   /* ... or its SHA-256 in hex, uploaded before by PUT /v1/blobs/{sha256} */
    bool executable;
};

/* A Python function and its arguments instead of a command. The payload is a line "gpuctl-function 1
 * python=MAJOR.MINOR\n" and then the pickle of (function, args, kwargs). Only the ranks unpickle it. Either
 * base64 or blob is set, or there is no function. */
struct job_function {
    const char *base64;  /* the payload itself, spelled "inline"; LIMIT_INLINE_BYTES decoded */
    const char *blob;    /* or its SHA-256 in hex, uploaded before */
    const char *modules; /* SHA-256 of a stored zip of Python modules, which comes first on sys.path of the
                                                 ranks; or NULL */
};

/* Python packages that nodes install before the job is placed. Either requirements or blob is set, or there
 * is no environment. */
struct job_environment {
    const json_t *requirements; /* array of strings: the lines of a requirements file of pip */
    const char *blob;           /* or the SHA-256 in hex of such a file, uploaded before */
    const char *python;         /* the required MAJOR.MINOR; NULL: any */
};

/* A folder that each node copies into the working folder before the files. */
struct job_bundle {
    const char *blob; /* SHA-256 in hex of an uncompressed tar archive, uploaded before; NULL: no bundle */
    const json_t *python_path; /* folders in the bundle that ranks import from, "." for all of it; or NULL */
};

/* The signal that the ranks get before they are ended: before_ms before the time limit, and at the start of a
 * preemption. */
struct job_early_signal {
    enum early_signal signal; /* EARLY_NONE: no warning */
    int64_t before_ms;        /* before the time limit */
};

/* A job that this job depends on. */
struct job_dependency {
    const char *job;  /* its id; or NULL, and */
    const char *name; /* a name of it, which the controller looks up */
    enum dependency when;
};

/* A secret that ranks get: NAME[=VARIABLE][:file]. */
struct job_secret {
    char name[LIMIT_NAME_BYTES + 1];
    char variable[LIMIT_NAME_BYTES + sizeof "_FILE"];
    bool file; /* the variable has the path of a file with the value, instead of the value */
};

enum volume_access { VOLUME_AS_GIVEN, VOLUME_READ_ONLY, VOLUME_WRITABLE };

/* A folder of the nodes, named by their operator, that ranks get: NAME[:PATH][:ro|:rw]. */
struct job_volume {
    char *name;       /* owned, with the path */
    const char *path; /* where ranks find it, absolute; NULL: where it is on the node */
    char *variable;   /* that tells ranks; owned */
    enum volume_access access;
};

enum input_source { SOURCE_HTTP, SOURCE_S3, SOURCE_VOLUME };

/* Data that nodes fetch once, and that ranks may read: [NAME=]URL[#OPTIONS][:PATH]. */
struct job_input {
    enum input_source source;
    char *written;      /* owned; as the job has it */
    char *variable;     /* owned; of the ranks: GPUCTL_INPUT_NAME */
    char *text;         /* owned; the others point into it */
    const char *url;    /* without options */
    const char *place;  /* the URL behind its scheme */
    const char *path;   /* the folder where ranks find it, absolute; NULL: where the node keeps it */
    const char *sha256; /* that the content must have; or NULL */
    const char *secret; /* name of the secret with the credentials; or NULL */
};

/* All strings are borrowed from json, which the spec owns. */
struct job_spec {
    json_t *json;
    const char *name;     /* NULL: none */
    int64_t gpus;         /* total over all nodes; as many ranks in process mode. 0: one rank without a GPU */
    int64_t millicpus;    /* thousandths of CPUs, in total; 0: as many as belong to its GPUs */
    int64_t memory_bytes; /* in total; 0: likewise */
    const char *gpu_type; /* "H100", or "H100|A100" by preference; NULL: any single type */
    bool remote;          /* false: one node on the submitter's host */
    enum use_reserved use_reserved_pool;
    const char *pool; /* NULL: any that use_reserved_pool allows */
    enum placement placement;
    int64_t nodes;                 /* exactly this many, with equally many GPUs each; 0: any number */
    const json_t *constraints;     /* object by label: a value, an array, or {"in", "not"}; or NULL */
    const json_t *avoid, *exclude; /* arrays of node names; or NULL */
    char *terms; /* owned: these three and the volumes as one text (proto/spec/jobspec_place.h); NULL: no
                    terms */
    enum launch_mode launch_mode;
    const json_t *command; /* array of at least one string; NULL: the job is a function */
    struct job_function function;
    const json_t *env;          /* object of strings, or NULL */
    const json_t *labels;       /* object of strings, or NULL */
    struct job_secret *secrets; /* owned */
    size_t secret_count;
    struct job_volume *volumes; /* owned */
    size_t volume_count;
    const char
        *checkpoint_volume;   /* of them the one with the folder for checkpoints; NULL: it is on the node */
    struct job_input *inputs; /* owned */
    size_t input_count;
    struct job_file *files; /* owned */
    size_t file_count;
    struct job_environment environment;
    struct job_bundle bundle;
    const char *image; /* of a container, as registries name it; NULL: the ranks have the node's files */
    const char *worker_image; /* of the nodes but that of rank 0; NULL: the same */
    const char *image_secret; /* name of the secret with which nodes pull both; NULL: anybody may */
    const char
        *workdir; /* absolute path on the nodes; NULL: the attempt's own folder, where its files are put */
    const char *python;    /* interpreter; NULL: the agent's */
    const char *project;   /* NULL: "default" */
    int64_t priority;      /* -1000..1000, default 0 */
    int64_t time_limit_ms; /* 0: none */
    int64_t grace_ms;      /* between TERM and KILL on cancel, time limit and preemption */
    int64_t keep_ms;       /* that its nodes stay as they are after a rank failed; 0: they do not */
    struct job_early_signal early_signal;
    int64_t lease_ms;
    int64_t retries;       /* further attempts after failures of the user's program */
    int64_t infra_retries; /* further attempts after failures of the infrastructure */
    enum on_disconnect on_disconnect;
    int64_t tasks;          /* of the array or sweep that the job stands for; 0: neither */
    struct task_list *only; /* owned: of them, only these; or NULL */
    int64_t parallel;       /* of them, at most so many at a time; 0: any number */
    const json_t *sweep; /* object of arrays of strings and numbers: one task for each combination; or NULL */
    struct job_dependency *dependencies; /* owned */
    size_t dependency_count;
    int64_t not_before_ms;     /* wall clock: it does not begin before; 0: no such moment */
    bool hold;                 /* held from the start */
    const char *checkpoint_of; /* id of the job, of the same owner, with whose last checkpoint this one
                                  begins; NULL: none */
    const char *retry_of;      /* id of the job that this one repeats, for people; NULL: none */
    const char *host_id;       /* SHA-256 of the submitter's machine id; needed with remote=false */
    const char *traceparent, *tracestate; /* of the submitter's span (proto/trace_context.h); or NULL */
    const json_t *notify;                 /* array of ids and names of webhooks; or NULL */
};

/* Decodes and checks every field. An unknown field is ERR_UNKNOWN_FIELD with the nearest known name, a wrong
 * one ERR_FIELD; both name the field, such as "files[2].path". lease_min_ms is the smallest lease that is
 * accepted. Takes over json in any case. */
bool job_spec_decode(json_t *json, int64_t lease_min_ms, struct job_spec *ret_spec, struct err *err);
void job_spec_finish(struct job_spec *spec);

/* Whether the job runs a function instead of a command. */
static inline bool job_spec_is_function(const struct job_spec *spec)
{
    return spec->function.base64 != NULL || spec->function.blob != NULL;
}

#define DEFAULT_PROJECT "default"
static inline const char *job_spec_project(const struct job_spec *spec)
{
    return spec->project != NULL ? spec->project : DEFAULT_PROJECT;
}

/* The number of ranks in process mode of a job with so many GPUs. */
static inline int64_t ranks_of_gpus(int64_t gpus)
{
    return gpus > 0 ? gpus : 1;
}

static inline bool job_spec_has_environment(const struct job_spec *spec)
{
    return spec->environment.requirements != NULL || spec->environment.blob != NULL;
}

/* The folder of a volume for checkpoints. A job has a folder in it, named by the job with which its
 * checkpoints began: by this job itself, or the first of those that it repeats. */
#define CHECKPOINTS_ON_VOLUME "gpuctl-checkpoints"
static inline const char *job_spec_checkpoint_key(const json_t *spec, const char *job_id)
{
    const char *first = json_string_value(json_object_get(spec, "checkpoint_of"));
    return first != NULL ? first : job_id;
}

/* The digest that an image names, "sha256:...", a part of it; NULL: it names none. */
const char *job_image_digest(const char *image);
/* The image of the node that has this rank first; NULL: none. */
const char *job_spec_image_at(const struct job_spec *spec, int64_t first_rank);

/* Whether a secret may have this name: that of an environment variable, of at most LIMIT_NAME_BYTES. */
bool jobspec_is_secret_name(const char *name);

/* The text of a spec as people see it: function.inline, which may be long, becomes function.inline_bytes.
 * Values of variables with secret names, and credentials in addresses of requirements, become "***". All else
 * stays as received. NULL: the spec has none of these. The caller frees the text. */
char *job_spec_shown(const struct job_spec *spec);

/* Whether that text lacks something that only some may see: a function, or what has become "***". */
bool job_spec_hides(const struct job_spec *spec);

/* The canonical JSON of a spec, without members that have default values; decoding it gives an equal spec.
 * New reference. */
json_t *job_spec_encode(const struct job_spec *spec);

/* Calls visit for each blob that the spec names, with its SHA-256 in hex and the path of its field, until
 * visit returns false; then it returns false. */
bool job_spec_each_blob(const struct job_spec *spec,
                        bool (*visit)(void *closure, const char *hash, const char *field), void *closure);

#endif
