import { Bot, X } from "lucide-react";
import { Link } from "wouter";
import { Button } from "../../parts/button.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { stateWords } from "../../parts/graph-state.tsx";
import { duration, Time, Until } from "../../parts/time.tsx";
import { Side } from "../../parts/two-columns.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { workOfStream } from "../../station/work-item.ts";
import type { StepAttempt } from "./step-history.ts";
import type { StepNode } from "./step-tree.ts";
import styles from "./workflow.module.css";

/** One step: what the definition says, and each of its tries with what went in and what came out. */
export function StepDetails({ node, tries, onClose }: { node: StepNode; tries: readonly StepAttempt[]; onClose(): void }) {
  const { step, state, view, path } = node;
  return (
    <Side label={`The step ${step.name}`}>
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
        {step.timeout !== undefined && <Fact name="Time">{step.timeout}</Fact>}
        {step.retry !== undefined && <Fact name="Tried">up to {step.retry.attempts} times</Fact>}
        {view?.due != null && (
          <Fact name={view.status === "failed" ? "Again" : "Due"}>
            <Until at={view.due} />
          </Fact>
        )}
      </Facts>
      {tries.length === 0 && <p className={styles.quiet}>Nothing has come of it yet.</p>}
      {tries.toReversed().map((each) => (
        <Try key={`${each.attempt} ${each.startedAt}`} tried={each} isOnly={tries.length === 1} />
      ))}
      <Section title="As it is defined">
        <Value label="The step's definition" value={withoutSteps(step)} />
      </Section>
    </Side>
  );
}

/** Steps within it have nodes of their own. */
const withoutSteps = (step: object): object =>
  Object.fromEntries(
    Object.entries(step).filter(([key]) => !["steps", "cases", "default", "branches", "catch", "finally", "definition"].includes(key)),
  );

function Try({ tried, isOnly }: { tried: StepAttempt; isOnly: boolean }) {
  const { attempt, given, startedAt, endedAt, status, output, error, child, answer } = tried;
  const place = child === null ? null : workOfStream(child);
  return (
    <Section title={isOnly ? "What became of it" : `Attempt ${attempt}`}>
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
      {given !== null && <Named name="Input" value={given} />}
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
