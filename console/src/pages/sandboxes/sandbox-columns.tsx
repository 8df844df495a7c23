import { Link } from "wouter";
import type { SandboxInfo } from "../../../../src/contract/sandbox.ts";
import { isStationLabel } from "../../../../src/contract/station-labels.ts";
import { Activity } from "../../parts/activity.tsx";
import type { Column } from "../../parts/list.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { networkWord, templateWord } from "./narrow-sandboxes.ts";
import { SandboxState } from "./sandbox-state.tsx";
import styles from "./sandboxes.module.css";

const LABELS_SHOWN = 3;

export const columns: readonly Column<SandboxInfo>[] = [
  { id: "name", name: "Name", width: "minmax(160px, 2fr)", canSort: true, cell: (sandbox) => <Name sandbox={sandbox} /> },
  { id: "state", name: "State", width: "116px", canSort: true, cell: (sandbox) => <SandboxState sandbox={sandbox} /> },
  { id: "runtime", name: "Runtime", width: "80px", canSort: true, cell: ({ runtime }) => <span className={styles.quiet}>{runtime}</span> },
  { id: "from", name: "Made from", width: "minmax(0, 0.7fr)", cell: ({ template }) => <Quiet text={templateWord(template)} /> },
  { id: "network", name: "Network", width: "minmax(0, 1.2fr)", cell: ({ network }) => <Quiet text={networkWord(network)} /> },
  { id: "labels", name: "Labels", width: "minmax(0, 1.2fr)", cell: (sandbox) => <Labels sandbox={sandbox} /> },
  { id: "activity", name: "Activity", width: "64px", cell: ({ id, labels }) => <Activity of={labels.run ?? id} /> },
  { id: "owner", name: "Owner", width: "90px", canSort: true, cell: ({ owner }) => <Quiet text={owner} /> },
  {
    id: "created",
    name: "Created",
    width: "84px",
    canSort: true,
    isEnd: true,
    cell: ({ createdAt }) => (
      <span className={styles.quiet}>
        <Time at={createdAt} />
      </span>
    ),
  },
];

export function PhoneRow({ sandbox }: { sandbox: SandboxInfo }) {
  const { runtime, template, network, createdAt } = sandbox;
  return (
    <div className={styles.card}>
      <div className={styles.top}>
        <Name sandbox={sandbox} />
        <SandboxState sandbox={sandbox} />
      </div>
      <div className={styles.bottom}>
        <span>
          {runtime} · {visibleText(templateWord(template))} · network {visibleText(networkWord(network))} · <Time at={createdAt} />
        </span>
      </div>
    </div>
  );
}

function Name({ sandbox: { id, name } }: { sandbox: SandboxInfo }) {
  return (
    <Link href={`/sandboxes/${id}`} className={styles.name ?? ""} tabIndex={-1}>
      {name !== undefined && <>{visibleText(name)} </>}
      <span className={name === undefined ? "mono" : `mono ${styles.id}`}>{id}</span>
    </Link>
  );
}

function Quiet({ text }: { text: string }) {
  return (
    <span className={styles.quiet} title={visibleText(text)}>
      {visibleText(text)}
    </span>
  );
}

/** Those that somebody gave it: the station's own are ids, which say nothing here. */
function Labels({ sandbox }: { sandbox: SandboxInfo }) {
  const given = Object.entries(sandbox.labels).filter(([key]) => !isStationLabel("sandbox", key));
  const labels = given.map(([key, value]) => visibleText(`${key}=${value}`));
  return (
    <span className={styles.labels} title={labels.join("\n")}>
      {labels.slice(0, LABELS_SHOWN).map((label) => (
        <span key={label} className={styles.label}>
          {label}
        </span>
      ))}
      {labels.length > LABELS_SHOWN && <span className={styles.quiet}>+{labels.length - LABELS_SHOWN}</span>}
    </span>
  );
}
