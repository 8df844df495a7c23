import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { useStation } from "../../data/station.tsx";
import { bytes } from "../../parts/amounts.ts";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import styles from "./resources.module.css";
import { addSample, type Sample, seriesOf } from "./samples.ts";
import type { SandboxPart } from "./use-sandbox.ts";

const Chart = lazy(() => import("./chart.tsx"));
const LOOK_MS = 2_000;

/** Charts of a sandbox's resource usage, from now on. */
export default function Resources({ sandbox }: SandboxPart) {
  const station = useStation();
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const { data, error, refetch } = useQuery({
    queryKey: ["stats", sandbox.id],
    queryFn: async ({ signal }) => ({ at: Date.now(), ...(await station.sandboxes.stats(sandbox.id, { signal })) }),
    refetchInterval: LOOK_MS,
    structuralSharing: false,
  });
  useEffect(() => {
    if (data !== undefined) setSamples((before) => addSample(before, data));
  }, [data]);
  if (error !== null && data === undefined) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const { limits } = sandbox;
  const { times, cpus, memory, processes, disk } = seriesOf(samples);
  const charts = [
    { name: "CPU", unit: "cpus", values: cpus, max: limits.cpus, text: (value: number) => `${value.toFixed(2)} CPUs` },
    { name: "Memory", unit: "bytes", values: memory, max: limits.memoryBytes, text: bytes },
    { name: "Processes", unit: "count", values: processes, max: limits.pids, text: String },
    { name: "Disk", unit: "bytes", values: disk, max: limits.diskBytes, text: bytes },
  ] as const;
  return (
    <div className={styles.resources}>
      {charts.map(({ name, values, max, text, unit }) => {
        const last = values.at(-1) ?? null;
        return (
          <section key={name} className={styles.card} aria-label={name}>
            <header>
              <h2>{name}</h2>
              <span className={styles.now}>{last === null ? "—" : text(last)}</span>
              {max !== null && <span className={styles.max}>of {text(max).replace(" CPUs", "").replace(".00", "")}</span>}
            </header>
            {times.length > 1 && values.some((value) => value !== null) ? (
              <Suspense fallback={<Loading rows={2} />}>
                <Chart times={times} values={values} text={text} unit={unit} />
              </Suspense>
            ) : (
              <p className={styles.none}>{times.length < 2 || name === "CPU" ? "Measuring…" : "Not available here."}</p>
            )}
          </section>
        );
      })}
      <p className={styles.source}>
        {data.source === "host" ? "Measured by the host." : "Reported by the sandbox itself; nothing outside measures it here."}
        {data.memoryKills !== null && data.memoryKills > 0 && ` Processes killed when memory ran out: ${data.memoryKills}.`}
      </p>
    </div>
  );
}
