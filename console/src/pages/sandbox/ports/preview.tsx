import { useQuery } from "@tanstack/react-query";
import { ExternalLink, Monitor, RotateCw, Smartphone, Tablet } from "lucide-react";
import { useState } from "react";
import { Button } from "../../../parts/button.tsx";
import { Copy } from "../../../parts/copy.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { useStation } from "../../../station/station.tsx";
import styles from "./ports.module.css";

const widths = [
  { name: "Phone", px: 390, icon: <Smartphone /> },
  { name: "Tablet", px: 820, icon: <Tablet /> },
  { name: "Whole width", px: null, icon: <Monitor /> },
] as const;

/**
 * A page of a sandbox in a frame of another origin, which may run scripts and keep things for itself, and can neither
 * reach this page nor take its place.
 */
const may = "allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-downloads";

export function Preview({ sandbox, port, listens }: { sandbox: string; port: number; listens: boolean }) {
  const station = useStation();
  const [width, setWidth] = useState<number | null>(null);
  const [loads, setLoads] = useState(0);
  const { data, error, refetch } = useQuery({
    queryKey: ["preview", sandbox, port],
    // One that is open already is taken, whoever opened it.
    async queryFn({ signal }) {
      const open = (await station.networks.previews({ signal })).find((each) => each.sandbox === sandbox && each.port === port);
      return open ?? station.networks.keepPreview(sandbox, { port }, { signal });
    },
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const isOurs = isOwnOrigin(data.url);
  const isElsewhere = isLoopback(data.url) && !isLoopback(location.href);
  return (
    <section className={styles.preview} aria-label={`Preview of port ${port}`}>
      <header className={styles.bar}>
        <Button look="plain" label="Load again" icon={<RotateCw />} onClick={() => setLoads(loads + 1)} />
        <code className={styles.url}>{data.url}</code>
        <Copy text={data.url} what="address" />
        {widths.map(({ name, px, icon }) => (
          <Button
            key={name}
            look="plain"
            label={name}
            icon={icon}
            isOn={width === px}
            onClick={() => setWidth(px)}
            className={styles.width ?? ""}
          />
        ))}
        <a className={styles.apart} href={isOurs ? undefined : data.url} target="_blank" rel="noreferrer" title="Open apart">
          <ExternalLink aria-hidden="true" />
          <span className="visually-hidden">Open apart</span>
        </a>
      </header>
      {!listens && <p className={styles.note}>Nothing listens on {port} at present.</p>}
      <div className={styles.room}>
        {isElsewhere ? (
          <FromElsewhere url={data.url} />
        ) : isOurs ? (
          <p className={styles.note}>This station has no origin of its own for previews here.</p>
        ) : (
          <iframe
            key={`${loads} ${listens}`}
            title={`Port ${port}`}
            src={data.url}
            sandbox={may}
            referrerPolicy="no-referrer"
            style={width === null ? {} : { inlineSize: `${width}px` }}
          />
        )}
      </div>
    </section>
  );
}

/** A preview listens on the station's machine alone, and the browser is on another one. */
function FromElsewhere({ url }: { url: string }) {
  const { port } = new URL(url);
  const forward = `ssh -N -L ${port}:127.0.0.1:${port} ${location.hostname}`;
  return (
    <div className={styles.note}>
      <p>
        This preview listens on the station's machine only, so that nobody else gets at it. To see it from here, bring its port to your
        machine, and open <a href={url}>{url}</a>:
      </p>
      <p>
        <code>{forward}</code> <Copy text={forward} what="command" />
      </p>
    </div>
  );
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(127\.[\d.]+|\[::1\]|localhost|.+\.localhost)$/.test(new URL(url).hostname);
}

/** Fails closed: a frame of this page's own origin could do whatever this page can. */
function isOwnOrigin(url: string): boolean {
  return !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol) || new URL(url).origin === location.origin;
}
