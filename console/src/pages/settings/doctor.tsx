import { useQuery } from "@tanstack/react-query";
import type { RuntimeReport } from "../../../../src/contract/machine-verbs.ts";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { duration } from "../../parts/time.tsx";
import { useStation } from "../../station/station.tsx";
import styles from "./settings.module.css";

const walls = ["no wall", "shared kernel", "kernel of its own in user space", "kernel of its own"] as const;

/** What this machine can do, what it cannot, and the fix for each. */
export default function Doctor() {
  const station = useStation();
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ["doctor"],
    queryFn: ({ signal }) => station.machine.doctor({}, { signal }),
    staleTime: 300_000,
  });
  return (
    <>
      <div className={styles.told}>
        <Button disabled={isFetching} onClick={() => void refetch()}>
          {isFetching ? "Looking…" : "Look again"}
        </Button>
        {data !== undefined && (
          <span className={styles.dim}>
            Caisson {data.version} · {data.machine.kernel} · {data.machine.architecture} · {data.machine.cgroups} · as{" "}
            {data.machine.user === "root" ? "root" : "an ordinary user"}
          </span>
        )}
      </div>
      {error !== null && <Problem error={error} />}
      {data === undefined && error === null && <Loading />}
      {data?.runtimes.map((report) => (
        <Runtime key={report.name} report={report} isChosen={report.name === data.chosen} />
      ))}
      {data !== undefined && (
        <Card title="Models">
          <p>Without another word, runs use {data.models.default ?? "no model: choose one for each run"}.</p>
          <ul>
            {data.models.providers.map((provider) => (
              <li key={provider.name}>
                {provider.name}: {provider.set.length > 0 ? `${provider.set.join(", ")} is set` : `needs ${provider.keys.join(" or ")}`}
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function Runtime({ report, isChosen }: { report: RuntimeReport; isChosen: boolean }) {
  const { name, usable, capabilities, findings, startMs } = report;
  const told = findings.filter(({ level }) => level !== "ok");
  return (
    <Card
      title={name}
      badges={
        <>
          <Badge tone={usable ? "good" : "idle"}>{usable ? "usable" : "not here"}</Badge>
          {isChosen && <Badge tone="busy">used by default</Badge>}
        </>
      }
    >
      {capabilities !== null && (
        <p className={styles.dim}>
          {walls[capabilities.isolation]}
          {startMs !== null && ` · starts in ${duration(startMs)}`}
        </p>
      )}
      {told.length > 0 && (
        <ul>
          {told.map(({ level, text, fix }) => (
            <li key={text}>
              <strong>{level === "problem" ? "Problem: " : ""}</strong>
              {text}
              {fix !== undefined && (
                <div className={styles.fix}>
                  <Fix text={fix} />
                  <Copy text={fix} what="the fix" />
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

/** A command, or a sentence with commands in it. */
function Fix({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length === 1) return <code>{text}</code>;
  return (
    <p>
      {parts.map((part, at) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text, which stay where they are.
        at % 2 === 1 ? <code key={at}>{part}</code> : part,
      )}
    </p>
  );
}
