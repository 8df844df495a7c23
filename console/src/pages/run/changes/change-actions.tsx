import { Check, GitBranch, Trash2, Undo2 } from "lucide-react";
import { useState } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { ChangedFile, LeftOut } from "../../../../../src/contract/session/session-verbs.ts";
import { useStation } from "../../../data/station.tsx";
import { plural } from "../../../parts/amounts.ts";
import { Button } from "../../../parts/button.tsx";
import { Confirm } from "../../../parts/confirm.tsx";
import { Field } from "../../../parts/field.tsx";
import { say } from "../../../parts/toasts.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./changes.module.css";

type Asking = "apply" | "branch" | "undo" | "discard";

/** The actions on the changes: apply them, commit them to a branch, undo the last turn, or discard them. */
export function ChangeActions({ view, files, onDone }: { view: RunView; files: readonly ChangedFile[]; onDone(): void }) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const hasEnded = view.status === "ended";
  const close = () => setAsking(null);
  return (
    <>
      <Button look="main" icon={<Check />} onClick={() => setAsking("apply")}>
        Apply
      </Button>
      <Button icon={<GitBranch />} onClick={() => setAsking("branch")}>
        Branch
      </Button>
      <Button look="plain" icon={<Undo2 />} label="Undo the last turn" disabled={!hasEnded} onClick={() => setAsking("undo")} />
      <Button look="plain" icon={<Trash2 />} label="Discard" disabled={!hasEnded} onClick={() => setAsking("discard")} />
      {asking === "apply" && <Apply {...{ view, files, onDone }} onClose={close} />}
      {asking === "branch" && <Branch {...{ view, onDone }} onClose={close} />}
      {(asking === "undo" || asking === "discard") && <TakeBack how={asking} {...{ view, onDone }} onClose={close} />}
    </>
  );
}

interface AskProps {
  view: RunView;
  onDone(): void;
  onClose(): void;
}

function Apply({ view, files, onDone, onClose }: AskProps & { files: readonly ChangedFile[] }) {
  const station = useStation();
  const [folder, setFolder] = useState(view.folder ?? "");
  const [isForced, setForced] = useState(false);
  const outside = files.filter(({ changedOutside }) => changedOutside);
  const apply = async () => {
    const target = folder.trim() === "" || folder === view.folder ? {} : { folder: folder.trim() };
    const done = await station.sessions.apply(view.session, { ...target, force: isForced });
    say(`${plural(done.applied.length, "file")} applied to ${visibleText(done.folder)}${skippedWords(done.skipped)}.`);
    onDone();
  };
  return (
    <Confirm title={`Apply ${plural(files.length, "file")}?`} action="Apply" onConfirm={apply} onClose={onClose}>
      <Field
        label="Folder on the station's machine"
        value={folder}
        hint="Defaults to the folder that the run started from."
        onChange={(event) => setFolder(event.target.value)}
      />
      {outside.length > 0 && (
        <label className={styles.force}>
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} />
          Overwrite {plural(outside.length, "file")} that you changed since
        </label>
      )}
    </Confirm>
  );
}

function Branch({ view, onDone, onClose }: AskProps) {
  const station = useStation();
  const [name, setName] = useState("");
  const [message, setMessage] = useState("");
  const branch = async () => {
    const options = { ...(name.trim() !== "" && { name: name.trim() }), ...(message.trim() !== "" && { message: message.trim() }) };
    const done = await station.sessions.branch(view.session, options);
    say(`Committed on ${visibleText(done.branch)} as ${done.commit.slice(0, 10)}${skippedWords(done.skipped)}.`);
    onDone();
  };
  return (
    <Confirm title="Commit on a new branch?" action="Commit" onConfirm={branch} onClose={onClose}>
      <p>Your folder and its checked-out branch do not change.</p>
      <Field label="Branch" value={name} placeholder="named after the run" onChange={(event) => setName(event.target.value)} />
      <Field label="Message" value={message} placeholder="the run's task" onChange={(event) => setMessage(event.target.value)} />
    </Confirm>
  );
}

function TakeBack({ how, view, onDone, onClose }: AskProps & { how: "undo" | "discard" }) {
  const station = useStation();
  const act = async () => {
    if (how === "undo") {
      const { files } = await station.sessions.undo(view.run);
      say(`Restored ${plural(files.length, "file")} to before the last turn.`);
    } else {
      await station.sessions.discard(view.session);
      say("The session and its changes were discarded.");
    }
    onDone();
  };
  return (
    <Confirm
      title={how === "undo" ? "Undo the last turn?" : "Discard the session?"}
      action={how === "undo" ? "Undo" : "Discard"}
      onConfirm={act}
      onClose={onClose}
    >
      <p>
        {how === "undo"
          ? "Reverts the file changes of the run's last turn. Applied changes stay applied."
          : "Permanently removes all changes that you have not applied. Your own folder does not change."}
      </p>
    </Confirm>
  );
}

function skippedWords(skipped: readonly LeftOut[]): string {
  const [first] = skipped;
  return first === undefined ? "" : `; ${skipped.length} skipped: ${visibleText(first.path)} (${visibleText(first.reason)})`;
}
