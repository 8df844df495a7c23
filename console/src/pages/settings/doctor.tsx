import { useQuery } from "@tanstack/react-query";
import type { RuntimeReport } from "../../../../src/contract/machine/machine-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Card } from "../../parts/card.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { duration } from "../../parts/time.tsx";
import styles from "./settings.module.css";

const walls = ["no isolation", "shared kernel", "separate kernel in user space", "separate kernel"] as const;

/** Reports what this machine supports, what it does not, and how to fix that. */
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
          {isFetching ? "Checking…" : "Check again"}
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
          <p>Default model for runs: {data.models.default ?? "none, so choose one for each run"}.</p>
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
  const shownFindings = findings.filter(({ level }) => level !== "ok");
  return (
    <Card
      title={name}
      badges={
        <>
          <Badge tone={usable ? "good" : "idle"}>{usable ? "usable" : "unavailable"}</Badge>
          {isChosen && <Badge tone="busy">default</Badge>}
        </>
      }
    >
      {capabilities !== null && (
        <p className={styles.dim}>
          {walls[capabilities.isolation]}
          {startMs !== null && ` · starts in ${duration(startMs)}`}
        </p>
      )}
      {shownFindings.length > 0 && (
        <ul>
          {shownFindings.map(({ level, text, fix }) => (
            <li key={text}>
              <strong>{level === "problem" ? "Problem: " : ""}</strong>
              {text}
              {fix !== undefined && (
                <div className={styles.fix}>
                  <Fix text={fix} />
                  <Copy text={fix} what="fix" />
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
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text keep their order.
        at % 2 === 1 ? <code key={at}>{part}</code> : part,
      )}
    </p>
  );
}
