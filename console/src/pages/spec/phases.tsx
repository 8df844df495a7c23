import { Link } from "wouter";
import type { SpecPhase } from "../../../../src/contract/spec/spec.ts";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { Badge } from "../../parts/badge.tsx";
import { Section } from "../../parts/facts.tsx";
import { duration, Time, Until } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { PhaseContent } from "./phase-content.tsx";
import { isWritten, phaseStates, phaseTitles } from "./phase-text.ts";
import styles from "./spec.module.css";

interface PhasesProps {
  view: SpecView;
  chosen: SpecPhase;
  onChoose(phase: SpecPhase): void;
}

/** The phases in order, and one of them with its text, decisions and attempts. */
export function Phases({ view, chosen, onChoose }: PhasesProps) {
  return (
    <div className={styles.phases}>
      <ol className={styles.rail} aria-label="Phases">
        {view.phases.map(({ phase, state, version }) => {
          const { word, tone } = phaseStates[state];
          const tries = view.attempts.filter((each) => each.phase === phase).length;
          return (
            <li key={phase} data-state={state}>
              <button type="button" className={styles.phase} aria-pressed={phase === chosen} onClick={() => onChoose(phase)}>
                <span className={styles.phaseName}>{phaseTitles[phase]}</span>
                <Badge tone={tone}>{word}</Badge>
                <span className={styles.quiet}>
                  {[...(version === null ? [] : [`version ${version}`]), ...(tries > 1 ? [`${tries} attempts`] : [])].join(" · ")}
                </span>
              </button>
            </li>
          );
        })}
      </ol>
      <OnePhase view={view} phase={chosen} />
    </div>
  );
}

function OnePhase({ view, phase }: { view: SpecView; phase: SpecPhase }) {
  const attempts = view.attempts.filter((each) => each.phase === phase);
  const decisions = view.decisions.filter((each) => each.phase === phase);
  return (
    <article className={styles.one} aria-label={phaseTitles[phase]}>
      {isWritten(phase) ? <PhaseContent phase={phase} data={view.data} /> : <Ended view={view} />}
      {decisions.length > 0 && (
        <Section title="Decisions">
          <ul className={styles.list}>
            {decisions.map(({ at, by, approved, text, version }) => (
              <li key={at}>
                <Badge tone={approved ? "good" : "bad"}>{approved ? "approved" : "rejected"}</Badge> version {version} by {visibleText(by)},{" "}
                <Time at={at} />
                {text !== "" && <p className={styles.note}>{visibleLines(text)}</p>}
              </li>
            ))}
          </ul>
        </Section>
      )}
      {attempts.length > 0 && (
        <Section title="Attempts">
          <ol className={styles.list}>
            {attempts.toReversed().map((attempt) => (
              <Attempt key={`${attempt.attempt} ${attempt.startedAt}`} attempt={attempt} />
            ))}
          </ol>
        </Section>
      )}
      {view.dueAt !== null && view.phase === phase && (
        <p className={styles.quiet}>
          Next attempt <Until at={view.dueAt} />.
        </p>
      )}
    </article>
  );
}

/** An attempt with the score and feedback of each check. The next attempt received the same feedback. */
function Attempt({ attempt: { attempt, run, judgement, startedAt, endedAt } }: { attempt: SpecView["attempts"][number] }) {
  const passed = judgement?.passed;
  return (
    <li>
      <div className={styles.attempt}>
        <span>Attempt {attempt}</span>
        <Badge tone={passed === undefined ? "busy" : passed ? "good" : "bad"}>
          {passed === undefined ? "in progress" : passed ? "passed" : "below threshold"}
        </Badge>
        {judgement !== null && <Score score={judgement.score} threshold={judgement.threshold} />}
        {run !== null && (
          <Link href={`/runs/${run}`} className="link">
            {run}
          </Link>
        )}
        <span className={styles.quiet}>
          {endedAt === null ? <Time at={startedAt} /> : duration(Date.parse(endedAt) - Date.parse(startedAt))}
        </span>
      </div>
      {judgement !== null && (
        <ul className={styles.checks}>
          {judgement.checks.map(({ check, score, feedback }) => (
            <li key={check} data-ok={score >= 1}>
              <span className={styles.check}>{visibleText(check)}</span>
              <span className={styles.quiet}>{Math.round(score * 100)}%</span>
              {feedback !== "" && <p>{visibleLines(feedback)}</p>}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Score({ score, threshold }: { score: number; threshold: number }) {
  const text = `${Math.round(score * 100)}%, threshold ${Math.round(threshold * 100)}%`;
  return (
    <span className={styles.score} title={text}>
      <meter min={0} max={1} low={threshold} high={threshold} optimum={1} value={score} aria-label={text} />
      {Math.round(score * 100)}%
    </span>
  );
}

/** The result of the whole spec. */
function Ended({ view: { ended, session, tasks } }: { view: SpecView }) {
  const done = tasks.filter(({ state }) => state === "done").length;
  return (
    <Section title="Result">
      {tasks.length > 0 && (
        <p>
          {done} of {tasks.length} tasks are done.
        </p>
      )}
      {ended === null ? <p className={styles.quiet}>Not finished yet.</p> : <p className={styles.words}>{visibleLines(ended.text)}</p>}
      {session !== null && (
        <p>
          The changes are in the session <code>{visibleText(session)}</code>; <code>caisson diff {visibleText(session)}</code> shows them.
        </p>
      )}
    </Section>
  );
}
