/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "lib/base/io.h"
#include "lib/base/limits.h"

#define LINES_MAX 16

/* An exported ledger of six entries as lines one can rearrange. */
struct lines {
    struct buf text;
    struct str of[LINES_MAX];
    size_t n;
};

static struct record_trust trust = {.why = "the test says so"};

static void export_lines(struct lines *out)
{
    AUTO(record) struct record *record = fixture_open();
    AUTO_FD int fd = open(fixture_path("export"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint64_t count = 0;
    struct str rest;
    struct err err;

    *out = (struct lines){.text = BUF(MIB)};
    CHECK_INT(record_export(record, fd, &count, &err), 0);
    CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
    CHECK_INT(read_all(fd, &out->text, &err), 0);
    for (rest = buf_str(&out->text); rest.n; out->n++)
        out->of[out->n] = str_cut(&rest, '\n');
    CHECK_INT(count, out->n);
    CHECK_INT(record_own_key(fixture_dir(), &trust.key, &err), 0);
}

static void verify_text(struct str text, const struct record_head *head, bool part,
                        struct record_report *out)
{
    AUTO_FD int fd = open(fixture_path("changed"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct record_check check = {&trust, head, part};
    struct err err;

    CHECK_INT(write_all(fd, text.p, text.n, &err), 0);
    CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
    CHECK_INT(record_verify_fd(fd, &check, out, &err), 0);
}

/* The lines in this order ("1 2 2 3"), each with its newline. */
static void arrange(const struct lines *lines, const char *order, struct buf *out)
{
    struct str rest = str_of(order);
    struct err err;

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');
        uint64_t line = 0;

        CHECK(str_u64(word, &line) && line >= 1 && line <= lines->n);
        CHECK_INT(buf_add_str(out, lines->of[line - 1], &err), 0);
        CHECK_INT(buf_add_byte(out, '\n', &err), 0);
    }
}

static void check_fault(const struct record_report *r, enum record_fault fault, uint64_t seq,
                        const char *text)
{
    CHECK_TEXT(record_fault_name(r->fault), record_fault_name(fault));
    CHECK_INT(r->fault_seq, seq);
    if (!strstr(r->fault_text, text))
        test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", text, r->fault_text);
}

TEST(an_untouched_export_is_intact_and_not_proven_complete)
{
    struct lines lines;
    struct record_report r;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    CHECK_INT(lines.n, 6);
    verify_text(buf_str(&lines.text), NULL, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_INTACT);
    CHECK_INT(r.completeness, COMPLETENESS_NOT_PROVEN);
    CHECK_INT(r.fault, FAULT_NONE);
    CHECK_INT(r.entries, 6);
    CHECK_INT(r.last_seq, 6);
    CHECK_INT(r.open_runs, 0);
    CHECK_TEXT(r.key_why, "the test says so");
    CHECK_TEXT(record_completeness_name(r.completeness), "not proven");
    verify_text((struct str){lines.text.p, lines.text.n - 1}, NULL, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_INTACT); /* the last newline does not matter */
    verify_text(STR_LIT(""), NULL, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_INTACT);
    CHECK_INT(r.entries, 0);
    buf_done(&lines.text);
    fixture_end();
}

TEST(lines_out_of_their_place_are_named)
{
    static const struct {
        const char *order;
        enum record_fault fault;
        uint64_t seq;
        uint64_t line;
        const char *text;
    } cases[] = {
        {"2 3 4 5 6",     FAULT_MISSING,    1, 1, "entry 1 is missing: entry 2 ("             },
        {"1 2 4 5 6",     FAULT_MISSING,    3, 3, "entry 3 is missing: entry 4 ("             },
        {"1 2 3 6",       FAULT_MISSING,    4, 4, "entry 4 is missing: entry 6 ("             },
        {"1 2 2 3 4 5 6", FAULT_DUPLICATED, 2, 3, "stands again behind entry 2"               },
        {"1 2 3 4 5 6 1", FAULT_DUPLICATED, 1, 7, "stands again behind entry 6"               },
        {"1 2 4 3 5 6",   FAULT_MOVED,      3, 3, "is moved: it does not stand behind entry 2"},
        {"1 3 4 5 6 2",   FAULT_MOVED,      2, 2, "is moved: it does not stand behind entry 1"},
        {"6 1 2 3 4 5",   FAULT_MOVED,      1, 1, "is moved"                                  },
    };
    struct lines lines;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf text = BUF(MIB);
        struct record_report r;

        arrange(&lines, cases[i].order, &text);
        verify_text(buf_str(&text), NULL, false, &r);
        CHECK_INT(r.integrity, INTEGRITY_TAMPERED);
        check_fault(&r, cases[i].fault, cases[i].seq, cases[i].text);
        CHECK_INT(r.fault_line, cases[i].line);
    }
    buf_done(&lines.text);
    fixture_end();
}

/* Replaces the first "from" in line 4 by "to". */
static void change_line_4(const struct lines *lines, const char *from, const char *to,
                          struct buf *out)
{
    const char *start = lines->of[3].p;
    const char *at = memmem(start, lines->of[3].n, from, strlen(from));
    const char *end = lines->text.p + lines->text.n;
    struct err err;

    CHECK(at != NULL);
    if (!at)
        return;
    CHECK_INT(buf_add(out, lines->text.p, (size_t)(at - lines->text.p), &err), 0);
    CHECK_INT(buf_add_text(out, to, &err), 0);
    at += strlen(from);
    CHECK_INT(buf_add(out, at, (size_t)(end - at), &err), 0);
}

TEST(a_changed_line_is_named)
{
    static const struct {
        const char *from;
        const char *to;
        const char *text;
    } cases[] = {
        {"\"exit_code\":0",         "\"exit_code\":1",                          "its content does not match its hash"         },
        {"\"status\":\"APPROVED\"", "\"status\":\"DENIED\"",                    "its content does not match its hash"         },
        {"\"seq\":4",               "\"seq\":5",                                "its content does not match its hash"         },
        {"\"prev_hash\":\"sha256:", "\"prev_hash\":\"sha512:",
         "member \"prev_hash\" is missing or of the wrong form"                                                               },
        {"\"hash\":\"sha256:",      "\"hash\":\"sha256:0",
         "member \"hash\" is missing or of the wrong form"                                                                    },
        {"\"signature\":\"",        "\"signature\":\"0",
         "member \"signature\" is missing or of the wrong form"                                                               },
        {"\"v\":1,",                "\"v\":2,",                                 "member \"v\" is missing or of the wrong form"},
        {"\"kind\":\"outcome\"",    "\"kind\":\"outcome\",\"note\":\"x\"",
         "its content does not match its hash"                                                                                },
        {"\"kind\":\"outcome\"",    "\"kind\":\"outcome\",\"kind\":\"intent\"", "kind"                                        },
        {"{",                       "",                                         ""                                            },
        {"{",                       "[{",                                       ""                                            },
        {"{",                       "\n{",                                      "the text ends"                               },
        {"\"receipt_id\":\"",       "\"receipt_id\":\"\\u001b[2J",
         "member \"receipt_id\" is missing or of the wrong form"                                                              },
    };
    struct lines lines;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf text = BUF(MIB);
        struct record_report r;

        change_line_4(&lines, cases[i].from, cases[i].to, &text);
        verify_text(buf_str(&text), NULL, false, &r);
        CHECK_INT(r.integrity, INTEGRITY_TAMPERED);
        check_fault(&r, FAULT_CHANGED, 4, cases[i].text);
        CHECK_INT(r.fault_line, 4);
        CHECK_INT(r.entries, 3);
        CHECK(strchr(r.fault_text, '\x1b') == NULL);
    }
    buf_done(&lines.text);
    fixture_end();
}

/* Blanks and the order of members are not what was signed. */
TEST(the_layout_of_a_line_does_not_matter)
{
    AUTO_BUF struct buf text = BUF(MIB);
    struct lines lines;
    struct record_report r;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    change_line_4(&lines, "{", "  {  ", &text);
    verify_text(buf_str(&text), NULL, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_INTACT);
    buf_done(&lines.text);
    fixture_end();
}

TEST(every_bit_of_a_signature_and_a_body_counts)
{
    struct lines lines;

    fixture_begin();
    fixture_fill(1);
    export_lines(&lines);
    for (size_t at = 0; at < lines.of[0].n; at += 3) {
        struct record_report r;
        char kept = lines.text.p[at];

        lines.text.p[at] = (char)(kept ^ 1);
        verify_text(buf_str(&lines.text), NULL, false, &r);
        lines.text.p[at] = kept;
        if (r.integrity != INTEGRITY_TAMPERED || r.fault_seq != 1)
            test_fail(__FILE__, __LINE__, "byte %zu may be changed", at);
    }
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_torn_tail_is_told_from_tampering)
{
    struct lines lines;
    size_t start;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    start = (size_t)(lines.of[5].p - lines.text.p);
    for (size_t n = start + 1; n < start + lines.of[5].n; n++) {
        struct record_report r;

        verify_text((struct str){lines.text.p, n}, NULL, false, &r);
        if (r.integrity != INTEGRITY_TORN || r.fault != FAULT_TORN || r.fault_seq != 6 ||
            r.entries != 5)
            test_fail(__FILE__, __LINE__, "cut after %zu bytes of the line: %s", n - start,
                      r.fault_text);
    }
    buf_done(&lines.text);
    fixture_end();
}

TEST(what_only_looks_torn_is_tampering)
{
    AUTO_BUF struct buf text = BUF(MIB);
    struct lines lines;
    struct record_report r;
    struct err err;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    /* in the middle of the file */
    arrange(&lines, "1 2", &text);
    CHECK_INT(buf_add(&text, lines.of[2].p, 100, &err), 0);
    CHECK_INT(buf_add_byte(&text, '\n', &err), 0);
    arrange(&lines, "4 5 6", &text);
    verify_text(buf_str(&text), NULL, false, &r);
    check_fault(&r, FAULT_CHANGED, 3, "");
    /* at the end, but with its newline */
    buf_clear(&text);
    arrange(&lines, "1 2", &text);
    CHECK_INT(buf_add(&text, lines.of[2].p, 100, &err), 0);
    CHECK_INT(buf_add_byte(&text, '\n', &err), 0);
    verify_text(buf_str(&text), NULL, false, &r);
    check_fault(&r, FAULT_CHANGED, 3, "");
    /* at the end, not JSON from the start */
    buf_clear(&text);
    arrange(&lines, "1 2", &text);
    CHECK_INT(buf_add_text(&text, "these bytes were never part of a receipt", &err), 0);
    verify_text(buf_str(&text), NULL, false, &r);
    check_fault(&r, FAULT_CHANGED, 3, "");
    /* complete, but changed */
    buf_clear(&text);
    change_line_4(&lines, "\"exit_code\":0", "\"exit_code\":1", &text);
    text.n = (size_t)(lines.of[4].p - lines.text.p) - 1;
    verify_text(buf_str(&text), NULL, false, &r);
    check_fault(&r, FAULT_CHANGED, 4, "its content does not match its hash");
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_line_without_end_is_bounded)
{
    AUTO_BUF struct buf text = BUF(MIB);
    struct record_report r;
    struct lines lines;
    struct err err;

    fixture_begin();
    fixture_fill(1);
    export_lines(&lines);
    for (size_t i = 0; i < 50000; i++)
        CHECK_INT(buf_add_text(&text, "[[[[[[[[[[[", &err), 0);
    verify_text(buf_str(&text), NULL, false, &r);
    check_fault(&r, FAULT_CHANGED, 1, "the line is longer than any receipt");
    buf_done(&lines.text);
    fixture_end();
}

static void make_head(struct record_head *out)
{
    AUTO(record) struct record *record = fixture_open();
    AUTO_BUF struct buf text = BUF(KIB);
    struct err err;

    CHECK_INT(record_own_key(fixture_dir(), &trust.key, &err), 0);
    CHECK_INT(record_head(record, &text, &err), 0);
    CHECK_INT(record_head_read(buf_str(&text), &trust, out, &err), 0);
}

TEST(a_head_proves_that_nothing_was_cut_off)
{
    struct record_head empty;
    struct record_head middle;
    struct record_head end;
    struct lines lines;

    fixture_begin();
    make_head(&empty);
    CHECK_INT(empty.seq, 0);
    fixture_fill(2);
    make_head(&middle);
    CHECK_INT(middle.seq, 4);
    fixture_fill(1);
    make_head(&end);
    export_lines(&lines);
    {
        const struct {
            const char *order;
            const struct record_head *head;
            enum record_completeness completeness;
            uint64_t seq;
            const char *text;
        } cases[] = {
            {"1 2 3 4 5 6", &end,    COMPLETENESS_PROVEN,     0, ""                           },
            {"1 2 3 4 5 6", &middle, COMPLETENESS_PROVEN,     0, ""                           },
            {"1 2 3 4 5 6", &empty,  COMPLETENESS_PROVEN,     0, ""                           },
            {"1 2 3 4",     &middle, COMPLETENESS_PROVEN,     0, ""                           },
            {"1 2 3 4",     &end,    COMPLETENESS_TRUNCATED,  5,
             "entry 5 is missing: the chain ends with entry 4, but the head signed at "       },
            {"1 2 3",       &middle, COMPLETENESS_TRUNCATED,  4, "names entry 4"              },
            {"",            &end,    COMPLETENESS_TRUNCATED,  1, "the chain ends with entry 0"},
            {"1 2 3",       NULL,    COMPLETENESS_NOT_PROVEN, 0, ""                           },
        };

        for (size_t i = 0; i < COUNT(cases); i++) {
            AUTO_BUF struct buf text = BUF(MIB);
            struct record_report r;

            arrange(&lines, cases[i].order, &text);
            verify_text(buf_str(&text), cases[i].head, false, &r);
            CHECK_INT(r.integrity, INTEGRITY_INTACT);
            CHECK_INT(r.completeness, cases[i].completeness);
            check_fault(&r, cases[i].seq ? FAULT_TRUNCATED : FAULT_NONE, cases[i].seq,
                        cases[i].text);
        }
    }
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_torn_tail_before_the_head_is_also_truncation)
{
    struct record_head end;
    struct lines lines;
    struct record_report r;

    fixture_begin();
    fixture_fill(3);
    make_head(&end);
    export_lines(&lines);
    verify_text((struct str){lines.text.p, lines.text.n - 20}, &end, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_TORN);
    CHECK_INT(r.completeness, COMPLETENESS_TRUNCATED);
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_head_of_another_history_is_noticed)
{
    struct record_head head;
    struct lines lines;
    struct record_report r;

    fixture_begin();
    fixture_fill(3);
    make_head(&head);
    head.hash[70] = head.hash[70] == '0' ? '1' : '0';
    export_lines(&lines);
    verify_text(buf_str(&lines.text), &head, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_TAMPERED);
    check_fault(&r, FAULT_CHANGED, 6, "the signed head names another entry with this number");
    CHECK_INT(r.completeness, COMPLETENESS_NOT_PROVEN);
    buf_done(&lines.text);
    fixture_end();
}

static void check_head_refused(struct str text, enum err_code code, const char *part)
{
    struct record_head head = {.seq = 77};
    struct err err;

    CHECK_INT(record_head_read(text, &trust, &head, &err), -1);
    CHECK_INT(err.code, code);
    if (!strstr(err.text, part))
        test_fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", part, err.text);
    CHECK_INT(head.seq, 77);
}

TEST(only_a_genuine_head_is_believed)
{
    AUTO(record) struct record *record = NULL;
    AUTO_BUF struct buf text = BUF(KIB);
    struct lines lines;
    char *at;
    struct err err;

    fixture_begin();
    fixture_fill(1);
    export_lines(&lines);
    record = fixture_open();
    CHECK_INT(record_head(record, &text, &err), 0);
    check_head_refused(lines.of[0], ERR_INVALID, "not a signed head");
    check_head_refused(STR_LIT("{}"), ERR_INVALID, "member \"v\"");
    check_head_refused(STR_LIT("nonsense"), ERR_INVALID, "");
    at = strstr(text.p, "\"seq\":2");
    CHECK(at != NULL);
    at[6] = '1';
    check_head_refused(buf_str(&text), ERR_INTEGRITY, "its content does not match its hash");
    at[6] = '2';
    trust.key.b[0] ^= 1;
    check_head_refused(buf_str(&text), ERR_INTEGRITY, "not by the trusted key");
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_receipt_of_another_key_is_named)
{
    struct lines lines;
    struct record_report r;

    fixture_begin();
    fixture_fill(1);
    export_lines(&lines);
    trust.key.b[0] ^= 1;
    verify_text(buf_str(&lines.text), NULL, false, &r);
    CHECK_INT(r.integrity, INTEGRITY_TAMPERED);
    check_fault(&r, FAULT_FOREIGN, 1, "another key than the trusted one signed it");
    buf_done(&lines.text);
    fixture_end();
}

TEST(a_piece_of_a_chain_is_checked_when_asked_for)
{
    static const struct {
        const char *order;
        enum record_fault fault;
        uint64_t seq;
    } cases[] = {
        {"3 4 5", FAULT_NONE,       0},
        {"4",     FAULT_NONE,       0},
        {"3 5",   FAULT_MISSING,    4},
        {"4 3",   FAULT_DUPLICATED, 3},
    };
    struct lines lines;

    fixture_begin();
    fixture_fill(3);
    export_lines(&lines);
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUF struct buf text = BUF(MIB);
        struct record_report r;

        arrange(&lines, cases[i].order, &text);
        verify_text(buf_str(&text), NULL, true, &r);
        check_fault(&r, cases[i].fault, cases[i].seq, "");
    }
    buf_done(&lines.text);
    fixture_end();
}

