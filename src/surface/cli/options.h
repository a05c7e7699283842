/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the tables of options and commands share. */

#define ANY_NUMBER SIZE_MAX
#define PROVIDERS "local mock" /* worth completing */

#define OPTION_JSON                                                                                \
    {                                                                                              \
        .name = "--json", .help = "print one JSON object instead of text"                          \
    }
#define OPTIONS_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }
