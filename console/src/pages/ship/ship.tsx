import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Circle, CircleCheck, CircleDot, CircleX, Clock } from "lucide-react";
import { useEffect } from "react";
import { Link, useParams } from "wouter";
import type { Client } from "../../../../src/client/connect.ts";
import type { ShipDetails } from "../../../../src/contract/ship-verbs.ts";
import { Badge } from "../../parts/badge.tsx";
import { Copy } from "../../parts/copy.tsx";
import { EventList } from "../../parts/event-list.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { NotThere } from "../../parts/not-there.tsx";
import { Page } from "../../parts/page.tsx";
import { Time, Until } from "../../parts/time.tsx";
import { Side, TwoColumns } from "../../parts/two-columns.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useStation } from "../../station/station.tsx";
import { shipStatus } from "../../station/work-item.ts";
import { lookAtWorkAgain, workKeys } from "../../station/work-queries.ts";
import styles from "./ship.module.css";
import { ShipActions } from "./ship-actions.tsx";
import { shownSteps, stepTitles, webAddress } from "./ship-steps.ts";

const WATCH_SECONDS = 25;
const AGAIN_MS = 2_000;

export default function Ship() {
  const { ship = "" } = useParams<{ ship: string }>();
  return <ShipPage key={ship} word={ship} />;
}

function ShipPage({ word }: { word: string }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: workKeys.ship(word),
    queryFn: ({ signal }) => station.ships.get(word, { signal }),
  });
  useWatched(word, data);
  if (data === undefined) return <NotThere what="ship" error={error} onRetry={() => void refetch()} />;
  return <OpenShip ship={data} word={word} />;
}

/** Asks for what happens after what is shown, until it is over. */
function useWatched(word: string, ship: ShipDetails | undefined): void {
  const station = useStation();
  const queries = useQueryClient();
  const seq = ship?.seq;
  const isOver = ship?.status === "merged" || ship?.status === "cancelled";
  useEffect(() => {
    if (seq === undefined || isOver) return;
    const ends = new AbortController();
    void nextOf(station, { word, afterSeq: seq, signal: ends.signal }).then((next) => {
      if (next === null || ends.signal.aborted) return;
      queries.setQueryData(workKeys.ship(word), next);
      lookAtWorkAgain(queries);
    });
    return () => ends.abort();
  }, [station, queries, word, seq, isOver]);
}

/** The ship once it has another event; null when nobody wants to know any more. */
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
  const queries = useQueryClient();
  const lookAgain = () => {
    void queries.invalidateQueries({ queryKey: workKeys.ship(word) });
    lookAtWorkAgain(queries);
  };
  const status = shipStatus(ship);
  const title = visibleText(ship.title);
  return (
    <Page
      title={`${status.word}: ${title}`}
      name={
        <NameLine up={{ href: "/work?kind=ship", label: "Ships" }} name={title}>
          <Badge tone={status.tone}>{status.word}</Badge>
        </NameLine>
      }
      actions={<ShipActions ship={ship} onDone={lookAgain} />}
    >
      <TwoColumns label="Steps and events" side={<About ship={ship} />}>
        <Refusal ship={ship} />
        <Steps ship={ship} />
        <Section title="What happened">
          <EventList
            label="Events of the ship"
            events={ship.history.map(({ type, at, data }, index) => ({ key: index, type, at, data }))}
          />
        </Section>
      </TwoColumns>
    </Page>
  );
}

/** Why it does not go on, and what to do about it. */
function Refusal({ ship: { error, status, nextAt } }: { ship: ShipDetails }) {
  if (error === null) return null;
  return (
    <div className={styles.error} role="alert">
      <strong>{visibleLines(error.message)}</strong>
      {error.hint !== undefined && <p>{visibleLines(error.hint)}</p>}
      {status === "waiting" && nextAt !== null && (
        <p>
          It is tried again <Until at={nextAt} />.
        </p>
      )}
    </div>
  );
}

const icons = { pending: Circle, running: CircleDot, waiting: Clock, failed: CircleX, done: CircleCheck } as const;
const words = { pending: "to come", running: "running", waiting: "waiting", failed: "failed", done: "done" } as const;

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
          <Fact name="Id">
            <code>{ship.id}</code> <Copy text={ship.id} what="id" />
          </Fact>
          <Fact name="To">
            {visibleText(target.remote)} <span className={styles.quiet}>{target.forge}</span>
          </Fact>
          {branch !== null && (
            <Fact name="Branch">
              <code>{visibleText(branch)}</code> <Copy text={branch} what="the branch's name" />
            </Fact>
          )}
          {into !== null && (
            <Fact name="Into">
              <code>{visibleText(into)}</code>
            </Fact>
          )}
          {request !== null && (
            <Fact name="Request">
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
              <code>{commit.slice(0, 12)}</code> <Copy text={commit} what="the commit's name" />
            </Fact>
          )}
          <Fact name="Of">
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
          <p>Shipped without: {visibleLines(tests.reason)}</p>
        ) : (
          <p>
            <Link href={`/runs/${tests.run}?event=${tests.requestedSeq}`} className="link">
              <code>{visibleText(tests.command)}</code>
            </Link>{" "}
            ran well, <Time at={tests.at} />
          </p>
        )}
      </Section>
    </Side>
  );
}
