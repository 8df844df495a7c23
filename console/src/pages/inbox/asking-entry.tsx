import { useState } from "react";
import { Link } from "wouter";
import type { Client } from "../../../../src/client/connect.ts";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import type { InboxItem } from "../../../../src/contract/inbox/inbox-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Markdown } from "../../parts/markdown.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./inbox.module.css";

const names = {
  run: "Run",
  sandbox: "Sandbox",
  workflow: "Workflow",
  spec: "Spec",
  ship: "Ship",
  merge: "Merge",
  best: "Best-of",
} as const;

/**
 * An inbox entry of a workflow, spec, ship, merge, best-of or sandbox. If there is something to read first, it links to
 * the page.
 */
export function AskingEntry({ item }: { item: InboxItem }) {
  const station = useStation();
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const href = hrefOf(item.of);
  const answer = async (send: () => Promise<unknown>) => {
    setSending(true);
    try {
      await send();
      say("Answered.");
    } catch (error) {
      sayProblem(error);
    } finally {
      setSending(false);
    }
  };
  const approve = (approved: boolean) => void answer(() => answerApproval(station, item, { approved, text: text.trim() }));
  return (
    <li className={styles.asked}>
      <div className={styles.head}>
        <Link href={href} className="link">
          {visibleText(item.title)}
        </Link>
        <span className={styles.dim}>
          {names[item.of.kind]} · <Time at={item.at} />
        </span>
      </div>
      <Markdown text={item.text} />
      <div className={styles.actions}>
        {item.asks === "approval" && (
          <>
            <input
              aria-label="Note to the workflow"
              placeholder="Note (optional)"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
            <Button look="main" disabled={isSending} onClick={() => approve(true)}>
              Approve
            </Button>
            <Button look="danger" disabled={isSending} onClick={() => approve(false)}>
              Reject
            </Button>
          </>
        )}
        {item.asks === "merge" && (
          <Button look="main" disabled={isSending} onClick={() => void answer(() => station.ships.merge(item.of.id))}>
            Merge
          </Button>
        )}
        {item.asks === "failure" && (
          <Button look="main" disabled={isSending} onClick={() => void answer(() => resume[item.of.kind](station, item.of.id))}>
            Try again
          </Button>
        )}
        {item.asks === "unresponsive" && (
          <Link href={href} className="link">
            View the sandbox
          </Link>
        )}
        {(item.asks === "gate" || item.asks === "conflict") && (
          <Link href={href} className="link">
            {item.asks === "gate" ? "Review" : "Resolve"}
          </Link>
        )}
      </div>
    </li>
  );
}

function hrefOf({ kind, id }: InboxItem["of"]): string {
  return kind === "sandbox" ? `/sandboxes/${id}` : `/${kind}s/${id}`;
}

/** Answers only the question that is shown: another step may be waiting now. */
async function answerApproval(station: Client, { of, seq }: InboxItem, decision: { approved: boolean; text: string }): Promise<void> {
  const { seq: now, steps } = await station.workflows.get(of.id);
  const asking = steps.filter(({ kind, status }) => kind === "approval" && status === "running");
  const [step] = asking;
  if (now !== seq || step === undefined)
    throw new CaissonError("stale", "the workflow has changed since", { hint: "Review it, then answer again." });
  if (asking.length > 1)
    throw new CaissonError("conflict", "several of its steps wait for approval", { hint: "Answer each one on the workflow's page." });
  await station.workflows.approve(of.id, { ...decision, path: step.path });
}

/** How to continue something that failed, or that was paused because it crashed a station. */
const resume: Record<InboxItem["of"]["kind"], (station: Client, id: string) => Promise<unknown>> = {
  workflow: (station, id) => station.workflows.resume(id),
  merge: (station, id) => station.merges.resume(id),
  best: (station, id) => station.bests.resume(id),
  ship: (station, id) => station.ships.resume(id),
  spec: (station, id) => station.specs.execute(id),
  run: (station, id) => station.runs.resume(id),
  sandbox: (station, id) => station.sandboxes.resume(id),
};