TEST(what_an_editor_did_to_the_ledger_is_named)
{
    static const struct {
        const char *sql;
        enum record_fault fault;
        uint64_t seq;
        const char *text;
    } cases[] = {
        {"SELECT 1",                                                                            FAULT_NONE,       0, ""                                   },
        {"UPDATE receipts SET body = replace(body, 'APPROVED', 'DENIED') WHERE seq = 3",
         FAULT_CHANGED,                                                                                           3, "its content does not match its hash"},
        {"UPDATE receipts SET signature = zeroblob(64) WHERE seq = 2",                          FAULT_CHANGED,    2,
         "its signature does not hold"                                                                                                                    },
        {"UPDATE receipts SET signature = (SELECT signature FROM receipts WHERE seq = 1)"
         " WHERE seq = 2",                                                             FAULT_CHANGED,    2, "its signature does not hold"        },
        {"UPDATE receipts SET hash = zeroblob(31) WHERE seq = 2",                               FAULT_CHANGED,    2,
         "entry 2 of the ledger is damaged"                                                                                                               },
        {"UPDATE receipts SET body = 'x' WHERE seq = 5",                                        FAULT_CHANGED,    5,
         "entry 5 of the ledger is damaged"                                                                                                               },
        {"UPDATE receipts SET kind = 'denial' WHERE seq = 5",                                   FAULT_CHANGED,    5,
         "the columns it is found by do not say what its content says"                                                                                    },
        {"UPDATE receipts SET run_id = 'other', role = 7 WHERE seq = 5",                        FAULT_CHANGED,    5,
         "the columns it is found by"                                                                                                                     },
        {"UPDATE receipts SET receipt_id = 'other' WHERE seq = 5",                              FAULT_CHANGED,    5,
         "the columns it is found by"                                                                                                                     },
        {"DELETE FROM receipts WHERE seq = 3",                                                  FAULT_MISSING,    3, "entry 3 is missing"                 },
        {"DELETE FROM receipts WHERE seq = 1",                                                  FAULT_MISSING,    1, "entry 1 is missing"                 },
        {"DELETE FROM receipts WHERE seq = 6",                                                  FAULT_NONE,       0, ""                                   },
        {"DELETE FROM receipts WHERE seq = 3; UPDATE receipts SET seq = seq - 1 WHERE seq > 3",
         FAULT_MISSING,                                                                                           3, "entry 3 is missing"                 },
        {"UPDATE receipts SET seq = 100 WHERE seq = 3; UPDATE receipts SET seq = 3 WHERE seq = 4;"
         "UPDATE receipts SET seq = 4 WHERE seq = 100",                                FAULT_MOVED,      3, "is moved"                           },
        {"INSERT INTO receipts SELECT 7, 'copy', NULL, NULL, kind, body, hash, signature FROM"
         " receipts WHERE seq = 2",                                                    FAULT_DUPLICATED, 2, "is duplicated"                      },
        {"INSERT INTO receipts SELECT -1, 'copy', NULL, NULL, kind, body, hash, signature FROM"
         " receipts WHERE seq = 2",                                                    FAULT_MOVED,      1, "is moved"                           },
    };

    fixture_begin();
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct record_report r;

        fixture_fill(3);
        fixture_sql(cases[i].sql);
        fixture_verify(&r);
        CHECK_INT(r.integrity, cases[i].fault ? INTEGRITY_TAMPERED : INTEGRITY_INTACT);
        check_fault(&r, cases[i].fault, cases[i].seq, cases[i].text);
        if (r.fault != cases[i].fault)
            test_fail(__FILE__, __LINE__, "%s", cases[i].sql);
        fixture_sql("DELETE FROM receipts");
    }
    fixture_end();
}
