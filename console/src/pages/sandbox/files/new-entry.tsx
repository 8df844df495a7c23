import { type FormEvent, useState } from "react";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Dialog } from "../../../parts/dialog.tsx";
import { Field } from "../../../parts/field.tsx";
import { wordsOf } from "../../../parts/problem.tsx";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "../sandbox.module.css";
import { folderOf, joinPath, nameOf, nameProblem } from "./paths.ts";
import { useFoldersAgain } from "./use-folders.ts";

/** Creates a file or folder in the given folder. */
export function NewEntry(props: {
  sandbox: string;
  folder: string;
  kind: "file" | "folder";
  onPath(path: string, kind?: "file" | "folder"): void;
  onClose(): void;
}) {
  const { sandbox, folder, kind, onPath, onClose } = props;
  const station = useStation();
  const make = async (name: string) => {
    const path = joinPath(folder, name);
    if (kind === "folder") await station.files.makeFolder(sandbox, { path });
    else await station.files.write(sandbox, { path, how: "create" }, new Uint8Array());
    onPath(path, kind);
  };
  const about = { title: kind === "file" ? "New file" : "New folder", action: "Create", hint: `In ${visibleText(folder)}` };
  return <AskName sandbox={sandbox} name="" {...about} onName={make} onClose={onClose} />;
}

export function RenameEntry(props: {
  sandbox: string;
  path: string;
  isFolder: boolean;
  onPath(path: string, kind?: "file" | "folder"): void;
  onClose(): void;
}) {
  const { sandbox, path, isFolder, onPath, onClose } = props;
  const station = useStation();
  const rename = async (name: string) => {
    const to = joinPath(folderOf(path), name);
    await station.files.move(sandbox, { from: path, to });
    onPath(to, isFolder ? "folder" : "file");
  };
  return <AskName sandbox={sandbox} name={nameOf(path)} title="Rename" action="Rename" onName={rename} onClose={onClose} />;
}

function AskName(props: {
  sandbox: string;
  title: string;
  action: string;
  name: string;
  hint?: string;
  onName(name: string): Promise<void>;
  onClose(): void;
}) {
  const { sandbox, title, action, onName, onClose, hint } = props;
  const [name, setName] = useState(props.name);
  const [problem, setProblem] = useState<string | undefined>();
  const lookAgain = useFoldersAgain(sandbox);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wrong = nameProblem(name);
    if (wrong !== null) return setProblem(wrong);
    try {
      await onName(name);
      await lookAgain();
      onClose();
    } catch (error) {
      setProblem(wordsOf(error).message);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <Field
          label="Name"
          value={name}
          autoComplete="off"
          spellCheck={false}
          autoFocus
          hint={hint}
          problem={problem}
          onChange={(event) => setName(event.target.value)}
        />
        <div className={styles.buttons}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit">
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
