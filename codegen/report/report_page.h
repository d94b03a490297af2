/* A page for a browser: all reports as one JSON object, with the texts of the stages and what each
 * pass changed, in one file that loads nothing (docs/inspector.md). */
#ifndef CODEGEN_REPORT_PAGE_H
#define CODEGEN_REPORT_PAGE_H

#include "codegen/report/report.h"

/* The text of a stage of the compilation, as the page shows it. */
typedef struct {
    const char *kind, *title; /* "ir", "graph IR"; NULL text: the title says why there is none */
    const char *text;
    size_t n; /* bytes of text */
} PageText;

/* Prints the page of plan p to b. o: options of the reports; the page has all of them, so `kinds`
 * and `json` are ignored. */
void report_page(StrBuf *b, Ctx *c, const Plan *p, const ReportOptions *o, const PageText *text,
                 int n_texts);

#endif
