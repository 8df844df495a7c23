import { useQuery } from "@tanstack/react-query";
import { MonitorPlay } from "lucide-react";
import { useSearchParams } from "wouter";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { useStation } from "../../../station/station.tsx";
import type { SandboxPart } from "../use-sandbox.ts";
import styles from "./ports.module.css";
import { Preview } from "./preview.tsx";

const LOOK_MS = 2_000;

/** What listens inside, and one of them as a page. */
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
  const shown = Number(params.get("port"));
  const choose = (port: number) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        after.set("port", String(port));
        return after;
      },
      { replace: true },
    );
  const isPort = Number.isInteger(shown) && shown > 0 && shown <= 65_535;
  if (data.length === 0 && !isPort) {
    return (
      <Empty title="Nothing listens inside">
        Start a server in the terminal, such as <code>python3 -m http.server 8000</code>; its port is listed here and can be looked at.
      </Empty>
    );
  }
  return (
    <div className={styles.ports}>
      <ul className={styles.list} aria-label="Ports">
        {data.map(({ port, address }) => (
          <li key={port} className={`${styles.port} ${port === shown ? styles.chosen : ""}`}>
            <span>
              <code>{port}</code>
              <span className={styles.address}>{address}</span>
            </span>
            <Button look="plain" icon={<MonitorPlay />} label={`Show port ${port}`} onClick={() => choose(port)} isOn={port === shown} />
          </li>
        ))}
      </ul>
      {isPort ? (
        <Preview key={shown} sandbox={sandbox.id} port={shown} listens={data.some(({ port }) => port === shown)} />
      ) : (
        <Empty title="Choose a port to look at">What it shows has an origin of its own: it sees nothing of this page or of others.</Empty>
      )}
    </div>
  );
}
