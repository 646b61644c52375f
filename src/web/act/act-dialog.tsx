import type { ActAnswer, ActPreview, BoardAct } from "../../board/act/act.ts";
import type { BoardRow, PolicyCard } from "../../board/stream.ts";
import { inEnglish } from "../../core/reason/english.ts";
import type { Instant } from "../../core/time/time.ts";
import {
  after,
  focusOn,
  hasFocus,
  localOfInstant,
  newKey,
  nextHour,
  postJson,
} from "../browser.ts";
import { problemIn } from "../node/node-view.tsx";
import { useEffect, useMemo, useRef, useState, type VNode } from "../preact.ts";
import { HoldNote } from "../row-status.tsx";
import type { PageView } from "../view-state.ts";
import { Sentence } from "../words/sentence.tsx";
import { spanText } from "../words/time-text.ts";
import type { Words } from "../words/words-english.ts";
import {
  type Chosen,
  CopyButton,
  chosenIn,
  mornings,
  type NodeAct,
  type PolicyAct,
  type Times,
  wholeTimes,
} from "./act-buttons.tsx";

const commandId = "act-command";

/** The action that the viewer has started. */
export type Intent =
  | { readonly kind: NodeAct; readonly row: BoardRow }
  | { readonly kind: PolicyAct; readonly card: PolicyCard };

interface DialogProps {
  readonly view: PageView;
  readonly intent: Intent;
  readonly onClose: () => void;
}

/** The effect is computed first; the action is carried out only once the viewer has seen it. */
export function ActDialog({ view, intent, onClose }: DialogProps): VNode {
  const { words } = view;
  const dialog = useRef<HTMLDialogElement>(null);
  const lastButton = useRef<HTMLButtonElement>(null);
  const [times, setTimes] = useState<Times>(() => firstTimes(intent, view.now));
  const act = actOf(intent, times);
  const [look, setLook] = useState(0);
  const preview = usePreview({ act, look, words });
  // A refused action is previewed again; confirming it then sends a new one.
  const onRefused = (): void => setLook(look + 1);
  const [answer, send] = useSending({ act, look, preview, words, onRefused });
  useEffect(() => dialog.current?.showModal(), []);
  // The focused elements disappear when the action is done: the confirm button, and the one that
  // started it.
  useEffect(() => {
    if (answer?.kind === "Done") lastButton.current?.focus();
  }, [answer?.kind]);
  const closed = (): void => {
    onClose();
    // Once the dialog and its focus are gone.
    after(0, () => {
      if (!hasFocus()) focusOn("main");
    });
  };
  const isReady = preview.kind === "Shown" && preview.preview.refusal === null;
  return (
    <dialog ref={dialog} onClose={closed} aria-labelledby="act-title">
      <h2 id="act-title">{titleOf(intent, view)}</h2>
      {intent.kind === "Hold" ? <HeldAlready view={view} row={intent.row} /> : null}
      <TimeChoice view={view} intent={intent} times={times} onChange={setTimes} />
      <h3>{words.preview}</h3>
      <div class="preview" aria-live="polite">
        {preview.kind === "Unfinished" ? <p class="dim">{words.chooseTime}</p> : null}
        {preview.kind === "Asking" ? <p class="dim">{words.previewing}</p> : null}
        {preview.kind === "Problem" ? (
          <p class="held" dir="auto">
            {preview.problem}
          </p>
        ) : null}
        {preview.kind === "Shown" ? <PreviewText view={view} preview={preview.preview} /> : null}
      </div>
      {answer === undefined || answer.kind === "Sending" ? null : (
        <p class={answer.kind === "Done" ? "good answer" : "held answer"} role="status">
          <Sentence view={view} text={answer.says} class="" />
        </p>
      )}
      <div class="acts">
        {answer?.kind === "Done" ? null : (
          <button
            type="button"
            class="primary"
            disabled={!isReady || answer?.kind === "Sending"}
            onClick={send}
          >
            {answer?.kind === "Sending" ? words.sending : words.confirm}
          </button>
        )}
        <button ref={lastButton} type="button" onClick={() => dialog.current?.close()}>
          {answer?.kind === "Done" ? words.close : words.cancel}
        </button>
      </div>
    </dialog>
  );
}

/** The node's current state: somebody else may have held it since this action was started. */
function HeldAlready({ view, row }: { readonly view: PageView; readonly row: BoardRow }) {
  const now = view.picture.rows.find(({ id }) => id === row.id);
  return now === undefined ? null : <HoldNote view={view} row={now} />;
}

