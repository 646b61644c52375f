import type { WhatIfFacts } from "../../board/picture.ts";
import { getJson, hasTemporal } from "../browser.ts";
import { problemIn } from "../node/node-view.tsx";
import { useEffect, useRef, useState, type VNode } from "../preact.ts";
import type { WhatIf, WhatIfProps } from "./what-if.tsx";

/** The plan changes with time: older facts are requested again. */
const staleMs = 600_000;

interface SectionProps extends WhatIfProps {
  readonly onClose: () => void;
}

/** Loads the planner, and the facts for it, only when somebody opens the what-if. */
export function WhatIfSection(props: SectionProps): VNode {
  const { view, card, onClose } = props;
  const { words } = view;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section class="what-if" aria-labelledby="what-if">
      <div class="section-head">
        <h2 id="what-if" ref={heading} tabIndex={-1}>
          {words.whatIf}: {card.name}
        </h2>
        <button type="button" onClick={onClose}>
          {words.close}
        </button>
      </div>
      {hasTemporal() ? <Loading {...props} /> : <p class="held">{words.whatIfNoTemporal}</p>}
    </section>
  );
}

function Loading(props: WhatIfProps): VNode {
  const { words, now } = props.view;
  const [Panel, setPanel] = useState<{ readonly of: typeof WhatIf } | undefined>(undefined);
  const [facts, setFacts] = useState<WhatIfFacts | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const isStale = facts === undefined || now - facts.at > staleMs;
  useEffect(() => {
    if (!isStale) return undefined;
    let isOver = false;
    Promise.all([import("./what-if.tsx"), getJson("api/what-if")])
      .then(([loaded, { status, json }]) => {
        if (isOver) return;
        setPanel({ of: loaded.WhatIf });
        if (status === 200) setFacts(json as WhatIfFacts);
        setProblem(status === 200 ? "" : problemIn(json) || words.unheard);
      })
      .catch(() => {
        if (!isOver) setProblem(words.unheard);
      });
    return () => {
      isOver = true;
    };
  }, [isStale]);
  return (
    <>
      {problem === "" ? null : (
        <p class="held" role="alert" dir="auto">
          {problem}
        </p>
      )}
      {Panel === undefined || facts === undefined ? (
        <p class="dim">{problem === "" ? words.previewing : ""}</p>
      ) : (
        <Panel.of {...props} facts={facts} />
      )}
    </>
  );
}
