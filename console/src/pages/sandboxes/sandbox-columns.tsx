import { Link } from "wouter";
import { isStationLabel } from "../../../../src/contract/label/station-labels.ts";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { useRun } from "../../data/queries.ts";
import { Activity } from "../../parts/activity.tsx";
import type { Column } from "../../parts/list.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleText, visibleTitle } from "../../parts/visible-text.ts";
import { RunStatus } from "../runs/run-status.tsx";
import { networkWord, templateWord } from "./narrow-sandboxes.ts";
import { SandboxState } from "./sandbox-state.tsx";
import styles from "./sandboxes.module.css";

const LABELS_SHOWN = 3;

const columns: readonly Column<SandboxInfo>[] = [
  { id: "name", name: "Name", width: "minmax(124px, 1.7fr)", canSort: true, cell: (sandbox) => <Name sandbox={sandbox} /> },
  { id: "state", name: "State", width: "104px", canSort: true, cell: (sandbox) => <SandboxState sandbox={sandbox} /> },
  { id: "run", name: "Run", width: "minmax(0, 2.2fr)", cell: ({ labels }) => labels.run !== undefined && <RunOf run={labels.run} /> },
  { id: "runtime", name: "Runtime", width: "64px", canSort: true, cell: ({ runtime }) => <span className={styles.quiet}>{runtime}</span> },
  { id: "from", name: "Template", width: "minmax(64px, 0.6fr)", cell: ({ template }) => <Quiet text={templateWord(template)} /> },
  { id: "network", name: "Network", width: "minmax(0, 0.9fr)", cell: ({ network }) => <Quiet text={networkWord(network)} /> },
  { id: "labels", name: "Labels", width: "minmax(0, 2.7fr)", cell: (sandbox) => <Labels sandbox={sandbox} /> },
  { id: "activity", name: "Activity", width: "52px", cell: ({ id, labels }) => <Activity of={labels.run ?? id} /> },
  { id: "owner", name: "Owner", width: "80px", canSort: true, cell: ({ owner }) => <Quiet text={owner} /> },
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

/** Omits columns that would be empty, or the same in every row, to give the others more room. */
export function columnsFor(sandboxes: readonly SandboxInfo[]): readonly Column<SandboxInfo>[] {
  const isWorthIt: Readonly<Record<string, boolean>> = {
    run: sandboxes.some(({ labels }) => labels.run !== undefined),
    labels: sandboxes.some((sandbox) => labelsGiven(sandbox).length > 0),
    runtime: new Set(sandboxes.map(({ runtime }) => runtime)).size > 1,
    owner: new Set(sandboxes.map(({ owner }) => owner)).size > 1,
  };
  return columns.filter(({ id }) => isWorthIt[id] ?? true);
}

export function PhoneRow({ sandbox }: { sandbox: SandboxInfo }) {
  const { runtime, template, network, createdAt, labels } = sandbox;
  return (
    <div className={styles.card}>
      <div className={styles.top}>
        <Name sandbox={sandbox} />
        <SandboxState sandbox={sandbox} />
      </div>
      <div className={styles.bottom}>
        {labels.run !== undefined && <RunOf run={labels.run} />}
        <span className={styles.facts}>
          {labels.run === undefined &&
            `${runtime} · ${visibleText(templateWord(template))} · network ${visibleText(networkWord(network))} · `}
          <Time at={createdAt} />
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

/** The run that it was created for, by its task; by its id if the run was removed. */
function RunOf({ run }: { run: string }) {
  const { data } = useRun(run);
  const task = data === undefined ? run : visibleTitle(data.name ?? data.title);
  return (
    <span className={styles.run}>
      {data !== undefined && <RunStatus view={data} />}
      <Link href={`/runs/${run}`} className={`${styles.task} ${data === undefined ? "mono" : ""}`} title={`${task}\n${run}`} tabIndex={-1}>
        {task}
      </Link>
    </span>
  );
}

/** Omits the station's own labels: they are ids, which mean nothing here. */
const labelsGiven = ({ labels }: SandboxInfo) => Object.entries(labels).filter(([key]) => !isStationLabel("sandbox", key));

function Labels({ sandbox }: { sandbox: SandboxInfo }) {
  const labels = labelsGiven(sandbox).map(([key, value]) => visibleText(`${key}=${value}`));
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
