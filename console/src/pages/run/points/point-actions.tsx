import { useQueryClient } from "@tanstack/react-query";
import { FileDiff, FolderTree, GitFork, History } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { SessionPoint } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Button, ButtonLink } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { say } from "../../../parts/toasts.tsx";
import styles from "./points.module.css";
import { pointWords } from "./use-points.ts";

/** The actions on a run's files at a point: view them, start a run from them, or rewind to them. */
export function PointActions({ view, point }: { view: RunView; point: SessionPoint }) {
  const [isAsking, setAsking] = useState(false);
  const then = pointWords(point);
  return (
    <span className={styles.point}>
      <span className={styles.words}>Files saved {then}</span>
      <ButtonLink look="plain" icon={<FolderTree />} label={`Files ${then}`} href={`/runs/${view.run}?tab=files&at=${point.step}`} />
      <ButtonLink look="plain" icon={<FileDiff />} label={`Changes ${then}`} href={`/runs/${view.run}?tab=changes&at=${point.step}`} />
      <ButtonLink
        look="plain"
        icon={<GitFork />}
        label={`New run with the files ${then}`}
        href={`/start?from=${view.run}&at=${point.step}`}
      />
      <Button
        look="plain"
        icon={<History />}
        label={`Rewind to ${then}`}
        disabled={view.status !== "ended"}
        onClick={() => setAsking(true)}
      />
      {isAsking && <Rewind {...{ view, point }} onClose={() => setAsking(false)} />}
    </span>
  );
}

function Rewind({ view, point, onClose }: { view: RunView; point: SessionPoint; onClose(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const rewind = async () => {
    const { files } = await station.sessions.undo(view.run, { to: point.step });
    say(`Rewound to ${pointWords(point)}: ${plural(files.length, "file")} restored.`);
    await queries.invalidateQueries({ predicate: ({ queryKey }) => /^(session|points)/.test(String(queryKey[0])) });
  };
  return (
    <Confirm title={`Rewind to ${pointWords(point)}?`} action="Rewind" onConfirm={rewind} onClose={onClose}>
      <p>Reverts the file changes of every turn since then. Applied changes stay applied.</p>
      <p>The agent learns about it when the run continues.</p>
    </Confirm>
  );
}
