import {
  isJsonType,
  jsonTemplateProblem,
  templateProblem,
  templateWanted,
} from "../../core/action/template.ts";
import type { HttpRequestSpec } from "../../core/policy/action.ts";
import { addressMeant } from "../problem.ts";
import {
  choiceField,
  type ObjectField,
  ruleOn,
  type SchemaFields,
  type SchemaRule,
  type SchemaValues,
  type StringField,
  wordsOf,
} from "./field-schema.ts";

export const isTemplate: SchemaRule = ruleOn<string>({
  localOnly: "CEL cannot parse Mustache templates",
  wanted: templateWanted,
  holds: (text) => templateProblem(text) === undefined,
  found: (text) => templateProblem(text) ?? "",
});

export function isJson(text: string): boolean {
  return jsonTemplateProblem(text) === undefined;
}

export function templateField<
  Options extends {
    readonly description: string;
    readonly default?: string;
    readonly maxLength?: number;
  },
>(options: Options): StringField & Options {
  const { maxLength = 4096 } = options;
  const wanted = `text of at most ${maxLength} characters`;
  return { type: "string", ...options, maxLength, wanted, rules: [isTemplate] };
}

export const messageField = templateField({
  description: "The message; a template.",
  default: "{{summary}}",
});

function urlField(description: string): StringField {
  return {
    type: "string",
    description,
    pattern: "^https?://[^\\s/@{}]+(/[^\\s{}]*)?$",
    maxLength: 1024,
    wanted: "an address such as https://example.com/path, without a password or template",
    meant: addressMeant,
  };
}

/** An address to which Lastcall appends the path of an API. */
export function baseUrlField(description: string): StringField {
  return {
    type: "string",
    description,
    pattern: "^https?://[^\\s/?#@{}\\\\]+(/[^\\s?#{}\\\\]*)?$",
    maxLength: 1024,
    wanted: "an address such as https://example.com/path, without ?, #, a password or a template",
    meant: addressMeant,
  };
}

export function apiField(description: string, fallback: string) {
  return { ...baseUrlField(description), default: fallback } as const satisfies StringField;
}

export const isWithoutApiPath: SchemaRule = ruleOn<string>({
  cel: "!self.matches('/api/v[0-9]+/?$')",
  wanted: "the address of Alertmanager without /api/v2",
  holds: (url) => !/\/api\/v[0-9]+\/?$/.test(url),
});

function urlTemplate(description: string): StringField {
  return {
    ...urlField(description),
    pattern: "^https?://[^\\s/@{}]+(/\\S*)?$",
    wanted: "an address such as https://example.com/{{node}}, without a template in the host",
    rules: [isTemplate],
  };
}

export function secretField(description: string) {
  return {
    type: "object",
    description: `${description} A Secret in the namespace of Lastcall.`,
    required: ["name", "key"],
    properties: {
      name: {
        type: "string",
        description: "The Secret's name.",
        pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        maxLength: 253,
        wanted: "the name of a Secret",
      },
      key: {
        type: "string",
        description: "The key in its data.",
        pattern: "^[-._a-zA-Z0-9]+$",
        maxLength: 253,
        wanted: "a key of a Secret",
      },
    },
  } as const satisfies ObjectField;
}

export function textOf(options: {
  readonly description: string;
  readonly pattern: string;
  readonly maxLength: number;
  readonly wanted: string;
}): StringField {
  return { type: "string", ...options };
}

const urlOrSecret: SchemaRule = ruleOn<{ readonly url?: string; readonly secretRef?: object }>({
  cel: "has(self.url) != has(self.secretRef)",
  wanted: "either url or secretRef, which holds the address of the webhook",
  holds: ({ url, secretRef }) => (url === undefined) !== (secretRef === undefined),
  found: ({ url }) => (url === undefined ? "neither" : "both"),
});

const slackFields = {
  url: urlField(
    "The incoming webhook, if its address is not a secret; with `channel`, the Web API, https://slack.com/api if not set.",
  ),
  channel: textOf({
    description: "The channel's id. If it is set, `secretRef` holds the token of a bot.",
    pattern: "^[#@A-Za-z0-9._-]+$",
    maxLength: 128,
    wanted: "the id of a channel such as C0123456789",
  }),
  message: messageField,
  secretRef: secretField("The address of the webhook, or with `channel` a bot's token."),
} as const satisfies SchemaFields;

export const slack = {
  type: "object",
  description:
    "Sends a message to Slack through an incoming webhook or, with `channel`, as a bot, which keeps the messages about one departure in one thread.",
  properties: slackFields,
  rules: [
    ruleOn<SchemaValues<typeof slackFields>>({
      cel: "has(self.channel) ? has(self.secretRef) : has(self.url) != has(self.secretRef)",
      at: "secretRef",
      wanted: "a bot token if channel is set; otherwise either url or secretRef with the webhook",
      holds: ({ channel, url, secretRef }) =>
        channel !== undefined
          ? secretRef !== undefined
          : (url === undefined) !== (secretRef === undefined),
      found: ({ channel, secretRef }) => {
        if (channel !== undefined) return "channel without secretRef";
        return secretRef === undefined ? "neither url nor secretRef" : "both url and secretRef";
      },
    }),
  ],
} as const satisfies ObjectField;

