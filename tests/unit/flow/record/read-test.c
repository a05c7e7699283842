/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "fixture.h"
#include "lib/base/limits.h"

static int count_receipt(void *context, const struct json *receipt, struct err *err)
{
    char *seqs = context;

    (void)err;
    (void)strcat(strcat(seqs, fixture_member(receipt, "/seq")), " ");
    return 0;
}

TEST(receipts_are_listed_newest_first_in_pages)
{
    AUTO(record) struct record *record = NULL;
    struct run run;
    struct err err;

    fixture_begin();
    fixture_fill(2);
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    {
        const struct {
            struct record_query query;
            const char *seqs;
        } cases[] = {
            {{0, 0, NULL},     "5 4 3 2 1 "},
            {{0, 2, NULL},     "5 4 "      },
            {{4, 2, NULL},     "3 2 "      },
            {{1, 2, NULL},     ""          },
            {{0, 0, run.id},   "5 "        },
            {{0, 0, "nobody"}, ""          },
        };

        for (size_t i = 0; i < COUNT(cases); i++) {
            char seqs[64] = "";

            CHECK_INT(record_list(record, &cases[i].query, count_receipt, seqs, &err), 0);
            CHECK_TEXT(seqs, cases[i].seqs);
        }
    }
    run_done(&run);
    fixture_end();
}

TEST(a_receipt_is_found_by_number_id_or_its_beginning)
{
    AUTO(record) struct record *record = NULL;
    AUTO_ARENA struct arena mem = ARENA(MIB);
    struct run run;
    char beginning[13];
    struct err err;

    fixture_begin();
    fixture_fill(40);
    record = fixture_open();
    fixture_run(&run);
    CHECK_INT(record_intent(record, &run, &err), 0);
    (void)snprintf(beginning, sizeof beginning, "%.12s", run.intent.id);
    {
        const struct {
            const char *name;
            enum err_code code; /* when text */
            const char *text;   /* NULL: found */
        } cases[] = {
            {run.intent.id,          ERR_OS,        NULL                             },
            {"81",                   ERR_OS,        NULL                             },
            {beginning,              ERR_OS,        NULL                             },
            {"82",                   ERR_NOT_FOUND,
             "there is no receipt \"82\"; \"brig receipts list\" shows what there is"},
            {"zzzzzzzzzzzzzzzzzzzz", ERR_NOT_FOUND,
             "there is no receipt \"zzzzzzzzzzzzzzzzzzzz\"; \"brig receipts list\" shows what there "
             "is"                                                                    },
            {"a%",                   ERR_INVALID,
             "not a receipt: a number, or up to 20 of the letters a-z and digits that \"brig "
             "receipts list\" shows"                                                 },
            {"",                     ERR_INVALID,
             "not a receipt: a number, or up to 20 of the letters a-z and digits that \"brig "
             "receipts list\" shows"                                                 },
        };

        for (size_t i = 0; i < COUNT(cases); i++) {
            const struct json *json = NULL;
            bool found = cases[i].text == NULL;

            CHECK_INT(record_show(record, &mem, cases[i].name, &json, &err), found ? 0 : -1);
            if (found) {
                CHECK_TEXT(fixture_member(json, "/receipt_id"), run.intent.id);
            } else {
                CHECK_INT(err.code, cases[i].code);
                CHECK_TEXT(err.text, cases[i].text);
            }
        }
    }
    run_done(&run);
    fixture_end();
}

TEST(an_ambiguous_beginning_is_refused)
{
    AUTO(record) struct record *record = NULL;
    AUTO_ARENA struct arena mem = ARENA(MIB);
    const struct json *json = NULL;
    struct err err;

    fixture_begin();
    fixture_fill(1);
    fixture_sql("UPDATE receipts SET receipt_id = 'same' || seq");
    record = fixture_open();
    CHECK_INT(record_show(record, &mem, "same", &json, &err), -1);
    CHECK_TEXT(err.text, "several receipts begin with \"same\"; write more of the id");
    fixture_end();
}
