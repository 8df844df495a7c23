import { useQueryClient } from "@tanstack/react-query";
import { Circle, CircleCheck, CircleDot, CircleX, Clock } from "lucide-react";
import { useEffect } from "react";
import { Link } from "wouter";
import type { Client } from "../../../../src/client/connect.ts";
import type { ShipDetails } from "../../../../src/contract/ship/ship-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { shipStatus } from "../../data/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../data/work-queries.ts";
import { Copy } from "../../parts/copy.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { Time, Until } from "../../parts/time.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { JobFrame, JobPage } from "../job/job-page.tsx";
import styles from "./ship.module.css";
import { ShipActions } from "./ship-actions.tsx";
import { shownSteps, stepTitles, webAddress } from "./ship-steps.ts";

const WATCH_SECONDS = 25;
const AGAIN_MS = 2_000;

export default function Ship() {
  const { ships } = useStation();
  return (
    <JobPage kind="ship" get={ships.get}>
      {(ship, word) => <OpenShip ship={ship} word={word} />}
    </JobPage>
  );
}

/** Waits for events after the ones shown, until the ship has ended. */
function useWatched(word: string, ship: ShipDetails): void {
  const station = useStation();
  const queries = useQueryClient();
  const { seq, status } = ship;
  const isOver = status === "merged" || status === "cancelled";
  useEffect(() => {
    if (isOver) return;
    const ends = new AbortController();
    void nextOf(station, { word, afterSeq: seq, signal: ends.signal }).then((next) => {
      if (next === null || ends.signal.aborted) return;
      queries.setQueryData(workKeys.of("ship", word), next);
      lookAtWorkAgain(queries);
    });
    return () => ends.abort();
  }, [station, queries, word, seq, isOver]);
}

/** Returns the ship as soon as it has another event; null after the user has left the page. */
async function nextOf(station: Client, { word, afterSeq, signal }: { word: string; afterSeq: number; signal: AbortSignal }) {
  while (!signal.aborted) {
    try {
      const next = await station.ships.watch(word, { afterSeq, seconds: WATCH_SECONDS }, { signal });
      if (next.seq !== afterSeq) return next;
    } catch {
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
  return null;
}

function OpenShip({ ship, word }: { ship: ShipDetails; word: string }) {
  useWatched(word, ship);
  const queries = useQueryClient();
  const lookAgain = () => {
    void queries.invalidateQueries({ queryKey: workKeys.of("ship", word) });
    lookAtWorkAgain(queries);
  };
  return (
    <JobFrame kind="ship" status={shipStatus(ship)} title={ship.title} actions={<ShipActions ship={ship} onDone={lookAgain} />}>
      <TwoColumns label="Steps and events" side={<About ship={ship} />}>
        <Refusal ship={ship} />
        <Steps ship={ship} />
        <Section title="Events">
          <EventList label="Events" events={ship.history.map(({ type, at, data }, index) => ({ key: index, type, at, data }))} />
        </Section>
      </TwoColumns>
    </JobFrame>
  );
}

/** Why the ship does not continue, and what to do about it. */
function Refusal({ ship: { error, status, nextAt } }: { ship: ShipDetails }) {
  if (error === null) return null;
  return (
    <div className={styles.error} role="alert">
      <strong>{visibleLines(error.message)}</strong>
      {error.hint !== undefined && <p>{visibleLines(error.hint)}</p>}
      {status === "waiting" && nextAt !== null && (
        <p>
          Next attempt <Until at={nextAt} />.
        </p>
      )}
    </div>
  );
}

const icons = { pending: Circle, running: CircleDot, waiting: Clock, failed: CircleX, done: CircleCheck } as const;
const words = { pending: "pending", running: "running", waiting: "waiting", failed: "failed", done: "done" } as const;

function Steps({ ship }: { ship: ShipDetails }) {
  return (
    <ol className={styles.steps} aria-label="Steps">
      {shownSteps(ship).map(({ step, state, text, attempts }) => {
        const Icon = icons[state];
        return (
          <li key={step} data-state={state}>
            <Icon aria-hidden="true" />
            <span className={styles.name}>{stepTitles[step]}</span>
            <span className={styles.state}>
              {attempts > 1 && `${attempts} attempts, `}
              {words[state]}
            </span>
            {text !== "" && <span className={styles.text}>{visibleText(text)}</span>}
          </li>
        );
      })}
    </ol>
  );
}

function About({ ship }: { ship: ShipDetails }) {
  const { target, branch, into, request, commit, run, session, tests } = ship;
  const address = request === null ? null : webAddress(request.url);
  return (
    <Side label="About this ship">
      <Section title="About">
        <Facts>
          <Fact name="ID">
            <code>{ship.id}</code> <Copy text={ship.id} what="ID" />
          </Fact>
          <Fact name="Target">
            {visibleText(target.remote)} <span className={styles.quiet}>{target.forge}</span>
          </Fact>
          {branch !== null && (
            <Fact name="Branch">
              <code>{visibleText(branch)}</code> <Copy text={branch} what="branch name" />
            </Fact>
          )}
          {into !== null && (
            <Fact name="Into">
              <code>{visibleText(into)}</code>
            </Fact>
          )}
          {request !== null && (
            <Fact name="Pull request">
              {address === null ? (
                visibleText(request.id)
              ) : (
                <a href={address} target="_blank" rel="noreferrer noopener" className="link">
                  {visibleText(address)}
                </a>
              )}
            </Fact>
          )}
          {commit !== null && (
            <Fact name="Commit">
              <code>{commit.slice(0, 12)}</code> <Copy text={commit} what="commit hash" />
            </Fact>
          )}
          <Fact name="Source">
            {run === null ? (
              visibleText(session)
            ) : (
              <Link href={`/runs/${run}?tab=changes`} className="link">
                {run}
              </Link>
            )}
          </Fact>
          {ship.spec !== null && (
            <Fact name="Part of">
              <Link href={`/specs/${ship.spec}`} className="link">
                {ship.spec}
              </Link>
            </Fact>
          )}
          <Fact name="Started">
            <Time at={ship.createdAt} />
          </Fact>
          <Fact name="Owner">{visibleText(ship.owner)}</Fact>
        </Facts>
      </Section>
      <Section title="Tests">
        {tests.kind === "waived" ? (
          <p>Shipped without tests: {visibleLines(tests.reason)}</p>
        ) : (
          <p>
            <Link href={`/runs/${tests.run}?event=${tests.requestedSeq}`} className="link">
              <code>{visibleText(tests.command)}</code>
            </Link>{" "}
            passed, <Time at={tests.at} />
          </p>
        )}
      </Section>
    </Side>
  );
}
