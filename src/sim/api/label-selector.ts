import {
  type LabelRequirement,
  type LabelSelector,
  type Labels,
  meetsRequirement,
} from "../../core/cluster/label-selector.ts";
import { badRequest } from "./api-refusal.ts";

export type LabelMatcher = (labels: Labels | undefined) => boolean;

const key = "[A-Za-z0-9][-A-Za-z0-9_./]*";
const setBased = new RegExp(`^(${key})\\s+(in|notin)\\s+\\(([^()]*)\\)$`);
const equality = new RegExp(`^(${key})\\s*(==|=|!=|>|<)\\s*([-A-Za-z0-9_.]*)$`);
const presence = new RegExp(`^(!?)\\s*(${key})$`);
const noLabels: Labels = Object.freeze({});

/**
 * Reads the `labelSelector` query parameter, such as `a=b,c in (x,y),!d`; throws the refusal 400
 * for anything else. Source: k8s.io/apimachinery `pkg/labels/selector.go`.
 */
export function parseLabelSelector(text: string): LabelMatcher {
  const requirements = splitOutsideParentheses(text).map(parseRequirement);
  return matcherOf(requirements);
}

/** A LabelSelector of an object; `{}` selects everything. */
export function labelMatcher(selector: LabelSelector): LabelMatcher {
  const equal = Object.entries(selector.matchLabels ?? {}).map(([label, value]) => ({
    key: label,
    operator: "In" as const,
    values: [value],
  }));
  return matcherOf([...equal, ...(selector.matchExpressions ?? [])]);
}

function matcherOf(requirements: readonly LabelRequirement[]): LabelMatcher {
  return (labels = noLabels) => requirements.every((one) => meetsRequirement(labels, one));
}

const operators = { "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt" } as const;

function parseRequirement(text: string): LabelRequirement {
  const set = setBased.exec(text);
  if (set) {
    const values = (set[3] ?? "").split(",").map((value) => value.trim());
    return { key: set[1] ?? "", operator: set[2] === "in" ? "In" : "NotIn", values };
  }
  const equal = equality.exec(text);
  if (equal) {
    const operator = operators[equal[2] as keyof typeof operators];
    return { key: equal[1] ?? "", operator, values: [equal[3] ?? ""] };
  }
  const present = presence.exec(text);
  if (!present) throw badRequest(`unable to parse requirement: ${text}`);
  return { key: present[2] ?? "", operator: present[1] ? "DoesNotExist" : "Exists", values: [] };
}

function splitOutsideParentheses(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}
