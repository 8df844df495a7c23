import { Bot, X } from "lucide-react";
import { Link } from "wouter";
import { workOfStream } from "../../data/work-item.ts";
import { Button } from "../../parts/button.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { stateWords } from "../../parts/graph-state.tsx";
import { duration, Time, Until } from "../../parts/time.tsx";
import { Side } from "../../parts/two-columns.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import type { StepAttempt } from "./step-history.ts";
import type { StepNode } from "./step-tree.ts";
import styles from "./workflow.module.css";

/** One step: its definition, and each attempt with its input and output. */
export function StepDetails({ node, tries, onClose }: { node: StepNode; tries: readonly StepAttempt[]; onClose(): void }) {
  const { step, state, view, path } = node;
  return (
    <Side label={`Step ${step.name}`}>
      <header className={styles.sideHead}>
        <h2>{step.name}</h2>
        <span className={styles.quiet}>
          {step.kind}, {stateWords[state]}
        </span>
        <Button look="plain" label="Back to the workflow" icon={<X />} onClick={onClose} />
      </header>
      <Facts>
        <Fact name="Path">
          <code>{visibleText(path)}</code>
        </Fact>
        {step.when !== undefined && (
          <Fact name="When">
            <code>{visibleText(step.when)}</code>
          </Fact>
        )}
        {step.timeout !== undefined && <Fact name="Timeout">{step.timeout}</Fact>}
        {step.retry !== undefined && <Fact name="Attempts">up to {step.retry.attempts}</Fact>}
        {view?.due != null && (
          <Fact name={view.status === "failed" ? "Next attempt" : "Due"}>
            <Until at={view.due} />
          </Fact>
        )}
      </Facts>
      {tries.length === 0 && <p className={styles.quiet}>No attempts yet.</p>}
      {tries.toReversed().map((each) => (
        <Try key={`${each.attempt} ${each.startedAt}`} tried={each} isOnly={tries.length === 1} />
      ))}
      <Section title="Definition">
        <Value label="Step definition" value={withoutSteps(step)} />
      </Section>
    </Side>
  );
}

/** Omits inner steps, which have their own nodes. */
const withoutSteps = (step: object): object =>
  Object.fromEntries(
    Object.entries(step).filter(([key]) => !["steps", "cases", "default", "branches", "catch", "finally", "definition"].includes(key)),
  );

function Try({ tried, isOnly }: { tried: StepAttempt; isOnly: boolean }) {
  const { attempt, given: input, startedAt, endedAt, status, output, error, child, answer } = tried;
  const place = child === null ? null : workOfStream(child);
  return (
    <Section title={isOnly ? "Result" : `Attempt ${attempt}`}>
      <Facts>
        <Fact name="Outcome">
          {status}
          {startedAt !== null && endedAt !== null && `, after ${duration(Date.parse(endedAt) - Date.parse(startedAt))}`}
        </Fact>
        {startedAt !== null && (
          <Fact name="Started">
            <Time at={startedAt} />
          </Fact>
        )}
        {place !== null && (
          <Fact name={`${place.kind.slice(0, 1).toUpperCase()}${place.kind.slice(1)}`}>
            <Link href={place.href} className="link">
              <Bot aria-hidden="true" className={styles.icon} /> {place.id}
            </Link>
          </Fact>
        )}
        {answer !== null && (
          <Fact name={answer.approved ? "Approved" : "Rejected"}>
            by {visibleText(answer.by)}
            {answer.text !== "" && `: ${visibleLines(answer.text)}`}
          </Fact>
        )}
      </Facts>
      {error !== null && (
        <div className={styles.error}>
          <strong>{visibleText(error.code)}</strong>
          <p>{visibleLines(error.text)}</p>
        </div>
      )}
      {input !== null && <Named name="Input" value={input} />}
      {output !== null && <Named name="Output" value={output} />}
    </Section>
  );
}

function Named({ name, value }: { name: string; value: unknown }) {
  return (
    <div className={styles.named}>
      <span className={styles.quiet}>{name}</span>
      <Value label={name} value={value} />
    </div>
  );
}
