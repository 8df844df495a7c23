import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Empty } from "../../parts/empty.tsx";
import { ChoiceField } from "../../parts/field.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { phaseTitles } from "./phase-text.ts";
import styles from "./spec.module.css";

/** Every version with its author, and its changes compared with another. */
export function Versions({ view }: { view: SpecView }) {
  const last = view.versions.at(-1)?.version ?? 0;
  const [chosen, setChosen] = useState<number | null>(null);
  const [against, setAgainst] = useState<number | null>(null);
  const to = chosen ?? last;
  const from = against !== null && against < to ? against : to - 1;
  if (last === 0)
    return <Empty title="No versions yet">A phase creates a version when it passes its checks, or when someone writes it by hand.</Empty>;
  return (
    <div className={styles.versions}>
      <ol className={styles.list} aria-label="Versions">
        {view.versions.toReversed().map(({ version, phase, by, at }) => (
          <li key={version}>
            <button type="button" className={styles.version} aria-pressed={version === to} onClick={() => setChosen(version)}>
              <span>
                {version}: {phaseTitles[phase]}
              </span>
              <span className={styles.quiet}>
                {visibleText(by)}, <Time at={at} />
              </span>
            </button>
          </li>
        ))}
      </ol>
      <div className={styles.one}>
        <ChoiceField
          label="Compared with"
          choices={Array.from({ length: to }, (_, version) => ({
            value: String(version),
            label: version === 0 ? "nothing" : `version ${version}`,
          }))}
          value={String(from)}
          onChoice={(value) => setAgainst(Number(value))}
        />
        <Diff spec={view.spec} from={from} to={to} />
      </div>
    </div>
  );
}

function Diff({ spec, from, to }: { spec: string; from: number; to: number }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: ["spec-diff", spec, from, to],
    queryFn: ({ signal }) => station.specs.diff(spec, { from, to }, { signal }),
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  if (data.diff === "") return <p className={styles.quiet}>No differences.</p>;
  return (
    <pre className={styles.diff}>
      {data.diff
        .replace(/\n$/, "")
        .split("\n")
        .map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line is identified by its index.
          <span key={index} data-kind={kindOf(line)}>
            {visibleLines(line) || " "}
          </span>
        ))}
    </pre>
  );
}

function kindOf(line: string): "added" | "removed" | "place" | "same" {
  if (/^(?:\+\+\+|---|@@)/.test(line)) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
}
