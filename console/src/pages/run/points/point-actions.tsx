import { useQueryClient } from "@tanstack/react-query";
import { FileDiff, FolderTree, GitFork, Milestone, Undo2 } from "lucide-react";
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

/** The actions on a run's files at a point: view them, start a run from them, or take the files back to them. */
export function PointActions({ view, point }: { view: RunView; point: SessionPoint }) {
  const [isAsking, setAsking] = useState(false);
  const then = pointWords(point);
  return (
    <span className={styles.point}>
      <span className={styles.words}>Files saved {then}</span>
      <ButtonLink look="plain" icon={<Milestone />} label={`Step ${point.step}`} href={`/runs/${view.run}?tab=steps&step=${point.step}`} />
      <ButtonLink look="plain" icon={<FolderTree />} label={`Files ${then}`} href={`/runs/${view.run}?tab=files&at=${point.step}`} />
      <ButtonLink look="plain" icon={<FileDiff />} label={`Changes ${then}`} href={`/runs/${view.run}?tab=changes&at=${point.step}`} />
      <ButtonLink
        look="plain"
        icon={<GitFork />}
        label={`New run with the files ${then}`}
        href={`/start?from=${view.run}&at=${point.step}`}
      />
      {point.turn !== undefined && (
        <Button
          look="plain"
          icon={<Undo2 />}
          label={`Take the files back to ${then}`}
          disabled={view.status !== "ended"}
          onClick={() => setAsking(true)}
        />
      )}
      {isAsking && <TakeBack {...{ view, point }} onClose={() => setAsking(false)} />}
    </span>
  );
}

/** Takes back files alone, by whole turns. A rewind (`steps/rewind-dialog.tsx`) also takes back the conversation. */
function TakeBack({ view, point, onClose }: { view: RunView; point: SessionPoint; onClose(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const takeBack = async () => {
    const { files } = await station.sessions.undo(view.run, { to: point.step });
    say(`The files are as they were ${pointWords(point)}: ${plural(files.length, "file")} restored.`);
    await queries.invalidateQueries({ predicate: ({ queryKey }) => /^(session|points)/.test(String(queryKey[0])) });
  };
  return (
    <Confirm title={`Take the files back to ${pointWords(point)}?`} action="Take back" onConfirm={takeBack} onClose={onClose}>
      <p>Reverts the file changes of every turn since then, but not the conversation. Applied changes stay applied.</p>
      <p>The agent learns about it when the run continues.</p>
    </Confirm>
  );
}
