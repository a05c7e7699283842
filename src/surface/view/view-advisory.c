/* SPDX-License-Identifier: Apache-2.0 */

/* What was classified, as everybody is told. */

#include "surface/view/view.h"

#include "lib/advisory/advisory.h"
#include "lib/json/json.h"

static struct json *span_json(struct arena *mem, struct advisory_span span)
{
    struct json *object = json_object(mem);

    json_put_int(mem, object, "start", (int64_t)span.start);
    json_put_int(mem, object, "end", (int64_t)span.end);
    return object;
}

struct json *view_advisory_finding(struct arena *mem, const struct advisory_finding *finding)
{
    struct json *object = json_object(mem);

    json_put_text(mem, object, "category", advisory_category_name(finding->category));
    json_put_text(mem, object, "rule", finding->rule);
    json_put_text(mem, object, "verdict", advisory_verdict_name(finding->verdict));
    json_put_text(mem, object, "drift", advisory_drift_code(finding->drift));
    json_put_text(mem, object, "severity", advisory_drift_severity(finding->drift));
    json_put(object, "span", span_json(mem, finding->span));
    json_put_text(mem, object, "where", finding->where);
    json_put(object, "excerpt", json_text(mem, finding->excerpt));
    return object;
}

static struct json *categories_json(struct arena *mem, const struct advisory_result *result)
{
    struct json *list = json_array(mem);

    for (enum advisory_category c = 0; c < ADVISORY_CATEGORY_COUNT; c++)
        if (result->counts[c])
            json_push(list, json_text(mem, str_of(advisory_category_name(c))));
    return list;
}

static struct json *position_json(struct arena *mem, const struct advisory_result *result)
{
    struct json *object = json_object(mem);

    json_put_int(mem, object, "line", result->where.line);
    json_put_int(mem, object, "column", result->where.column);
    json_put_int(mem, object, "byte", (int64_t)result->offset);
    return object;
}

struct json *view_advisory(struct arena *mem, const struct advisory_result *result)
{
    struct json *object = json_object(mem), *findings = json_array(mem);

    for (size_t i = 0; i < result->finding_n; i++)
        json_push(findings, view_advisory_finding(mem, &result->findings[i]));
    json_put_text(mem, object, "kind", advisory_kind_name(result->kind));
    json_put_text(mem, object, "verdict", advisory_verdict_name(result->verdict));
    json_put_int(mem, object, "exit_code", advisory_exit(result));
    json_put(object, "category", categories_json(mem, result));
    json_put_text(mem, object, "rule", result->rule);
    json_put(object, "span", span_json(mem, result->span));
    json_put_bytes(mem, object, "normalized", result->normalized);
    json_put(object, "advisory_text", json_text(mem, result->advisory_text));
    json_put_bool(mem, object, "confusable", result->is_confusable);
    json_put_text(mem, object, "drift", advisory_drift_code(result->drift));
    json_put_text(mem, object, "severity", advisory_drift_severity(result->drift));
    json_put(object, "findings", findings);
    json_put_int(mem, object, "unlisted", (int64_t)result->unlisted);
    json_put_bool(mem, object, "valid", result->is_valid);
    if (!result->is_valid) {
        json_put_bytes(mem, object, "fault", str_of(result->fault));
        json_put(object, "position", position_json(mem, result));
    }
    if (result->kind == ADVISORY_OUTPUT) {
        json_put_int(mem, object, "compliance", result->compliance);
        json_put_int(mem, object, "drift_thousandths", result->drift_thousands);
        json_put(object, "client_view", json_text(mem, result->client_view));
    }
    return object;
}
