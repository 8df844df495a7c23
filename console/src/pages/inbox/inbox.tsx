import { useState } from "react";
import { Link } from "wouter";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useRuns } from "../../station/queries.ts";
import { useStation } from "../../station/station.tsx";
import styles from "./inbox.module.css";

/** Every question that a run waits with, whichever run it is. */
export default function InboxPage() {
  const { data, error, refetch } = useRuns();
  const waiting = data?.runs.filter(({ status, asked }) => status !== "ended" && asked.length > 0) ?? [];
  return (
    <Page title={waiting.length === 0 ? "Inbox" : `Inbox (${waiting.length})`} name="Inbox" actions={<NotifyButton />}>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading />}
      {data !== undefined && waiting.length === 0 && (
        <Empty title="Nobody waits for you">
          <p>What an agent may not decide by itself is asked here, and in the run it is about.</p>
        </Empty>
      )}
      <ul className={styles.list}>
        {waiting.flatMap((view) => view.asked.map((asked) => <Asked key={asked.question} view={view} asked={asked} />))}
      </ul>
    </Page>
  );
}

function Asked({ view, asked }: { view: RunView; asked: RunView["asked"][number] }) {
  const station = useStation();
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const answer = async (given: "allow" | "always" | "deny") => {
    setSending(true);
    try {
      await station.runs.answer(view.run, { question: asked.question, answer: given, ...(text.trim() !== "" && { text }) });
      say("Answered.");
    } catch (error) {
      sayProblem(error);
    } finally {
      setSending(false);
    }
  };
  return (
    <li className={styles.asked}>
      <div className={styles.head}>
        <Link href={`/runs/${view.run}`} className="link">
          {visibleText(view.name ?? view.title)}
        </Link>
        <span className={styles.dim}>
          {visibleText(view.agent)} · <Time at={view.updatedAt} />
        </span>
      </div>
      <p className={styles.text}>{visibleLines(asked.text)}</p>
      <div className={styles.actions}>
        <input
          aria-label="What the agent is told besides"
          placeholder="A word to the agent (optional)"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button look="main" disabled={isSending} onClick={() => void answer("allow")}>
          Allow
        </Button>
        {asked.kind === "tool" && (
          <Button disabled={isSending} onClick={() => void answer("always")}>
            Always
          </Button>
        )}
        <Button look="danger" disabled={isSending} onClick={() => void answer("deny")}>
          Deny
        </Button>
      </div>
    </li>
  );
}

/** Asks the browser, once, whether questions may be shown when this page is not looked at. */
function NotifyButton() {
  const [permission, setPermission] = useState(() => ("Notification" in globalThis ? Notification.permission : "denied"));
  if (permission !== "default") return null;
  return <Button onClick={() => void Notification.requestPermission().then(setPermission)}>Notify me</Button>;
}