function firstTimes({ kind }: Intent, now: number): Times {
  return { at: kind === "Freeze" ? nextHour(now, 9, 1) : null, by: null };
}

/** Undefined while its time is being chosen. */
function actOf(intent: Intent, chosen: Times): BoardAct | undefined {
  const times = wholeTimes(intent.kind, chosen);
  if (times === undefined) return undefined;
  const { by } = times;
  const time = times.at as Instant | null;
  switch (intent.kind) {
    case "Freeze":
      return { kind: "Freeze", policy: intent.card.name, until: time };
    case "Thaw":
      return { kind: "Freeze", policy: intent.card.name, until: null };
    case "Withdraw": {
      const { departure, departureUid } = intent.row;
      return { kind: "Withdraw", departure: departure ?? "", uid: departureUid ?? "" };
    }
    case "Hold":
      return { kind: "Hold", node: intent.row.node, uid: intent.row.uid, until: time };
    case "ReleaseHold":
      return { kind: "ReleaseHold", node: intent.row.node, uid: intent.row.uid };
    case "Depart": {
      const { node, uid } = intent.row;
      return { kind: "Depart", node, uid, at: time, by: by as Instant | null };
    }
  }
}

function titleOf(intent: Intent, { words }: PageView): string {
  switch (intent.kind) {
    case "Freeze":
      return `${words.actFreeze}: ${intent.card.name}`;
    case "Thaw":
      return `${words.actThaw}: ${intent.card.name}`;
    case "Hold":
      return `${words.actHold}: ${intent.row.node}`;
    case "ReleaseHold":
      return `${words.actRelease}: ${intent.row.node}`;
    case "Depart":
      return `${words.actDepart}: ${intent.row.node}`;
    case "Withdraw":
      return `${words.actWithdraw}: ${intent.row.node}`;
  }
}

type Previewing =
  | { readonly kind: "Unfinished" }
  | { readonly kind: "Asking" }
  | { readonly kind: "Problem"; readonly problem: string }
  | { readonly kind: "Shown"; readonly preview: ActPreview };

interface Looking {
  readonly act: BoardAct | undefined;
  /** The number of previews so far. */
  readonly look: number;
  readonly words: Words;
}

/** A preview of another action than the chosen one is neither shown nor confirmed. */
function usePreview({ act, look, words }: Looking): Previewing {
  const [heard, setHeard] = useState<{ readonly of: string; readonly found: Previewing }>();
  const text = act === undefined ? undefined : JSON.stringify(act);
  const of = `${look} ${text}`;
  useEffect(() => {
    if (text === undefined) return undefined;
    let isOver = false;
    const hear = (found: Previewing): void => {
      if (!isOver) setHeard({ of, found });
    };
    postJson("api/preview", JSON.parse(text))
      .then(({ status, json }) =>
        hear(
          status === 200
            ? { kind: "Shown", preview: json as ActPreview }
            : { kind: "Problem", problem: problemIn(json) || words.unheard },
        ),
      )
      .catch(() => hear({ kind: "Problem", problem: words.unheard }));
    return () => {
      isOver = true;
    };
  }, [of]);
  if (text === undefined) return { kind: "Unfinished" };
  return heard?.of === of ? heard.found : { kind: "Asking" };
}

type Sent = ActAnswer | { readonly kind: "Sending"; readonly says: string };

interface Sending extends Looking {
  readonly preview: Previewing;
  readonly onRefused: () => void;
}

/**
 * The key belongs to what is shown: if the button is pressed twice, or the request is repeated
 * because no answer came, the action is done once.
 */
function useSending({ act, look, preview, words, onRefused }: Sending) {
  const text = JSON.stringify(act);
  const seen = preview.kind === "Shown" ? preview.preview.seen : "";
  const key = useMemo(newKey, [text, look]);
  const [answer, setAnswer] = useState<Sent | undefined>(undefined);
  // The answer is about what was chosen at that time.
  useEffect(() => setAnswer(undefined), [text]);
  const send = (): void => {
    setAnswer({ kind: "Sending", says: "" });
    postJson("api/act", { act, key, seen })
      .then(({ json }) => {
        const { kind } = (json ?? {}) as Partial<ActAnswer>;
        const isDone = kind === "Done";
        setAnswer({ kind: isDone ? "Done" : "Refused", says: problemIn(json) || words.unheard });
        if (!isDone) onRefused();
      })
      .catch(() => setAnswer({ kind: "Refused", says: words.noAnswer }));
  };
  return [answer, send] as const;
}

