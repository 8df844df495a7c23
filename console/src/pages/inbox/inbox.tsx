import { useState } from "react";
import { Link } from "wouter";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { QuestionText } from "../../parts/question-text.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText, visibleTitle } from "../../parts/visible-text.ts";
import { useThingsAsking } from "../../station/inbox.ts";
import { useRuns } from "../../station/queries.ts";
import { useStation } from "../../station/station.tsx";
import styles from "./inbox.module.css";
import { ThingAsked } from "./thing-asked.tsx";

/** Every question that a run waits with, whichever run it is, and what everything else waits for a person with. */
export default function InboxPage() {
  const { data, error, refetch } = useRuns();
  const things = useThingsAsking();
  const asking = things.data ?? [];
  const waiting = data?.runs.filter(({ status, asked }) => status !== "ended" && asked.length > 0) ?? [];
  const count = waiting.length + asking.length;
  const isThere = data !== undefined && things.data !== undefined;
  return (
    <Page title={count === 0 ? "Inbox" : `Inbox (${count})`} name="Inbox" actions={<NotifyButton />}>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {things.error !== null && <Problem error={things.error} onRetry={() => void things.refetch()} />}
      {!isThere && error === null && things.error === null && <Loading />}
      {isThere && count === 0 && (
        <Empty title="Nobody waits for you">
          <p>
            What an agent may not decide by itself is asked here, and where it is about: in a run, a workflow, a spec, a ship or a merge.
          </p>
        </Empty>
      )}
      <ul className={styles.list}>
        {asking.map((item) => (
          <ThingAsked key={`${item.of.id} ${item.seq}`} item={item} />
        ))}
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
          {visibleTitle(view.name ?? view.title)}
        </Link>
        <span className={styles.dim}>
          {visibleText(view.agent)} · <Time at={view.updatedAt} />
        </span>
      </div>
      <QuestionText text={asked.text} isLiteral={asked.kind === "tool"} />
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
