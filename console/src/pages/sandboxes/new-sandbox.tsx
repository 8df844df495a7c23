import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { defaultLimits } from "../../../../src/contract/defaults/default-limits.ts";
import { builtInRuntimes } from "../../../../src/contract/sandbox/runtime-names.ts";
import { useKnownPlaces } from "../../data/known-places.ts";
import { keys } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { wordsOf } from "../../parts/problem.tsx";
import { networkChoices } from "./new-network.ts";
import { sandboxOf } from "./new-sandbox-request.ts";
import styles from "./sandboxes.module.css";

const MIB = 1024 * 1024;

const runtimes = [
  { value: "", label: "Default" },
  { value: "auto", label: "Strongest available" },
  ...builtInRuntimes.map(({ name, isolates }) => ({ value: name, label: isolates ? name : `${name} (no isolation)` })),
];

/** The few settings worth deciding first. The others have good defaults. */
export function NewSandbox({ onClose }: { onClose(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const { folders } = useKnownPlaces();
  const [runtime, setRuntime] = useState("");
  const [network, setNetwork] = useState("none");
  const [problem, setProblem] = useState<{ message: string; hint?: string | undefined } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const { request, problem: wrong } = sandboxOf((name) => String(form.get(name) ?? "").trim(), { runtime, network });
    if (request === null) return setProblem({ message: wrong });
    setBusy(true);
    setProblem(null);
    try {
      const sandbox = await station.sandboxes.create(request);
      await queries.invalidateQueries({ queryKey: keys.sandboxes });
      navigate(`/sandboxes/${sandbox.id}`);
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <div className={styles.two}>
          <Field label="Name" name="name" placeholder="Optional" autoComplete="off" spellCheck={false} />
          <Field
            label="Labels"
            name="labels"
            placeholder="team=web, purpose=review"
            autoComplete="off"
            spellCheck={false}
            hint="KEY=VALUE, separated by commas."
          />
        </div>
        <Field
          label="Folder"
          name="folder"
          placeholder="None: an empty workspace"
          autoComplete="off"
          spellCheck={false}
          offers={folders}
          hint="A folder on the station's machine. The sandbox gets a copy; files that look like credentials are hidden."
        />
        <div className={styles.two}>
          <Field
            label="Image"
            name="image"
            placeholder="This machine's tools"
            autoComplete="off"
            spellCheck={false}
            hint="A reference such as python:3.12, or a folder on the station's machine."
          />
          <ChoiceField label="Runtime" choices={runtimes} value={runtime} onChoice={setRuntime} />
        </div>
        <div className={styles.two}>
          <ChoiceField label="Network" choices={networkChoices} value={network} onChoice={setNetwork} />
          {network === "hosts" && <Field label="Hosts" name="hosts" placeholder="api.example.com *.example.org" spellCheck={false} />}
        </div>
        <div className={styles.three}>
          <Field label="CPUs" name="cpus" inputMode="decimal" placeholder={String(defaultLimits.cpus)} autoComplete="off" />
          <Field
            label="Memory, MiB"
            name="memory"
            inputMode="numeric"
            placeholder={String(defaultLimits.memoryBytes / MIB)}
            autoComplete="off"
          />
          <Field label="Disk, MiB" name="disk" inputMode="numeric" placeholder="No limit" autoComplete="off" />
        </div>
        {problem !== null && (
          <div role="alert">
            <div className={styles.problem}>{problem.message}</div>
            {problem.hint !== undefined && <div className={styles.quiet}>{problem.hint}</div>}
          </div>
        )}
        <div className={styles.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" type="submit" disabled={isBusy}>
            {isBusy ? "Creating…" : "Create sandbox"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
