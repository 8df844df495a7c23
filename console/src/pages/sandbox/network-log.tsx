import { useEffect, useState } from "react";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import type { NetworkPolicy } from "../../../../src/contract/network/network.ts";
import type { NetworkEvent } from "../../../../src/contract/network/network-event.ts";
import { useStation } from "../../data/station.tsx";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./network.module.css";
import { canAllow, type LogLine, lineOf } from "./network-lines.ts";

const LINES_MAX = 500;
const TOGETHER_MS = 100;

/** Lists allowed and denied connections live, latest first. */
export function NetworkLog({
  sandbox,
  policy,
  onAllow,
}: {
  sandbox: string;
  policy: NetworkPolicy;
  onAllow(host: string, ports: number[]): Promise<void>;
}) {
  const [onlyDenied, setOnlyDenied] = useState(false);
  const { lines, error } = useNetworkLines(sandbox);
  const shownLines = lines.filter(({ tone }) => !onlyDenied || tone === "bad");
  return (
    <section className={styles.log} aria-label="Log">
      <header className={styles.head}>
        <h2>Log</h2>
        <Button look="plain" isOn={onlyDenied} onClick={() => setOnlyDenied(!onlyDenied)}>
          Denied only
        </Button>
      </header>
      {error !== null && <Problem error={error} />}
      {error === null && shownLines.length === 0 && (
        <Empty title={onlyDenied ? "No denied connections" : "No connections yet"}>
          Connections that programs inside attempt appear here, with their outcome.
        </Empty>
      )}
      <ul>
        {shownLines.map((line) => (
          <li key={line.key} className={styles.line}>
            <Badge tone={line.tone as Tone}>{line.word}</Badge>
            <span className={styles.what}>
              <code>{visibleText(line.what)}</code>
              <span className={styles.about}>{visibleText(line.about)}</span>
            </span>
            {line.target !== null && canAllow(line.target, policy) && (
              <Button onClick={() => line.target !== null && void onAllow(line.target.host, [line.target.port])}>Allow</Button>
            )}
            <span className={styles.at}>
              <Time at={line.at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function useNetworkLines(sandbox: string): { lines: readonly LogLine[]; error: unknown } {
  const station = useStation();
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const ends = new AbortController();
    let waiting: NetworkEvent[] = [];
    let count = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer = undefined;
      const next = waiting.flatMap((event, index) => lineOf(event, count + index) ?? []).reverse();
      count += waiting.length;
      waiting = [];
      setLines((before) => [...next, ...before].slice(0, LINES_MAX));
    };
    const follow = async () => {
      for await (const event of station.networks.log(sandbox, { follow: true, signal: ends.signal })) {
        waiting.push(event);
        if (waiting.length > LINES_MAX) waiting.shift();
        timer ??= setTimeout(show, TOGETHER_MS);
      }
    };
    setLines([]);
    setError(null);
    follow().catch((reason: unknown) => {
      // A sandbox without a network has no network log.
      const isNone = reason instanceof CaissonError && reason.code === "not_found";
      if (!ends.signal.aborted && !isNone) setError(reason);
    });
    return () => {
      ends.abort();
      clearTimeout(timer);
    };
  }, [station, sandbox]);
  return { lines, error };
}
