import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { wordsOf } from "../../parts/problem.tsx";
import { say } from "../../parts/toasts.tsx";
import styles from "./sandbox.module.css";

export const snapshotsKey = ["snapshots"] as const;

export function MakeSnapshot({ sandbox, onClose }: { sandbox: string; onClose(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [problem, setProblem] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
    setBusy(true);
    try {
      const snapshot = await station.sandboxes.snapshot(sandbox, name === "" ? {} : { name });
      await queries.invalidateQueries({ queryKey: snapshotsKey });
      say(`Created the snapshot ${snapshot.name ?? snapshot.id}.`);
      onClose();
    } catch (error) {
      setProblem(wordsOf(error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New snapshot" onClose={onClose}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <Field
          label="Name"
          name="name"
          placeholder="Optional"
          autoComplete="off"
          spellCheck={false}
          autoFocus
          problem={problem}
          hint="Stores the current files, for other sandboxes to start from. Processes are not included."
        />
        <div className={styles.buttons}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" disabled={isBusy}>
            {isBusy ? "Creating…" : "Create snapshot"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