export const teams = {
  type: "object",
  description: "Sends a card to a Teams workflow (`When a Teams webhook request is received`).",
  properties: {
    url: urlField("The workflow's address, if it is not a secret."),
    title: templateField({
      description: "The card's title; a template.",
      default: "{{node}} {{cause}} {{outcome}}",
      maxLength: 512,
    }),
    message: messageField,
    secretRef: secretField("The workflow's address."),
  },
  rules: [urlOrSecret],
} as const satisfies ObjectField;

export const telegram = {
  type: "object",
  description:
    "Sends a message as a Telegram bot; later messages about the same departure reply to the first.",
  required: ["chatId", "secretRef"],
  properties: {
    url: apiField("The API.", "https://api.telegram.org"),
    chatId: textOf({
      description: "The chat's id, or the name of a channel.",
      pattern: "^(-?[0-9]+|@[A-Za-z0-9_]+)$",
      maxLength: 64,
      wanted: 'the id of a chat in quotes such as "-1001234567890", or "@channel"',
    }),
    message: messageField,
    secretRef: secretField("The bot's token."),
  },
} as const satisfies ObjectField;

export const cloudEvents = {
  type: "object",
  description: "Sends a CloudEvent to a webhook, signed according to Standard Webhooks.",
  required: ["url"],
  properties: {
    url: urlField("The webhook."),
    type: textOf({
      description: "The event's type.",
      pattern: "^[A-Za-z0-9._-]+$",
      maxLength: 256,
      wanted: "a type such as dev.lastcall.departure",
    }),
    message: messageField,
    secretRef: secretField("The key of the signature; if not set, the event is not signed."),
  },
} as const satisfies ObjectField;

const methods = wordsOf<HttpRequestSpec["method"]>({
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true,
  GET: true,
});

const requestFields = {
  url: urlTemplate("The address; a template except for its host."),
  method: choiceField({ description: "The HTTP method.", choices: methods, default: "POST" }),
  body: templateField({
    description: "The body; a template. In a JSON body, values are escaped as JSON.",
    maxLength: 16_384,
  }),
} as const satisfies SchemaFields;

const framing = ["host", "connection", "content-length", "content-type", "transfer-encoding"];

/** A header must not set the framing of a message or its destination. */
const isFreeHeader: SchemaRule = ruleOn<string>({
  cel: `!(self.lowerAscii() in [${framing.map((name) => `'${name}'`).join(", ")}])`,
  wanted: `a header other than ${framing.slice(0, -1).join(", ")} and ${framing.at(-1)}`,
  holds: (name) => !framing.includes(name.toLowerCase()),
});

const httpFields = {
  ...requestFields,
  contentType: {
    type: "string",
    description: "The media type of the body.",
    default: "application/json",
    pattern: "^[a-z]+/[-+.a-zA-Z0-9]+(; ?[-a-zA-Z0-9]+=[-a-zA-Z0-9]+)?$",
    maxLength: 128,
    wanted: "a media type such as application/json",
  },
  headers: {
    type: "list",
    description: "Headers in addition to Content-Type.",
    default: [],
    maxItems: 16,
    items: {
      type: "object",
      description: "One header.",
      required: ["name"],
      properties: {
        name: {
          ...textOf({
            description: "Its name.",
            pattern: "^[A-Za-z0-9-]+$",
            maxLength: 64,
            wanted: "the name of a header",
          }),
          rules: [isFreeHeader],
        },
        value: {
          type: "string",
          description: "Its value; with `secretRef`, the text before the secret.",
          default: "",
          pattern: "^(\\{?[ -z|}~])*\\{?$",
          maxLength: 1024,
          wanted: "printable ASCII without {{…}}: headers are not templates",
        },
        secretRef: secretField("What its value ends with."),
      },
    },
  },
  undo: {
    type: "object",
    description:
      "The request that undoes the action, sent with the same headers if the departure is rolled back or its notice is withdrawn.",
    required: ["url"],
    properties: requestFields,
  },
} as const satisfies SchemaFields;

export const http = {
  type: "object",
  description: "Sends a request, built from templates, to any HTTP API.",
  required: ["url"],
  properties: httpFields,
  rules: [
    ruleOn<SchemaValues<typeof httpFields, "url">>({
      localOnly: "CEL cannot parse JSON",
      at: "body",
      wanted: "JSON, with each {{…}} inside quotes, or another contentType",
      holds: ({ body, contentType }) =>
        body === undefined || !isJsonType(contentType) || isJson(body),
      found: ({ body = "" }) => jsonTemplateProblem(body) ?? "",
    }),
    ruleOn<SchemaValues<typeof httpFields, "url">>({
      localOnly: "CEL cannot parse JSON",
      at: "undo",
      wanted: "JSON as its body, with each {{…}} inside quotes, or another contentType",
      holds: ({ undo, contentType }) =>
        undo?.body === undefined || !isJsonType(contentType) || isJson(undo.body),
      found: ({ undo }) => `a body that is ${jsonTemplateProblem(undo?.body ?? "")}`,
    }),
  ],
} as const satisfies ObjectField;
