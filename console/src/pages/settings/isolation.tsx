import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { AttackVerdict, SignedReport } from "../../../../src/contract/machine/attack-report.ts";
import { useStation } from "../../data/station.tsx";
import { plural } from "../../parts/amounts.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { ChoiceField } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { saveFile } from "../../parts/save-file.ts";
import { Time } from "../../parts/time.tsx";
import styles from "./settings.module.css";

const tones: Record<AttackVerdict["verdict"], Tone> = { observed: "good", failed: "bad", declared: "idle", unverifiable: "warn" };
const words: Record<AttackVerdict["verdict"], string> = {
  observed: "held",
  failed: "broken",
  declared: "not tested",
  unverifiable: "cannot be tested here",
};
const reportKey = ["isolation-report"] as const;

/** Attacks a runtime's isolation, and shows the result in a report that this station signs. */
export default function Isolation() {
  const station = useStation();
  const queries = useQueryClient();
  const doctor = useQuery({ queryKey: ["doctor"], queryFn: ({ signal }) => station.machine.doctor({}, { signal }), staleTime: 300_000 });
  const last = useQuery<SignedReport | null>({ queryKey: reportKey, queryFn: () => null, staleTime: Number.POSITIVE_INFINITY });
  const [runtime, setRuntime] = useState("");
  const [verdicts, setVerdicts] = useState<readonly AttackVerdict[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const trying = useRef<AbortController | null>(null);
  useEffect(() => () => trying.current?.abort(), []);
  const attack = async () => {
    const current = new AbortController();
    trying.current = current;
    setError(null);
    setVerdicts([]);
    try {
      for await (const update of station.machine.attack(runtime === "" ? {} : { runtime }, { signal: current.signal })) {
        if ("signed" in update) queries.setQueryData(reportKey, update.signed);
        else setVerdicts((before) => [...(before ?? []), update.verdict]);
      }
    } catch (caught) {
      if (!current.signal.aborted) setError(caught);
    }
    trying.current = null;
    if (!current.signal.aborted) setVerdicts(null);
  };
  const usable = (doctor.data?.runtimes ?? []).filter((each) => each.usable).map(({ name }) => name);
  const report = last.data ?? null;
  return (
    <>
      <p className={styles.about}>
        Creates sandboxes and attacks them from inside: escapes, host files, other sandboxes, the network, resource exhaustion. This takes a
        few minutes and does not touch your data.
      </p>
      <div className={styles.line}>
        <ChoiceField
          label="Runtime"
          value={runtime}
          choices={[{ value: "", label: "station default" }, ...usable.map((name) => ({ value: name, label: name }))]}
          onChoice={setRuntime}
        />
        {verdicts === null ? (
          <Button look="main" onClick={() => void attack()}>
            Run the attacks
          </Button>
        ) : (
          <span role="status">Running… {plural(verdicts.length, "attack")} so far</span>
        )}
      </div>
      {error !== null && <Problem error={error} />}
      {verdicts !== null && <Verdicts verdicts={verdicts} />}
      {verdicts === null && report !== null && <Report signed={report} />}
    </>
  );
}

function Report({ signed }: { signed: SignedReport }) {
  const { report } = signed;
  return (
    <>
      <Card
        title={report.runtime}
        badges={<Badge tone={report.holds ? "good" : "bad"}>{report.holds ? "isolation held" : "isolation failed"}</Badge>}
      >
        <p>
          {report.versions.kernel} · {report.versions.architecture} · Caisson {report.versions.caisson} · <Time at={report.endedAt} />
        </p>
        <div className={styles.line}>
          <Button onClick={() => saveFile(`attack-report-${report.runtime}.json`, JSON.stringify(signed, null, 2), "application/json")}>
            Save the signed report
          </Button>
        </div>
      </Card>
      <Verdicts verdicts={report.verdicts} />
    </>
  );
}

/** Failures come first. */
function Verdicts({ verdicts }: { verdicts: readonly AttackVerdict[] }) {
  if (verdicts.length === 0) return null;
  const sorted = verdicts.toSorted((one, other) => Number(other.verdict === "failed") - Number(one.verdict === "failed"));
  return (
    <ul className={styles.verdicts} aria-label="Attacks">
      {sorted.map(({ id, title, group, verdict, tried, seen }) => (
        <li key={id}>
          <Badge tone={tones[verdict]}>{words[verdict]}</Badge>
          <details>
            <summary>
              {title} <span className={styles.dim}>{group}</span>
            </summary>
            <p>{tried}</p>
            <p>{seen}</p>
          </details>
        </li>
      ))}
    </ul>
  );
}
