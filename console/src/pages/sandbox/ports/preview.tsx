import { useQuery } from "@tanstack/react-query";
import { ExternalLink, Monitor, RotateCw, Smartphone, Tablet } from "lucide-react";
import { useState } from "react";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Copy } from "../../../parts/copy.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import styles from "./ports.module.css";

const widths = [
  { name: "Phone", px: 390, icon: <Smartphone /> },
  { name: "Tablet", px: 820, icon: <Tablet /> },
  { name: "Full width", px: null, icon: <Monitor /> },
] as const;

/**
 * The rights of the preview's frame. It has another origin, and may run scripts and store data, but can neither access
 * nor replace this page.
 */
const may = "allow-scripts allow-same-origin allow-forms allow-modals allow-popups allow-downloads";

export function Preview({ sandbox, port, listens }: { sandbox: string; port: number; listens: boolean }) {
  const station = useStation();
  const [width, setWidth] = useState<number | null>(null);
  const [loads, setLoads] = useState(0);
  const { data, error, refetch } = useQuery({
    queryKey: ["preview", sandbox, port],
    // An open preview is reused, even one that another client opened.
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
        <Button look="plain" label="Reload" icon={<RotateCw />} onClick={() => setLoads(loads + 1)} />
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
        <a className={styles.apart} href={isOurs ? undefined : data.url} target="_blank" rel="noreferrer" title="Open in a new tab">
          <ExternalLink aria-hidden="true" />
          <span className="visually-hidden">Open in a new tab</span>
        </a>
      </header>
      {!listens && <p className={styles.note}>Nothing is listening on port {port}.</p>}
      <div className={styles.room}>
        {isElsewhere ? (
          <FromElsewhere url={data.url} />
        ) : isOurs ? (
          <p className={styles.note}>This station has no separate origin for previews here.</p>
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

/** Shown in a browser on another machine, because a preview listens only on the station's machine. */
function FromElsewhere({ url }: { url: string }) {
  const { port } = new URL(url);
  const forward = `ssh -N -L ${port}:127.0.0.1:${port} ${location.hostname}`;
  return (
    <div className={styles.note}>
      <p>
        This preview listens only on the station's machine; no other machine can reach it. To see it here, forward its port to your machine
        with this command, then open <a href={url}>{url}</a>.
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

/** Fails closed, because a frame with this page's own origin could do everything that this page can. */
function isOwnOrigin(url: string): boolean {
  return !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol) || new URL(url).origin === location.origin;
}
