import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { wordsOf } from "../../parts/problem.tsx";
import { keys } from "../../station/queries.ts";
import { useStation } from "../../station/station.tsx";
import { networkChoices, policyOf } from "./new-network.ts";
import styles from "./sandboxes.module.css";

const runtimes = [
  { value: "", label: "Default" },
  { value: "auto", label: "Strongest here" },
  { value: "oci", label: "oci" },
  { value: "docker", label: "docker" },
  { value: "host", label: "host (no wall)" },
];

/** The few things that are worth deciding first; the rest has good defaults. */
export function NewSandbox({ onClose }: { onClose(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [runtime, setRuntime] = useState("");
  const [network, setNetwork] = useState("none");
  const [problem, setProblem] = useState<{ message: string; hint?: string | undefined } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const word = (name: string) => String(form.get(name) ?? "").trim();
    setBusy(true);
    setProblem(null);
    try {
      const made = await station.sandboxes.create({
        ...(runtime !== "" && { runtime }),
        spec: {
          ...(word("name") !== "" && { name: word("name") }),
          ...(word("image") !== "" && { template: { kind: "image", reference: word("image") } }),
          network: policyOf(network, word("hosts")),
          labels: { from: "console" },
        },
      });
      await queries.invalidateQueries({ queryKey: keys.sandboxes });
      navigate(`/sandboxes/${made.id}`);
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form className={styles.form} onSubmit={(event) => void submit(event)}>
        <Field label="Name" name="name" placeholder="Optional" autoComplete="off" spellCheck={false} autoFocus />
        <div className={styles.two}>
          <Field
            label="Image"
            name="image"
            placeholder="This machine's own tools"
            autoComplete="off"
            spellCheck={false}
            hint="A reference such as python:3.12, or a folder of the station's machine."
          />
          <ChoiceField label="Runtime" choices={runtimes} value={runtime} onChoice={setRuntime} />
        </div>
        <div className={styles.two}>
          <ChoiceField label="Network" choices={networkChoices} value={network} onChoice={setNetwork} />
          {network === "hosts" && <Field label="Hosts" name="hosts" placeholder="api.example.com *.example.org" spellCheck={false} />}
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
            {isBusy ? "Making it…" : "Make sandbox"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
