/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the route table, one file a resource. Each replies to its request, at once or later. */
#ifndef HTTP_RESOURCES_H
#define HTTP_RESOURCES_H

struct request;

/* meta.c */
void meta_health(struct request *request);
void meta_version(struct request *request);
void meta_contract(struct request *request);
void meta_shutdown(struct request *request);

/* web.c */
void web_page(struct request *request);
void web_show(struct request *request);

/* jobs.c */
void jobs_submit(struct request *request);
void jobs_list(struct request *request);
void jobs_show(struct request *request);

/* amend.c */
void amend_hold(struct request *request);
void amend_release(struct request *request);
void amend_change(struct request *request);
/* The seq that an If-Match header names; -1: any, or there is no header. */
bool amend_read_match(const char *header, int64_t *ret_seq, struct err *err);

/* cancel.c */
void cancel_job(struct request *request);

/* explain.c */
void explain_job(struct request *request);
void explain_plan(struct request *request);
void explain_preemption(struct request *request);
void preempt_job(struct request *request);

/* events.c */
void events_show(struct request *request);

/* attempts.c */
void attempts_list(struct request *request);

/* timing.c */
void timing_show(struct request *request);

/* results.c */
void results_list(struct request *request);

/* metrics.c */
void metrics_show(struct request *request);

/* nodes.c */
void nodes_list(struct request *request);
void nodes_show(struct request *request);
void nodes_drain(struct request *request);
void nodes_resume(struct request *request);
void nodes_fence(struct request *request);
void nodes_expire(struct request *request);
void nodes_remove(struct request *request);

/* windows.c */
void windows_list(struct request *request);
void windows_make(struct request *request);
void windows_remove(struct request *request);

/* accounts.c */
void accounts_list(struct request *request);
void accounts_show_project(struct request *request);
void accounts_show_user(struct request *request);
void accounts_put_project(struct request *request);
void accounts_put_user(struct request *request);
void accounts_unset_project(struct request *request);
void accounts_unset_user(struct request *request);
void pools_list(struct request *request);
void pools_put(struct request *request);

/* joins.c */
void joins_authority(struct request *request);
void joins_make(struct request *request);
void joins_join(struct request *request);

/* tokens.c */
void tokens_list(struct request *request);
void tokens_make(struct request *request);
void tokens_revoke(struct request *request);

/* backups.c */
void backups_list(struct request *request);
void backups_make(struct request *request);

/* lost.c */
void lost_tell(struct request *request);
void lost_list(struct request *request);

/* agents.c */
void agents_register(struct request *request);
void agents_heartbeat(struct request *request);
void agents_poll(struct request *request);
void agents_report(struct request *request);
void agents_staging(struct request *request);

#endif
