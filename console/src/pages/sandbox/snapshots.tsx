import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Camera, GitFork, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { SnapshotView } from "../../../../src/contract/sandbox/sandbox-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { bytes } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { MakeSnapshot, snapshotsKey } from "./make-snapshot.tsx";
import styles from "./tables.module.css";
import type { SandboxPart } from "./use-sandbox.ts";

/** The snapshots of this sandbox, newest first. */
export default function Snapshots({ sandbox }: SandboxPart) {
  const station = useStation();
  const [isMaking, setMaking] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: [...snapshotsKey, sandbox.id],
    queryFn: async ({ signal }) => (await station.sandboxes.snapshots({ sandbox: sandbox.id }, { signal })).snapshots,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const own = data.toReversed();
  const make = (
    <Button icon={<Camera />} onClick={() => setMaking(true)}>
      Create snapshot
    </Button>
  );
  return (
    <>
      {own.length === 0 ? (
        <Empty title="No snapshots of this sandbox" action={make}>
          A snapshot stores the files of a sandbox. Any number of sandboxes can start from it.
        </Empty>
      ) : (
        <>
          <div className={styles.bar}>{make}</div>
          <table className={styles.table}>
            <thead>
              <tr>
                <th>Name</th>
                <th className={styles.number}>Size</th>
                <th className={styles.number}>Created</th>
                <th>
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {own.map((snapshot) => (
                <SnapshotRow key={snapshot.id} snapshot={snapshot} />
              ))}
            </tbody>
          </table>
        </>
      )}
      {isMaking && <MakeSnapshot sandbox={sandbox.id} onClose={() => setMaking(false)} />}
    </>
  );
}

function SnapshotRow({ snapshot }: { snapshot: SnapshotView }) {
  const station = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [isConfirming, setConfirming] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    try {
      const sandbox = await station.sandboxes.create({ runtime: snapshot.runtime, snapshot: snapshot.id });
      say("Started a new sandbox from the snapshot.");
      navigate(`/sandboxes/${sandbox.id}`);
    } catch (error) {
      sayProblem(error);
      setBusy(false);
    }
  };
  const name = visibleText(snapshot.name ?? snapshot.id);
  return (
    <tr>
      <td className={styles.long}>
        {snapshot.name !== null && <>{name} </>}
        <code>{snapshot.id}</code>
        <Copy text={snapshot.id} what="ID" />
      </td>
      <td className={styles.number}>{bytes(snapshot.bytes)}</td>
      <td className={styles.number}>
        <Time at={snapshot.createdAt} />
      </td>
      <td className={styles.actions}>
        <Button look="plain" label={`New sandbox from ${name}`} icon={<GitFork />} disabled={isBusy} onClick={() => void start()} />
        <Button look="plain" label={`Remove ${name}`} icon={<Trash2 />} onClick={() => setConfirming(true)} />
        {isConfirming && (
          <Confirm
            title={`Remove the snapshot ${name}?`}
            action="Remove"
            onClose={() => setConfirming(false)}
            onConfirm={async () => {
              await station.sandboxes.removeSnapshot(snapshot.id);
              await queries.invalidateQueries({ queryKey: snapshotsKey });
            }}
          />
        )}
      </td>
    </tr>
  );
}
