/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page, client/web, as they were when the program was built. */
#ifndef HTTP_WEB_H
#define HTTP_WEB_H

#include <stddef.h>

/* X(C name, file, content type). daemon/meson.build has the same list; the first is the page itself. */
#define WEB_FILES(X)                                                                                         \
    X(index_html, "index.html", "text/html; charset=utf-8")                                                  \
    X(icon_svg, "icon.svg", "image/svg+xml")                                                                 \
    X(page_css, "page.css", "text/css; charset=utf-8")                                                       \
    X(api_js, "api.js", "text/javascript; charset=utf-8")                                                    \
    X(artifacts_js, "artifacts.js", "text/javascript; charset=utf-8")                                        \
    X(chart_js, "chart.js", "text/javascript; charset=utf-8")                                                \
    X(dom_js, "dom.js", "text/javascript; charset=utf-8")                                                    \
    X(experiments_js, "experiments.js", "text/javascript; charset=utf-8")                                    \
    X(job_js, "job.js", "text/javascript; charset=utf-8")                                                    \
    X(main_js, "main.js", "text/javascript; charset=utf-8")                                                  \
    X(metrics_js, "metrics.js", "text/javascript; charset=utf-8")                                            \
    X(run_js, "run.js", "text/javascript; charset=utf-8")                                                    \
    X(runs_js, "runs.js", "text/javascript; charset=utf-8")                                                  \
    X(session_js, "session.js", "text/javascript; charset=utf-8")                                            \
    X(sign_in_js, "sign_in.js", "text/javascript; charset=utf-8")                                            \
    X(words_js, "words.js", "text/javascript; charset=utf-8")

#define WEB_FILE(name, file, type)                                                                           \
    extern const unsigned char web_##name[];                                                                 \
    extern const size_t web_##name##_length;
WEB_FILES(WEB_FILE)
#undef WEB_FILE

#endif
