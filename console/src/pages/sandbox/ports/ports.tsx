import { useQuery } from "@tanstack/react-query";
import { MonitorPlay } from "lucide-react";
import { useSearchParams } from "wouter";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import type { SandboxPart } from "../use-sandbox.ts";
import styles from "./ports.module.css";
import { Preview } from "./preview.tsx";

const LOOK_MS = 2_000;

/** The ports that programs inside listen on, and a preview of one. */
export default function Ports({ sandbox }: SandboxPart) {
  const station = useStation();
  const [params, setParams] = useSearchParams();
  const { data, error, refetch } = useQuery({
    queryKey: ["ports", sandbox.id],
    queryFn: ({ signal }) => station.networks.ports(sandbox.id, { signal }),
    refetchInterval: LOOK_MS,
    enabled: sandbox.state === "running",
  });
  if (sandbox.state !== "running") return <Empty title={`The sandbox is ${sandbox.state}`} />;
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const shownPort = Number(params.get("port"));
  const choose = (port: number) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        after.set("port", String(port));
        return after;
      },
      { replace: true },
    );
  const isPort = Number.isInteger(shownPort) && shownPort > 0 && shownPort <= 65_535;
  if (data.length === 0 && !isPort) {
    return (
      <Empty title="No open ports">
        Start a server in the terminal, for example with <code>python3 -m http.server 8000</code>. Its port appears here, and you can
        preview it.
      </Empty>
    );
  }
  return (
    <div className={styles.ports}>
      <ul className={styles.list} aria-label="Ports">
        {data.map(({ port, address }) => (
          <li key={port} className={`${styles.port} ${port === shownPort ? styles.chosen : ""}`}>
            <span>
              <code>{port}</code>
              <span className={styles.address}>{address}</span>
            </span>
            <Button
              look="plain"
              icon={<MonitorPlay />}
              label={`Show port ${port}`}
              onClick={() => choose(port)}
              isOn={port === shownPort}
            />
          </li>
        ))}
      </ul>
      {isPort ? (
        <Preview key={shownPort} sandbox={sandbox.id} port={shownPort} listens={data.some(({ port }) => port === shownPort)} />
      ) : (
        <Empty title="Choose a port to preview">A preview has its own origin. It cannot see this page or any other.</Empty>
      )}
    </div>
  );
}
