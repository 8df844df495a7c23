import { Ban, Brain, CircleCheck, CircleX, Info, ListTodo, MessageSquare, Minimize2, TriangleAlert } from "lucide-react";
import { memo, type ReactNode, useState } from "react";
import { useStation } from "../../data/station.tsx";
import { tokens } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Markdown } from "../../parts/markdown.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { ClippedText } from "./clipped-text.tsx";
import styles from "./items.module.css";
import { QuestionCard } from "./question-card.tsx";
import type { TimelineItem, ToolItem } from "./timeline-item.ts";
import { ToolCard } from "./tool-card.tsx";

export interface ItemProps {
  item: TimelineItem;
  run: string;
  /** Whether the run is active. */
  isOpen: boolean;
  /** Renders the sub-run of a call that handed a task to an agent. */
  renderLane(run: string, item: ToolItem): ReactNode;
}

/** One item of a timeline. */
export const ItemView = memo(function ItemView({ item, run, isOpen, renderLane }: ItemProps) {
  switch (item.kind) {
    case "words":
      return <ModelWords text={item.text} isStreaming={item.isStreaming && isOpen} />;
    case "thought":
      return <Folded icon={<Brain />} title={item.isStreaming && isOpen ? "Thinking…" : "Thoughts"} text={item.text} />;
    case "tool":
      return <ToolCard item={item} lane={item.name === "agent" ? renderLane(run, item) : null} />;
    case "question":
      return <QuestionCard item={item} run={run} isOpen={isOpen} />;
    case "step":
      return <div className={styles.step}>Step {item.step}</div>;
    case "message":
      return (
        <section className={styles.message}>
          <MessageSquare aria-hidden="true" />
          <div>
            <p className={styles.prose}>{visibleLines(item.text)}</p>
            <p className={styles.quiet}>
              {item.source} · {item.mode} · {item.seenAtStep === null ? "not read yet" : `read in step ${item.seenAtStep}`}
            </p>
          </div>
        </section>
      );
    case "denied":
      return <Denied item={item} run={run} isOpen={isOpen} />;
    case "compacted":
      return (
        <Folded
          icon={<Minimize2 />}
          title={`Summarized everything before step ${item.beforeStep}: ${tokens(item.tokensBefore)} → ${tokens(item.tokensAfter)} tokens`}
          text={item.summary}
        />
      );
    case "todo":
      return (
        <Line
          icon={<ListTodo />}
          title={`Plan: ${item.todo.filter(({ status }) => status === "completed").length} of ${item.todo.length} done`}
        />
      );
    case "incident":
      return (
        <Line
          icon={<TriangleAlert />}
          tone="warn"
          title={`The ${item.subject} was restarted${item.outcome === null ? "…" : `: ${item.outcome.replaceAll("_", " ")}`}`}
          text={item.text ?? item.why}
        />
      );
    case "ended":
      return (
        <Line
          icon={item.reason === "done" ? <CircleCheck /> : <CircleX />}
          tone={item.reason === "done" ? "good" : item.reason === "cancelled" ? "plain" : "bad"}
          title={item.reason === "done" ? "Done" : `Ended: ${item.reason.replaceAll("_", " ")}`}
          text={item.reason === "done" ? null : item.text}
        />
      );
    case "note":
      return <Line icon={item.tone === "plain" ? <Info /> : <TriangleAlert />} tone={item.tone} title={item.title} text={item.text} />;
    default:
      item satisfies never;
      return null;
  }
});

function ModelWords({ text, isStreaming }: { text: string; isStreaming: boolean }) {
  if (isStreaming) return <p className={`${styles.prose} ${styles.streaming}`}>{visibleLines(text)}</p>;
  return <ClippedText text={text}>{(clippedText) => <Markdown text={clippedText} />}</ClippedText>;
}

function Folded({ icon, title, text }: { icon: ReactNode; title: string; text: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <section className={styles.folded}>
      <button type="button" className={styles.fold} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {icon}
        {title}
        {!isOpen && <span className={styles.preview}>{visibleText(text.slice(0, 160).replaceAll(/\s+/g, " "))}</span>}
      </button>
      {isOpen && <ClippedText text={text}>{(clippedText) => <p className={styles.prose}>{visibleLines(clippedText)}</p>}</ClippedText>}
    </section>
  );
}

interface LineProps {
  icon: ReactNode;
  title: string;
  text?: string | null;
  tone?: "plain" | "good" | "warn" | "bad";
}

function Line({ icon, title, text = null, tone = "plain" }: LineProps) {
  return (
    <div className={`${styles.line} ${styles[tone]}`}>
      {icon}
      <div>
        <span>{visibleText(title)}</span>
        {text !== null && text !== "" && (
          <ClippedText text={text}>{(clippedText) => <p className={styles.prose}>{visibleLines(clippedText)}</p>}</ClippedText>
        )}
      </div>
    </div>
  );
}

function Denied({ item, run, isOpen }: { item: Extract<TimelineItem, { kind: "denied" }>; run: string; isOpen: boolean }) {
  const station = useStation();
  const [isAllowed, setAllowed] = useState(false);
  const host = visibleText(item.host);
  const allow = async () => {
    const policy = { mode: "allow" as const, rules: [{ host: item.host, ports: [item.port] }] };
    await station.networks.change(run, { how: "allow", policy });
    setAllowed(true);
    say(`${host}:${item.port} is now allowed.`);
  };
  const canBeAllowed = isOpen && ["no_network", "host_not_allowed", "port_not_allowed"].includes(item.reason);
  return (
    <section className={`${styles.line} ${styles.warn}`}>
      <Ban aria-hidden="true" />
      <div>
        <span>
          Denied:{" "}
          <code>
            {host}:{item.port}
          </code>{" "}
          {item.count > 1 && `(${item.count} times)`}
        </span>
        <p className={styles.prose}>{visibleLines(item.text)}</p>
      </div>
      {canBeAllowed && (
        <Button disabled={isAllowed} onClick={() => void allow().catch(sayProblem)}>
          {isAllowed ? "Allowed" : `Allow ${host}`}
        </Button>
      )}
    </section>
  );
}
