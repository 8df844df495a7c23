import { useState } from "react";
import { Link } from "wouter";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { useThingsAsking } from "../../data/inbox.ts";
import { useRuns } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { QuestionText } from "../../parts/question-text.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText, visibleTitle } from "../../parts/visible-text.ts";
import { AskingEntry } from "./asking-entry.tsx";
import styles from "./inbox.module.css";

/** Lists the questions of all runs, and everything else that waits for a person. */
export default function InboxPage() {
  const { data, error, refetch } = useRuns();
  const things = useThingsAsking();
  const asking = things.data ?? [];
  const waiting = data?.runs.filter(({ status, asked: questions }) => status !== "ended" && questions.length > 0) ?? [];
  const count = waiting.length + asking.length;
  const isThere = data !== undefined && things.data !== undefined;
  return (
    <Page title={count === 0 ? "Inbox" : `Inbox (${count})`} name="Inbox" actions={<NotifyButton />}>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {things.error !== null && <Problem error={things.error} onRetry={() => void things.refetch()} />}
      {!isThere && error === null && things.error === null && <Loading />}
      {isThere && count === 0 && (
        <Empty title="Nothing is waiting for you">
          <p>Questions and approvals appear here, and on the page of the run, workflow, spec, ship or merge that needs you.</p>
        </Empty>
      )}
      <ul className={styles.list}>
        {asking.map((item) => (
          <AskingEntry key={`${item.of.id} ${item.seq}`} item={item} />
        ))}
        {waiting.flatMap((view) => view.asked.map((question) => <Question key={question.question} view={view} asked={question} />))}
      </ul>
    </Page>
  );
}

function Question({ view, asked: question }: { view: RunView; asked: RunView["asked"][number] }) {
  const station = useStation();
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const answer = async (choice: "allow" | "always" | "deny") => {
    setSending(true);
    try {
      await station.runs.answer(view.run, { question: question.question, answer: choice, ...(text.trim() !== "" && { text }) });
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
          {visibleTitle(view.name ?? view.title)}
        </Link>
        <span className={styles.dim}>
          {visibleText(view.agent)} · <Time at={view.updatedAt} />
        </span>
      </div>
      <QuestionText text={question.text} isLiteral={question.kind === "tool"} />
      <div className={styles.actions}>
        <input
          aria-label="Note to the agent"
          placeholder="Note to the agent (optional)"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button look="main" disabled={isSending} onClick={() => void answer("allow")}>
          Allow
        </Button>
        {question.kind === "tool" && (
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

/** Asks the browser for permission, once, to show questions while this page is hidden. */
function NotifyButton() {
  const [permission, setPermission] = useState(() => ("Notification" in globalThis ? Notification.permission : "denied"));
  if (permission !== "default") return null;
  return <Button onClick={() => void Notification.requestPermission().then(setPermission)}>Notify me</Button>;
}
