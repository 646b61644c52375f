/**
 * The one notation in which a resource's fields are written down. From it come the CRD, the JSON
 * schema for editors, the reference tables and the local validation, so that they cannot differ.
 * It is the part of OpenAPI v3 that a structural CRD schema may hold, with the rules that reach
 * over several fields beside it: once in CEL for the API server, once as a function for us.
 */
export type FieldSchema =
  | ObjectField
  | MapField
  | ListField
  | StringField
  | NumberField
  | BooleanField
  | AmountField;

interface FieldBase {
  /** One or two sentences for the CRD, the editor and the reference table. */
  readonly description: string;
  /** How a refusal names what belongs here, such as `a duration such as 12h30m`. */
  readonly wanted?: string | undefined;
  readonly rules?: readonly SchemaRule[] | undefined;
}

export interface ObjectField extends FieldBase {
  readonly type: "object";
  readonly properties: Readonly<Record<string, FieldSchema>>;
  readonly required?: readonly string[] | undefined;
  /** `{}` lets the defaults of the fields inside take effect where the object is not written. */
  readonly default?: Readonly<Record<string, never>> | undefined;
  /** Fields that are not listed are kept and not judged. */
  readonly open?: true | undefined;
}

/** Names chosen by the writer, with strings as values: `matchLabels`. */
export interface MapField extends FieldBase {
  readonly type: "map";
  readonly keyPattern: string;
  readonly keyMaxLength: number;
  readonly values: StringField;
  readonly maxProperties: number;
}

export interface ListField extends FieldBase {
  readonly type: "list";
  readonly items: FieldSchema;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly default?: readonly never[] | undefined;
  /** Refuses an item that is there twice; for lists of strings. */
  readonly unique?: true | undefined;
  /** The field that tells the items apart when several writers merge their parts. */
  readonly mapKey?: string | undefined;
}

export interface StringField extends FieldBase {
  readonly type: "string";
  readonly default?: string | undefined;
  readonly enum?: readonly string[] | undefined;
  readonly pattern?: string | undefined;
  readonly format?: "date-time" | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
}

export interface NumberField extends FieldBase {
  readonly type: "integer" | "number";
  readonly default?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly nullable?: true | undefined;
}

export interface BooleanField extends FieldBase {
  readonly type: "boolean";
  readonly default?: boolean | undefined;
}

/** A count such as `2` or a share such as `10%`. */
export interface AmountField extends FieldBase {
  readonly type: "amount";
  readonly pattern: string;
  readonly minimum: number;
}

/** What must hold inside one value, or between its fields. */
export interface SchemaRule {
  /**
   * The rule as the API server checks it; absent where CEL cannot know it, then `localOnly` says
   * why.
   */
  readonly cel?: string | undefined;
  readonly localOnly?: string | undefined;
  /** The field under the value that is to blame; absent: the value itself. */
  readonly at?: string | undefined;
  readonly wanted: string;
  /** The same rule for us; absent for rules that compare with the former object (`oldSelf`). */
  readonly holds?: ((value: unknown, world: RuleWorld) => boolean) | undefined;
  /** What was found, where it is not simply the value to blame. */
  readonly found?: ((value: unknown, world: RuleWorld) => string) | undefined;
}

/** What a rule may ask that it cannot work out itself. */
export interface RuleWorld {
  /** What is wrong with a cron expression; undefined when nothing is. */
  readonly cronProblem: (expression: string) => string | undefined;
}

/** A rule over a value of a known shape; the shape has been checked before any rule is asked. */
export function ruleOn<Value>(rule: {
  readonly cel?: string;
  readonly localOnly?: string;
  readonly at?: string;
  readonly wanted: string;
  readonly holds: (value: Value, world: RuleWorld) => boolean;
  readonly found?: (value: Value, world: RuleWorld) => string;
}): SchemaRule {
  return rule as SchemaRule;
}
