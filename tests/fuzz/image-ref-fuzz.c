/* SPDX-License-Identifier: Apache-2.0 */

/* Any text is a name of an image or is refused; a name's full form means itself, and what is
 * dialled and asked for consists of harmless characters only. */

#include "fuzz.h"

#include "lib/image/image.h"

#include <stdlib.h>
#include <string.h>

static void check_chars(const char *text, const char *more)
{
    for (const char *p = text; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              strchr(more, *p)))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO_ARENA struct arena mem = ARENA(1 << 20);
    struct image_ref ref = {0}, again = {0};
    struct err err = {0};
    const char *name;

    if (image_ref_parse(&mem, (struct str){(const char *)bytes, n}, &ref, &err) < 0) {
        if (!err.text[0] || ref.registry)
            abort();
        return 0;
    }
    check_chars(ref.registry, ".-:[]");
    check_chars(ref.repository, "._-/");
    if (ref.tag)
        check_chars(ref.tag, "._-");
    if (strstr(ref.repository, "..") || strstr(ref.repository, "//") || ref.repository[0] == '/')
        abort();
    name = image_ref_name(&mem, &ref);
    if (image_ref_parse(&mem, str_of(name), &again, &err) < 0 ||
        strcmp(image_ref_name(&mem, &again), name) != 0)
        abort();
    (void)image_ref_is_local(&ref);
    return 0;
}