interface ChoiceProps {
  readonly view: PageView;
  readonly intent: Intent;
  readonly times: Times;
  readonly onChange: (times: Times) => void;
}

function TimeChoice({ view, intent, times, onChange }: ChoiceProps): VNode | null {
  const { words, now, language } = view;
  const { kind } = intent;
  if (kind === "ReleaseHold" || kind === "Withdraw" || kind === "Thaw") return null;
  const isDepart = kind === "Depart";
  const choices: readonly (readonly [string, number | null])[] = [
    ...(isDepart ? [[words.atOnce, null] as const] : []),
    ...(kind === "Hold" ? [[words.forGood, null] as const] : []),
    ...(isDepart
      ? []
      : [[spanText(4 * 3_600_000, language), minute(now) + 4 * 3_600_000] as const]),
    ...mornings(now, words),
  ];
  return (
    <fieldset>
      <legend>{isDepart ? words.time : words.until}</legend>
      <div class="choices">
        {choices.map(([name, at]) => (
          <button
            key={name}
            type="button"
            aria-pressed={times.at === at}
            onClick={() => onChange({ ...times, at })}
          >
            {name}
          </button>
        ))}
      </div>
      <TimeField name={words.atTime} at={times.at} onChange={(at) => onChange({ ...times, at })} />
      {isDepart ? (
        <TimeField name={words.by} at={times.by} onChange={(by) => onChange({ ...times, by })} />
      ) : null}
    </fieldset>
  );
}

interface FieldProps {
  readonly name: string;
  readonly at: Chosen;
  readonly onChange: (at: Chosen) => void;
}

/**
 * While the user types, the field's value is empty: the page must not overwrite it. A browser sends
 * no input event until the value is complete; only the keys show that half of it is there.
 */
function TimeField({ name, at, onChange }: FieldProps): VNode {
  const read = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    const chosen = chosenIn(currentTarget);
    if (chosen !== at) onChange(chosen);
  };
  return (
    <label>
      {name}
      <input
        type="datetime-local"
        value={typeof at === "number" ? localOfInstant(at) : ""}
        onInput={read}
        onKeyUp={read}
        onBlur={read}
      />
    </label>
  );
}

/** So that a choice does not change from one second to the next. */
function minute(at: number): number {
  return Math.floor(at / 60_000) * 60_000;
}

function PreviewText({
  view,
  preview,
}: {
  readonly view: PageView;
  readonly preview: ActPreview;
}): VNode {
  const { words, language } = view;
  const { says, refusal, drain, command } = preview;
  const pods = drain?.pods ?? [];
  const ends = pods.map((pod) => pod.startSeconds + pod.graceSeconds);
  const cut = pods.filter((pod) => pod.cut).length;
  const blocked = drain?.blocked ?? [];
  return (
    <>
      {refusal === null ? null : (
        <p class="held">
          <Sentence view={view} text={refusal} class="" />
          {words.fullStop}
        </p>
      )}
      <ul>
        {says.map((sentence) => (
          <li key={inEnglish(sentence)}>
            <Sentence view={view} text={sentence} class="" />
            {words.fullStop}
          </li>
        ))}
        {drain === null ? null : (
          <li>
            {pods.length === 0 ? words.noPods : `${words.podsLeave(pods.length)}${words.fullStop}`}
          </li>
        )}
        {pods.length === 0 ? null : (
          <li>
            {words.drainTakes(spanText(Math.max(...ends) * 1000, language))}
            {words.fullStop}
          </li>
        )}
        {cut === 0 ? null : (
          <li class="held">
            {words.podsAreCut(cut)}
            {words.fullStop}
          </li>
        )}
        {blocked.length === 0 ? null : (
          <li class="held">
            {words.podsBlocked(blocked.length)}:
            <ul>
              {blocked.map(({ namespace, name, explain }) => (
                <li key={`${namespace}/${name}`} dir="auto">
                  {namespace}/{name} <Sentence view={view} text={`${explain}.`} class="" />
                </li>
              ))}
            </ul>
          </li>
        )}
      </ul>
      <p class="command">
        <code id={commandId}>{command}</code>
        <CopyButton view={view} text={command} shownBy={commandId} />
      </p>
    </>
  );
}
