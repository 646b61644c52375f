import { type Fields, fieldsOf } from "../../../core/json/json-field.ts";
import { invalid } from "../api-refusal.ts";
import type { ResourceType } from "../resource-registry.ts";

const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const longestValue = 63;

/**
 * Refuses labels as the API server does. Source: apimachinery `pkg/apis/meta/v1/validation`,
 * ValidateLabels.
 */
export function checkLabels(metadata: Fields, of: { type: ResourceType; name: string }): void {
  for (const value of Object.values(fieldsOf(metadata.labels))) {
    if (typeof value !== "string") continue;
    if (value.length <= longestValue && labelValue.test(value)) continue;
    const why =
      value.length > longestValue
        ? `must be no more than ${longestValue} characters`
        : "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    const message = `Invalid value: ${JSON.stringify(value)}: ${why}`;
    throw invalid(of, [{ reason: "FieldValueInvalid", message, field: "metadata.labels" }]);
  }
}
